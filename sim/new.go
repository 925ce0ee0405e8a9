package sim

import (
	"errors"
	"time"

	"github.com/millwright-go/millwright/object"
)

// New makes a world with a class "small" and its secret in the namespace
// Namespace, and starts a manager in it. The error is the manager's, or an *object.FieldError for
// Options that don't go together.
func New(o Options) (*World, error) {
	if o.Class != nil {
		switch {
		case o.Driver == nil:
			return nil, object.Invalid("Options.Class", "needs a Driver: the simulated provider makes its classes itself")
		case !o.NoCluster:
			return nil, object.Invalid("Options.Class", "needs NoCluster: VMs that are not in World.Provider join no cluster")
		}
		o.UpdatableTags, o.NeedsInitialization = false, false // these are of the simulated provider
	}
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
