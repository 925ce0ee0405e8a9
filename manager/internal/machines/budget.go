package machines

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/index"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/replacement"
	"github.com/millwright-go/millwright/store"
)

// askGrant finds out whether the machine may be marked failed or replaced. It makes
// a pass of its own, over the fleet that the machine belongs to. After a conflict
// the machine's pass begins again, too.
func (p *pass) askGrant(ctx context.Context, e machine.AskGrant) (*machine.Grant, error) {
	if p.Safety == nil || p.Sets == nil {
		return &machine.Grant{Allowed: true}, nil
	}
	o := &replacement.Observation{Machine: p.o.Machine, NodeLeaves: e.NodeLeaves, NoCluster: p.Nodes == nil}
	if err := p.findFleet(ctx, o); err != nil {
		return nil, err
	}
	g := &grantSteps{pass: p, o: o}
	if err := p.Sub(ctx, g); err != nil {
		return nil, err
	}
	return g.plan.Grant, nil
}

// grantSteps are the steps of the pass over the fleet.
type grantSteps struct {
	*pass
	o    *replacement.Observation
	plan replacement.Plan
}

// Decide implements engine.Steps.
func (g *grantSteps) Decide(context.Context) (engine.Step, error) {
	g.spentMu.Lock()
	g.o.Spent = g.spent
	var err error
	if g.plan, err = replacement.Decide(g.o, g.Safety, g.Now()); err == nil && g.o.Set == nil && !g.DryRun {
		g.spent = g.plan.Spent
	}
	g.spentMu.Unlock()
	step := engine.Step{Why: g.plan.Why}
	switch {
	case g.plan.ReadFleet:
		step.Verb = engine.Read
	case g.plan.Write != nil:
		step.Verb = engine.Mutate
	}
	return step, err
}

// Execute implements engine.Steps.
func (g *grantSteps) Execute(ctx context.Context) error {
	var err error
	if g.plan.ReadFleet {
		err = g.readFleet(ctx, g.o)
	} else {
		err = g.takeSlot(ctx, g.o, g.plan.Write)
	}
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("the fleet of machine %s changed: %w", g.Key, store.ErrConflict)
	}
	return err
}

// Changes implements engine.Steps.
func (g *grantSteps) Changes() []engine.Change {
	if w, ok := g.plan.Write.(*replacement.TakeFromDeployment); ok {
		return []engine.Change{{What: "update deployment " + w.Deployment.Key.String()}}
	}
	return []engine.Change{{What: "update set " + g.o.Set.Key.String()}}
}

// findFleet finds the set that owns the machine, and the deployment that owns
// the set, if there are any.
func (p *pass) findFleet(ctx context.Context, o *replacement.Observation) error {
	owner := p.o.Machine.Owner
	if owner == nil || owner.Kind != machineset.OwnerKind {
		return nil
	}
	set, err := p.Sets.Live().Get(ctx, object.Key{Namespace: p.Key.Namespace, Name: owner.Name})
	if errors.Is(err, store.ErrNotFound) || err == nil && set.UID != owner.UID {
		return nil // no set replaces the machine
	}
	if err != nil {
		return err
	}
	o.Set = set
	if p.Deployments == nil || set.Owner == nil || set.Owner.Kind != deployment.OwnerKind {
		return nil
	}
	d, err := p.Deployments.Live().Get(ctx, object.Key{Namespace: p.Key.Namespace, Name: set.Owner.Name})
	if errors.Is(err, store.ErrNotFound) || err == nil && d.UID != set.Owner.UID {
		return nil
	}
	o.Deployment = d
	return err
}

// readFleet reads the deployment or set that holds the budget, then its sets, then their machines.
// If the machine's set has another owner meanwhile, the pass begins again.
func (p *pass) readFleet(ctx context.Context, o *replacement.Observation) error {
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
		if sets, err = p.Sets.Live().List(ctx, index.OwnedBy(d.UID)); err != nil {
			return err
		}
	}
	set, err := p.Sets.Live().Get(ctx, o.Set.Key)
	if err != nil {
		return err
	}
	if set.UID != o.Set.UID || !index.SameOwner(set.Owner, was) {
		return engine.ErrReplaced
	}
	o.Set = set
	if o.Deployment == nil {
		sets = append(sets, set)
	}
	for _, s := range sets {
		machines, err := p.Machines.Live().List(ctx, index.OwnedBy(s.UID))
		if err != nil {
			return err
		}
		o.Fleet = append(o.Fleet, machines...)
	}
	o.Preserved = preserved(o.Fleet, p.Now())
	o.Read = p.Freshness(began, true)
	return p.zones(ctx, o)
}

// preserved returns the names of the machines that are kept for inspection; nil: none is.
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
func (p *pass) zones(ctx context.Context, o *replacement.Observation) error {
	if !p.Safety.ZoneRule {
		return nil
	}
	o.Zones = make(map[string]string)
	for _, m := range o.Fleet {
		name := m.Spec.Class.Name
		if _, known := o.Zones[name]; known || name == "" {
			continue
		}
		class, err := p.Classes.Get(ctx, index.ClassKey(m))
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

// takeSlot stores that the machine takes a slot of the budget.
func (p *pass) takeSlot(ctx context.Context, o *replacement.Observation, w replacement.Write) error {
	switch w := w.(type) {
	case *replacement.TakeFromDeployment:
		stored, err := p.Deployments.Write(ctx, &engine.Write[*deployment.Deployment]{Before: o.Deployment, After: w.Deployment})
		if err != nil {
			return err
		}
		o.Deployment = stored
	case *replacement.TakeFromSet:
		stored, err := p.Sets.Write(ctx, &engine.Write[*machineset.Set]{Before: o.Set, After: w.Set})
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
