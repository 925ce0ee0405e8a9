package fleet

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/orphan"
	"github.com/millwright-go/millwright/store"
)

// OrphanReconciler deletes VMs that no machine owns, and groups that no pool does.
type OrphanReconciler struct {
	*engine.Reconciler                    // of VMs
	groups             *engine.Reconciler // nil: groups are not listed
}

// NewOrphans returns it.
func NewOrphans(e *engine.Engine, c Config) *OrphanReconciler {
	r := &OrphanReconciler{Reconciler: newOrphans(e, c, false)}
	if c.Own == nil && c.PoolDriver != nil && pooldriver.ListsPools(c.PoolDriver) {
		r.groups = newOrphans(e, c, true)
	}
	return r
}

// Reconcile makes two passes, one over VMs and one over groups, so that trouble with one does not keep the
// other waiting.
func (r *OrphanReconciler) Reconcile(ctx context.Context, key object.Key) (engine.Result, error) {
	result, err := r.Reconciler.Reconcile(ctx, key)
	if r.groups == nil {
		return result, err
	}
	next, failed := r.groups.Reconcile(ctx, key)
	if next.At.Before(result.At) {
		result = next
	}
	return result, errors.Join(err, failed)
}

func newOrphans(e *engine.Engine, c Config, groups bool) *engine.Reconciler {
	r := &orphans{
		Config: c, groups: groups,
		asked: make(map[object.Key]orphan.Class), tries: make(map[string]orphan.Try),
	}
	return e.Reconciler(engine.Kind{Name: "orphans", Hold: c.Reach.Hold, Begin: r.begin})
}

func (r *orphans) begin(ep *engine.Pass) engine.Steps {
	p := &orphanPass{Pass: ep, orphans: r}
	p.of = &orphanVMs{orphanPass: p}
	if r.groups {
		p.of = &orphanGroups{orphanPass: p, pools: make(map[groupOf]object.Key)}
	}
	return p
}

// Read implements engine.Steps. It reads the classes. Owners are read once VMs were listed, not before.
func (p *orphanPass) Read(ctx context.Context, live bool) error {
	reader := store.Reader[*machine.Class](p.Classes)
	if live {
		reader = p.Classes.Live()
	}
	classes, err := reader.List(ctx, store.Query{})
	if err != nil {
		return err
	}
	p.classes = make(map[object.Key]*machine.Class, len(classes))
	known := make(map[object.Key]orphan.Class, len(classes))
	if p.began.IsZero() {
		p.began = p.Now()
	}
	p.o = orphan.Observation{
		Groups: p.groups, NoCluster: p.Nodes == nil && !p.groups, LookOnly: p.Own != nil, Unlisted: p.unlisted, Sighted: p.sighted, Unhealthy: p.unhealthy, Candidates: p.candidates, Spent: p.spent, Began: p.began, Tries: p.failed(), Deleted: make(map[string]bool),
	}
	for _, c := range classes {
		class := p.asked[c.Key]
		class.Key = c.Key
		p.classes[c.Key], known[c.Key] = c, class
		p.o.Classes = append(p.o.Classes, class)
	}
	p.asked = known
	if !p.groups {
		p.o.Hints = p.Hints(known)
	}
	if p.o.NoCluster {
		return p.of.readOwners(ctx, false)
	}
	return nil
}

// Decide implements engine.Steps.
func (p *orphanPass) Decide(ctx context.Context) (engine.Head, error) {
	p.o.Frozen = p.Reach.Frozen()
	var err error
	if p.plan, err = orphan.Decide(&p.o, p.Policy, p.Now()); err != nil {
		return engine.Head{}, err
	}
	plan := &p.plan
	p.candidates, p.o.Candidates = plan.Candidates, plan.Candidates
	p.spent, p.o.Spent = plan.Spent, plan.Spent
	p.unlisted, p.o.Unlisted = plan.Unlisted, plan.Unlisted
	p.sighted, p.o.Sighted = plan.Sighted, plan.Sighted
	p.unhealthy, p.o.Unhealthy = plan.Unhealthy, plan.Unhealthy
	for i := range p.o.Classes {
		class := &p.o.Classes[i]
		class.Blind = slices.Contains(plan.Blind, class.Key)
	}
	if !p.groups {
		p.Missing(plan.Unlisted, plan.Unhealthy)
	}
	for _, why := range plan.Warn {
		p.odd = true
		p.Once(ctx, engine.Warning, why)
	}
	switch {
	case len(plan.List) > 0, plan.ReadMachines:
		return engine.Head{Verb: engine.Look}, nil
	case len(plan.Delete) > 0:
		return engine.Head{Verb: engine.Act, Why: plan.Why, Live: true}, nil
	}
	p.rest()
	return p.wait(p.o.Frozen, plan.At, plan.Why), nil
}

// Execute implements engine.Steps.
func (p *orphanPass) Execute(ctx context.Context) error {
	switch {
	case len(p.plan.List) > 0:
		return p.list(ctx, p.plan.List)
	case p.plan.ReadMachines:
		return p.readMachines(ctx)
	}
	return p.collect(ctx, p.plan.Delete)
}

// Changes implements engine.Steps.
func (p *orphanPass) Changes() []engine.Change {
	changes := make([]engine.Change, len(p.plan.Delete))
	for i := range p.plan.Delete {
		order := &p.plan.Delete[i]
		changes[i] = engine.Change{What: p.of.names().change + p.of.about(order).String(), Why: order.Why}
	}
	return changes
}

// Held implements engine.Holder: what was listed has been judged, and is not to be
// listed again before its time.
func (p *orphanPass) Held() time.Time {
	p.rest()
	return time.Time{}
}

// rest remembers how listings were answered, now that they were judged, and
// drops what need not be remembered any more.
func (p *orphanPass) rest() {
	for _, class := range p.o.Classes {
		class.Listing = nil
		p.asked[class.Key] = class
	}
	sighted := make(map[string]bool, len(p.candidates))
	for i := range p.candidates {
		sighted[p.candidates[i].ProviderID] = true
	}
	maps.DeleteFunc(p.tries, func(id string, _ orphan.Try) bool { return !sighted[id] })
	if p.read && !p.odd && len(p.tries) == 0 {
		p.Forget() // what was told may be told again
	}
}

// readMachines reads all owners live.
func (p *orphanPass) readMachines(ctx context.Context) error {
	return p.Timed(p.of.names().read, func() error {
		began := p.Now()
		err := p.of.readOwners(ctx, true)
		if err == nil {
			p.o.Read = p.Freshness(began, true)
		}
		return err
	})
}
