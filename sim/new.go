package sim

import (
	"errors"
	"time"
)

// New makes a world with a class "small" and its secret in the namespace
// Namespace, and starts a manager in it. The error is the manager's.
func New(o Options) (*World, error) {
	if o.Boot == 0 {
		o.Boot = time.Minute
	}
	switch p := o.Manager.Policies.Safety; {
	case p == nil:
		o.Manager.Policies.Safety = SafetyPolicy()
	case p.Off:
		o.Manager.Policies.Safety = nil // in this package, nil is off
	default:
		o.Manager.Policies.Safety = p.WithDefaults()
	}
	w := newWorld(o)
	addInvariants(w)
	checkProperties(w)
	w.subscribe(w.bootstrapMaker.see)
	w.subscribe(w.poolGone)
	if err := errors.Join(w.AddClass("small"), w.managers.start()); err != nil {
		return nil, err
	}
	w.disturbances.begin()
	return w, nil
}
