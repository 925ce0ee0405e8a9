package manager

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// orphans deletes VMs that no machine owns. Its memory may be lost: then they
// are sighted anew.
type orphans struct {
	*shell
	secrets secrets
	memo    memo

	asked     map[object.Key]safety.OrphanClass // without listings
	sightings []safety.Sighting
	unlisted  []safety.Unlisted
	spent     []safety.Spent
	began     time.Time             // of the first pass
	tries     map[string]safety.Try // by provider ID
}

func newOrphans(s *shell) *orphans {
	return &orphans{
		shell: s, secrets: s.secretsOfClasses(),
		asked: make(map[object.Key]safety.OrphanClass), tries: make(map[string]safety.Try),
	}
}

// Kind implements Reconciler.
func (r *orphans) Kind() Kind { return KindOrphans }

// Reconcile implements Reconciler.
func (r *orphans) Reconcile(ctx context.Context, key object.Key) (Result, error) {
	if wait, yes := r.unproven(); yes {
		return wait, nil
	}
	return r.reconcile(ctx, KindOrphans, key, &r.memo, func() pass { return &orphanPass{orphans: r, key: key} })
}

// orphanPass is one pass over the VMs of all classes.
type orphanPass struct {
	*orphans
	key     object.Key
	classes map[object.Key]*machine.Class
	o       safety.OrphanObservation
	read    bool // machines were read in this pass
	odd     bool // something was warned of
}

// observe reads the classes. Machines are read once VMs were listed, not before.
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
		NoCluster: p.Cluster == nil, Unlisted: p.unlisted, Sightings: p.sightings, Spent: p.spent, Began: p.began, Tries: p.failed(), Deleted: make(map[string]bool),
	}
	for _, c := range classes {
		class := p.asked[c.Key]
		class.Key = c.Key
		p.classes[c.Key], known[c.Key] = c, class
		p.o.Classes = append(p.o.Classes, class)
	}
	p.asked = known
	p.o.Hints = p.hints.open(known)
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
	p.missing.note(plan.Unlisted)
	for _, why := range plan.Warn {
		p.odd = true
		p.tell(ctx, &p.memo, KindOrphans, p.key, Warning, string(why.Reason), why)
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

// readMachines reads all machines live. Where there are none, sets and
// deployments say whether that may be so.
func (p *orphanPass) readMachines(ctx context.Context) error {
	return p.timed(KindOrphans, p.key, "ReadMachines", func() error {
		began := p.Now()
		machines, err := p.Machines.Live().List(ctx, store.Query{})
		owners := 0
		if err == nil && len(machines) == 0 {
			owners, err = p.owners(ctx)
		}
		if err == nil {
			p.o.Machines, p.o.Live, p.o.Owners = machines, began, owners
		}
		return err
	})
}

// owners counts all sets and deployments, live.
func (o *Options) owners(ctx context.Context) (int, error) {
	n := 0
	if o.Sets != nil {
		sets, err := o.Sets.Live().List(ctx, store.Query{})
		if err != nil {
			return 0, err
		}
		n += len(sets)
	}
	if o.Deployments != nil {
		deployments, err := o.Deployments.Live().List(ctx, store.Query{})
		if err != nil {
			return 0, err
		}
		n += len(deployments)
	}
	return n, nil
}
