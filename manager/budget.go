package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// askGrant finds out whether the machine may be given up for its health. It is
// a pass of its own, over the fleet that the machine belongs to. A conflict ends
// the machine's pass too, which begins anew.
func (p *machinePass) askGrant(ctx context.Context) (*machine.Grant, error) {
	if p.SafetyPolicy == nil || p.Sets == nil {
		return &machine.Grant{Allowed: true}, nil
	}
	o := &safety.GrantObservation{Machine: p.o.Machine, NoCluster: p.Cluster == nil}
	if err := p.findFleet(ctx, o); err != nil {
		return nil, err
	}
	for range engine.MaxSteps {
		plan, err := safety.DecideGrant(o, p.SafetyPolicy, p.Now())
		if err != nil {
			return nil, err
		}
		because(ctx, p.shell, plan.Why)
		switch {
		case plan.ReadFleet:
			err = p.readFleet(ctx, o)
		case plan.Write != nil:
			err = p.takeSlot(ctx, o, plan.Write)
		default:
			return plan.Grant, nil
		}
		if errors.Is(err, store.ErrNotFound) {
			err = fmt.Errorf("the fleet of machine %s changed: %w", p.key, store.ErrConflict)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("machine %s: the question for a grant does not end", p.key)
}

// findFleet finds the set that owns the machine, and the deployment that owns
// the set, if there are any.
func (p *machinePass) findFleet(ctx context.Context, o *safety.GrantObservation) error {
	owner := p.o.Machine.Owner
	if owner == nil || owner.Kind != machineset.OwnerKind {
		return nil
	}
	set, err := p.Sets.Live().Get(ctx, object.Key{Namespace: p.key.Namespace, Name: owner.Name})
	if errors.Is(err, store.ErrNotFound) || err == nil && set.UID != owner.UID {
		return nil // nobody replaces it
	}
	if err != nil {
		return err
	}
	o.Set = set
	if p.Deployments == nil || set.Owner == nil || set.Owner.Kind != deployment.OwnerKind {
		return nil
	}
	d, err := p.Deployments.Live().Get(ctx, object.Key{Namespace: p.key.Namespace, Name: set.Owner.Name})
	if errors.Is(err, store.ErrNotFound) || err == nil && d.UID != set.Owner.UID {
		return nil
	}
	o.Deployment = d
	return err
}

// readFleet reads what holds the budget, then its sets, then their machines.
// A set that came to belong to another meanwhile begins the pass anew.
func (p *machinePass) readFleet(ctx context.Context, o *safety.GrantObservation) error {
	was, began := o.Set.Owner, p.Now()
	var sets []*machineset.Set
	if o.Deployment != nil {
		d, err := p.Deployments.Live().Get(ctx, o.Deployment.Key)
		if err != nil {
			return err
		}
		if d.UID != o.Deployment.UID {
			return engine.ErrReplaced
		}
		o.Deployment = d
		if sets, err = p.Sets.Live().List(ctx, store.Query{Index: IndexOwner, Value: d.UID}); err != nil {
			return err
		}
	}
	set, err := p.Sets.Live().Get(ctx, o.Set.Key)
	if err != nil {
		return err
	}
	if set.UID != o.Set.UID || !sameOwner(set.Owner, was) {
		return engine.ErrReplaced
	}
	o.Set = set
	if o.Deployment == nil {
		sets = append(sets, set)
	}
	o.Fleet = nil
	for _, s := range sets {
		machines, err := p.Machines.Live().List(ctx, store.Query{Index: IndexOwner, Value: s.UID})
		if err != nil {
			return err
		}
		o.Fleet = append(o.Fleet, machines...)
	}
	o.Preserved = preserved(o.Fleet, p.Now())
	o.Read = p.since(began)
	return p.zones(ctx, o)
}

// preserved are the names of machines that are kept for inspection; nil: none is.
func preserved(fleet []*machine.Machine, now time.Time) map[string]bool {
	var names map[string]bool
	for _, m := range fleet {
		if m.Preserved(now) {
			if names == nil {
				names = make(map[string]bool)
			}
			names[m.Name] = true
		}
	}
	return names
}

// zones finds the zone of each class in the fleet, where the rule needs it.
func (p *machinePass) zones(ctx context.Context, o *safety.GrantObservation) error {
	if !p.SafetyPolicy.ZoneRule {
		return nil
	}
	o.Zones = make(map[string]string)
	for _, m := range o.Fleet {
		name := m.Spec.Class.Name
		if _, known := o.Zones[name]; known || name == "" {
			continue
		}
		class, err := p.Classes.Get(ctx, classKey(m))
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		o.Zones[name] = ""
		if err == nil && class.NodeTemplate != nil {
			o.Zones[name] = class.NodeTemplate.Zone
		}
	}
	return nil
}

// takeSlot writes the slot.
func (p *machinePass) takeSlot(ctx context.Context, o *safety.GrantObservation, w safety.GrantWrite) error {
	switch w := w.(type) {
	case *safety.TakeFromDeployment:
		stored, err := p.Deployments.Update(ctx, w.Deployment)
		if err != nil {
			return err
		}
		o.Deployment = stored
	case *safety.TakeFromSet:
		stored, err := p.Sets.Update(ctx, w.Set)
		if err != nil {
			return err
		}
		o.Set = stored
	default:
		return fmt.Errorf("unknown write %T", w)
	}
	o.Taken = true
	return nil
}
