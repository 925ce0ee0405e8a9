package manager

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/secrets"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// orphanReconciler deletes VMs that no machine owns, and groups that no pool does.
type orphanReconciler struct {
	*shell
	vms    *orphans
	groups *orphans // nil: nobody lists groups
}

func newOrphanReconciler(s *shell) *orphanReconciler {
	r := &orphanReconciler{shell: s, vms: newOrphans(s, false)}
	if s.managesPools() && pooldriver.ListsPools(s.PoolDriver) {
		r.groups = newOrphans(s, true)
	}
	return r
}

// Kind implements Reconciler.
func (r *orphanReconciler) Kind() Kind { return KindOrphans }

// Reconcile implements Reconciler. VMs and groups have a pass each, so that trouble
// with one does not keep the other waiting.
func (r *orphanReconciler) Reconcile(ctx context.Context, key object.Key) (Result, error) {
	result, err := r.vms.pass(ctx, key)
	if r.groups == nil {
		return result, err
	}
	next, failed := r.groups.pass(ctx, key)
	if next.At.Before(result.At) {
		result = next
	}
	return result, errors.Join(err, failed)
}

// orphans deletes VMs that no machine owns, or groups. Its memory may be lost: then
// they are sighted again.
type orphans struct {
	*shell
	groups  bool
	secrets secrets.Secrets
	memo    memo

	asked     map[object.Key]safety.OrphanClass // without listings
	sightings []safety.Sighting
	unlisted  []safety.Unlisted
	spent     []safety.Spent
	began     time.Time             // of the first pass
	tries     map[string]safety.Try // by provider ID
}

func newOrphans(s *shell, groups bool) *orphans {
	return &orphans{
		shell: s, groups: groups, secrets: s.secretsOfClasses(),
		asked: make(map[object.Key]safety.OrphanClass), tries: make(map[string]safety.Try),
	}
}

func (r *orphans) pass(ctx context.Context, key object.Key) (Result, error) {
	return r.reconcile(ctx, KindOrphans, key, &r.memo, func(*engine.Pass) pass {
		p := &orphanPass{orphans: r, key: key}
		p.of = &orphanVMs{orphanPass: p}
		if r.groups {
			p.of = &orphanGroups{orphanPass: p, pools: make(map[groupOf]object.Key)}
		}
		return p
	})
}

// quarry is what a pass looks for: VMs, or groups.
type quarry interface {
	// names are what hooks are told of, and what an event calls one.
	names() quarryNames
	// list asks for those of a class; names of owners by ID. It may be called at once
	// for several.
	list(ctx context.Context, class *machine.Class, secret *machine.Secret) (map[string]string, error)
	// spared are IDs that are not judged, whatever was listed.
	spared(ctx context.Context) (map[string]bool, error)
	// readOwners reads them from a cache, or live with a count of what else is in the store.
	readOwners(ctx context.Context, live bool) error
	// still reports whether an order holds, by what the store, not a cache, says now.
	still(ctx context.Context, order *safety.DeleteOrphan) (bool, error)
	// about is the object that an order is about.
	about(order *safety.DeleteOrphan) object.Key
	// delete carries an order out.
	delete(ctx context.Context, order *safety.DeleteOrphan, class *machine.Class, secret *machine.Secret) error
}

// quarryNames are effects, and the reason of a failed deletion.
type quarryNames struct {
	list, read, delete string
	failed             decision.Reason
}

// orphanPass is one pass over the VMs, or the groups, of all classes.
type orphanPass struct {
	*orphans
	of      quarry
	key     object.Key
	classes map[object.Key]*machine.Class
	o       safety.OrphanObservation
	read    bool // machines were read in this pass
	odd     bool // something was warned of
}

// observe reads the classes. Owners are read once VMs were listed, not before.
func (p *orphanPass) observe(ctx context.Context, fresh bool) error {
	reader := store.Reader[*machine.Class](p.Classes)
	if fresh {
		reader = p.Classes.Live()
	}
	classes, err := reader.List(ctx, store.Query{})
	if err != nil {
		return err
	}
	p.classes = make(map[object.Key]*machine.Class, len(classes))
	known := make(map[object.Key]safety.OrphanClass, len(classes))
	if p.began.IsZero() {
		p.began = p.Now()
	}
	p.o = safety.OrphanObservation{
		Groups: p.groups, NoCluster: p.Cluster == nil && !p.groups, Unlisted: p.unlisted, Sightings: p.sightings, Spent: p.spent, Began: p.began, Tries: p.failed(), Deleted: make(map[string]bool),
	}
	for _, c := range classes {
		class := p.asked[c.Key]
		class.Key = c.Key
		p.classes[c.Key], known[c.Key] = c, class
		p.o.Classes = append(p.o.Classes, class)
	}
	p.asked = known
	if !p.groups {
		p.o.Hints = p.hints.open(known)
	}
	return nil
}

// failed are the deletes that failed last, in order.
func (r *orphans) failed() []safety.Try {
	tries := make([]safety.Try, 0, len(r.tries))
	for _, id := range slices.Sorted(maps.Keys(r.tries)) {
		tries = append(tries, r.tries[id])
	}
	return tries
}

func (p *orphanPass) step(ctx context.Context) (Result, bool, error) {
	p.o.Frozen = p.frozen()
	plan, err := safety.DecideOrphans(&p.o, p.SafetyPolicy, p.Now())
	if err != nil {
		return Result{}, false, err
	}
	p.sightings, p.o.Sightings = plan.Sightings, plan.Sightings
	p.spent, p.o.Spent = plan.Spent, plan.Spent
	p.unlisted, p.o.Unlisted = plan.Unlisted, plan.Unlisted
	if !p.groups {
		p.missing.note(plan.Unlisted)
	}
	for _, why := range plan.Warn {
		p.odd = true
		p.tell(ctx, &p.memo, KindOrphans, p.key, Warning, why)
	}
	switch {
	case len(plan.List) > 0:
		err = p.list(ctx, plan.List)
	case plan.ReadMachines:
		err = p.readMachines(ctx)
	case len(plan.Delete) > 0:
		err = p.collect(ctx, plan.Delete)
	default:
		p.rest()
		return p.lookFor(p.o.Frozen, plan.At, plan.Why), true, nil
	}
	return Result{}, false, err
}

// put implements putter: what was listed has been judged, and is not to be
// listed again before its time.
func (p *orphanPass) put() time.Time {
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
	sighted := make(map[string]bool, len(p.sightings))
	for i := range p.sightings {
		sighted[p.sightings[i].ProviderID] = true
	}
	maps.DeleteFunc(p.tries, func(id string, _ safety.Try) bool { return !sighted[id] })
	if p.read && !p.odd && len(p.tries) == 0 {
		p.memo.forget(p.key) // what was told may be told again
	}
}

// readMachines reads all owners live.
func (p *orphanPass) readMachines(ctx context.Context) error {
	return p.timed(KindOrphans, p.key, p.of.names().read, func() error {
		began := p.Now()
		err := p.of.readOwners(ctx, true)
		if err == nil {
			p.o.Read = p.since(began)
		}
		return err
	})
}
