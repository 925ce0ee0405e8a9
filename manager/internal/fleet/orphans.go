package fleet

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/secrets"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/orphan"
	"github.com/millwright-go/millwright/store"
)

// OrphanReconciler deletes VMs that no machine owns, and groups that no pool owns.
type OrphanReconciler struct {
	*engine.Reconciler                    // of VMs
	groups             *engine.Reconciler // nil: groups are not listed
}

// NewOrphans returns a reconciler that deletes VMs and groups without an owner.
func NewOrphans(e *engine.Engine, c Config) *OrphanReconciler {
	r := &OrphanReconciler{Reconciler: newOrphans(e, c, false)}
	if c.Own == nil && c.PoolDriver != nil && pooldriver.ListsPools(c.PoolDriver) {
		r.groups = newOrphans(e, c, true)
	}
	return r
}

// Reconcile makes two passes, one over VMs and one over groups, so that trouble with groups does not delay
// VMs, nor the other way round.
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
	return e.Reconciler(engine.Kind{Name: "orphans", Delay: c.Reach.Delay, Begin: r.begin})
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
		Groups: p.groups, NoCluster: p.Nodes == nil && !p.groups, LookOnly: p.Own != nil,
		Unlisted: p.unlisted, Sighted: p.sighted, Unhealthy: p.unhealthy, Candidates: p.candidates,
		Spent: p.spent, Began: p.began, Tries: p.failed(), Deleted: make(map[string]bool),
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
func (p *orphanPass) Decide(ctx context.Context) (engine.Step, error) {
	p.o.Frozen = p.Reach.Frozen()
	var err error
	if p.plan, err = orphan.Decide(&p.o, p.Policy, p.Now()); err != nil {
		return engine.Step{}, err
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
		p.warned = true
		p.EmitOnce(ctx, engine.Warning, why)
	}
	switch {
	case len(plan.List) > 0, plan.ReadMachines:
		return engine.Step{Verb: engine.Read}, nil
	case len(plan.Delete) > 0:
		return engine.Step{Verb: engine.Mutate, Why: plan.Why, Live: true}, nil
	}
	p.remember()
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

// Skipped implements engine.Skipper. The listings have been judged, and the next ones are not due yet.
func (p *orphanPass) Skipped() time.Time {
	p.remember()
	return time.Time{}
}

// remember notes how the listings were answered, now that they were judged, and
// drops what need not be remembered any more.
func (p *orphanPass) remember() {
	for _, class := range p.o.Classes {
		class.Listing = nil
		p.asked[class.Key] = class
	}
	sighted := make(map[string]bool, len(p.candidates))
	for i := range p.candidates {
		sighted[p.candidates[i].ProviderID] = true
	}
	maps.DeleteFunc(p.tries, func(id string, _ orphan.Try) bool { return !sighted[id] })
	if p.read && !p.warned && len(p.tries) == 0 {
		p.Forget() // the next warning is emitted, even if an earlier one says the same
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

// orphans remembers the VMs, or the groups, that no owner was found for. Its memory may be lost: then they
// have to be found again.
type orphans struct {
	Config
	groups bool

	asked      map[object.Key]orphan.Class // without listings
	candidates []orphan.Candidate
	unlisted   []orphan.Unlisted
	sighted    []string
	unhealthy  []orphan.Unhealthy
	spent      []safety.Spent
	began      time.Time             // of the first pass
	tries      map[string]orphan.Try // by provider ID
}

// failed returns the deletions that failed, or were put off, ordered by ID.
func (r *orphans) failed() []orphan.Try {
	tries := make([]orphan.Try, 0, len(r.tries))
	for _, id := range slices.Sorted(maps.Keys(r.tries)) {
		tries = append(tries, r.tries[id])
	}
	return tries
}

// orphanKind is the kind of thing that a pass looks for: VMs, or groups.
type orphanKind interface {
	names() kindNames
	// list lists a class's VMs or groups: the names of their owners by ID, and which are unhealthy. It may
	// be called for several classes at once.
	list(ctx context.Context, class *machine.Class, secret *machine.Secret) (map[string]string, map[string]bool, error)
	// spared returns the IDs that are never judged, even if they are listed.
	spared(ctx context.Context) (map[string]bool, error)
	// readOwners reads the owners from a cache; or live, with a count of what else is in the store.
	readOwners(ctx context.Context, live bool) error
	// still reports whether an order still holds, by a live read.
	still(ctx context.Context, order *orphan.Delete) (bool, error)
	// about returns the key of the object that the VM or group was made for.
	about(order *orphan.Delete) object.Key
	// delete carries an order out.
	delete(ctx context.Context, order *orphan.Delete, class *machine.Class, secret *machine.Secret) error
}

// kindNames are the names of a kind's effects for hooks, and the reason of a failed deletion.
type kindNames struct {
	list, read, delete string
	change             string // names a deletion in a dry run; the object follows
	failed             decision.Reason
}

// orphanPass is one pass over the VMs, or the groups, of all classes.
type orphanPass struct {
	*engine.Pass
	*orphans
	of      orphanKind
	plan    orphan.Plan
	classes map[object.Key]*machine.Class
	o       orphan.Observation
	read    bool // owners were read in this pass
	warned  bool
}

// withDropped returns a listing with the entries that can't be acted upon, so that they are
// reported. An entry that has an ID loses its name, which may be cut: so it
// is neither a machine's nor an orphan.
func withDropped(listed, dropped map[string]string) map[string]string {
	if len(dropped) == 0 {
		return listed
	}
	all := make(map[string]string, len(listed)+len(dropped))
	for id, name := range dropped {
		if strings.TrimSpace(id) != "" {
			name = ""
		}
		all[id] = name
	}
	maps.Copy(all, listed)
	return all
}

var (
	reasonVMNotDeleted    = decision.NewReason("OrphanDeleteFailed", "orphan VM {name} could not be deleted: {code}: {detail}")
	reasonGroupNotDeleted = decision.NewReason("OrphanGroupDeleteFailed", "orphan group {name} could not be deleted: {code}: {detail}")
)

// orphanVMs are VMs that no machine owns.
type orphanVMs struct {
	*orphanPass
	spaces []string // namespaces that a machine may be in
}

func (*orphanVMs) names() kindNames {
	return kindNames{
		list: "ListVMs", read: "ReadMachines", delete: "DeleteOrphan", failed: reasonVMNotDeleted,
		change: "call DeleteMachine for machine ",
	}
}

func (p *orphanVMs) list(ctx context.Context, class *machine.Class, secret *machine.Secret) (map[string]string, map[string]bool, error) {
	got, err := p.Driver.ListMachines(ctx, &driver.ListMachinesRequest{Class: class.Clone(), Secret: secret})
	if err != nil {
		return nil, nil, err
	}
	return withDropped(got.Machines, got.Dropped), got.Unhealthy, nil
}

// spared returns the instances of pools.
func (p *orphanVMs) spared(ctx context.Context) (map[string]bool, error) { return p.instances(ctx) }

// readOwners reads the machines. If there are none, sets and deployments say whether
// that may be true.
func (p *orphanVMs) readOwners(ctx context.Context, live bool) error {
	reader := store.Reader[*machine.Machine](p.Machines)
	if live {
		reader = p.Machines.Live()
	}
	machines, err := reader.List(ctx, store.Query{})
	if p.Own != nil {
		machines = slices.DeleteFunc(slices.Clone(machines), func(m *machine.Machine) bool { return !p.Own(m.Key) })
	}
	owners := 0
	if err == nil && len(machines) == 0 && live {
		owners, err = p.owners(ctx)
	}
	if err == nil {
		p.o.Machines, p.o.Owners = machines, owners
		p.spaces = p.namespaces()
	}
	return err
}

// still reads the machines of the order's name, in all namespaces.
func (p *orphanVMs) still(ctx context.Context, order *orphan.Delete) (bool, error) {
	for _, namespace := range p.spaces {
		m, err := p.Machines.Live().Get(ctx, object.Key{Namespace: namespace, Name: order.Name})
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return false, err
		case !order.StillOrphan(m):
			return false, nil
		}
	}
	return true, nil
}

func (*orphanVMs) about(order *orphan.Delete) object.Key {
	return object.Key{Namespace: order.Class.Namespace, Name: order.Name}
}

// delete deletes a VM by its ID. The driver gets a machine that exists only for this call.
func (p *orphanVMs) delete(ctx context.Context, order *orphan.Delete, class *machine.Class, secret *machine.Secret) error {
	secrets.PlaceName(secret, order.Name)
	m := &machine.Machine{Meta: object.Meta{Key: p.about(order)}}
	m.Spec.ProviderID, m.Spec.Class.Name = order.ProviderID, order.Class.Name
	_, err := p.Driver.DeleteMachine(ctx, &driver.DeleteMachineRequest{Machine: m, Class: class.Clone(), Secret: secret})
	return err
}

// namespaces returns the namespaces that a machine may be in: those of classes, and of machines
// whose class is gone.
func (p *orphanVMs) namespaces() []string {
	var all []string
	seen := make(map[string]bool)
	note := func(namespace string) {
		if !seen[namespace] {
			seen[namespace] = true
			all = append(all, namespace)
		}
	}
	for key := range p.classes {
		note(key.Namespace)
	}
	for _, m := range p.o.Machines {
		note(m.Namespace)
	}
	slices.Sort(all)
	return all
}

// owners counts all sets and deployments, live.
func (c *Config) owners(ctx context.Context) (int, error) {
	n := 0
	if c.Sets != nil {
		sets, err := c.Sets.Live().List(ctx, store.Query{})
		if err != nil {
			return 0, err
		}
		n += len(sets)
	}
	if c.Deployments != nil {
		deployments, err := c.Deployments.Live().List(ctx, store.Query{})
		if err != nil {
			return 0, err
		}
		n += len(deployments)
	}
	return n, nil
}

// orphanGroups are groups without a pool. A group loses its pool if a create takes effect after the pool is
// gone, or if a user removes the finalizer from the pool.
type orphanGroups struct {
	*orphanPass
	mu    sync.Mutex
	pools map[groupOf]object.Key // the pools that listed groups were made for
}

// groupOf is a group as a class lists it.
type groupOf struct {
	class object.Key
	id    string
}

func (*orphanGroups) names() kindNames {
	return kindNames{
		list: "ListGroups", read: "ReadPools", delete: "DeleteOrphanGroup", failed: reasonGroupNotDeleted,
		change: "call DeletePool for pool ",
	}
}

func (p *orphanGroups) list(ctx context.Context, class *machine.Class, secret *machine.Secret) (map[string]string, map[string]bool, error) {
	lister, ok := pooldriver.As[pooldriver.Lister](p.PoolDriver)
	if !ok {
		return nil, nil, nil
	}
	got, err := lister.ListPools(ctx, &pooldriver.ListPoolsRequest{Class: class.Clone(), Secret: secret})
	if err != nil {
		return nil, nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, pool := range got.Groups {
		p.pools[groupOf{class.Key, id}] = pool
	}
	return withDropped(texts(got.Groups), texts(got.Dropped)), nil, nil
}

func texts(keys map[string]object.Key) map[string]string {
	all := make(map[string]string, len(keys))
	for id, key := range keys {
		all[id] = key.String()
	}
	return all
}

func (*orphanGroups) spared(context.Context) (map[string]bool, error) { return nil, nil }

// readOwners reads the pools. If there are none, the rest of the store says whether
// that may be true.
func (p *orphanGroups) readOwners(ctx context.Context, live bool) error {
	reader := store.Reader[*machinepool.Pool](p.Pools)
	if live {
		reader = p.Pools.Live()
	}
	pools, err := reader.List(ctx, store.Query{})
	others := 0
	if err == nil && len(pools) == 0 && live {
		others, err = p.others(ctx)
	}
	if err == nil {
		p.o.Pools, p.o.Owners = pools, others
	}
	return err
}

// others counts all machines, sets and deployments, live.
func (p *orphanGroups) others(ctx context.Context) (int, error) {
	machines, err := p.Machines.Live().List(ctx, store.Query{})
	if err != nil || len(machines) > 0 {
		return len(machines), err
	}
	return p.owners(ctx)
}

// still reads all pools: a pool of another name may have recorded the group.
func (p *orphanGroups) still(ctx context.Context, order *orphan.Delete) (bool, error) {
	pools, err := p.Pools.Live().List(ctx, store.Query{})
	if err != nil {
		return false, err
	}
	for _, pool := range pools {
		if !order.StillOrphanGroup(pool) {
			return false, nil
		}
	}
	return true, nil
}

func (p *orphanGroups) about(order *orphan.Delete) object.Key {
	return p.pools[groupOf{order.Class, order.ProviderID}]
}

// delete deletes a group by its ID. The driver gets a pool that exists only for this call.
func (p *orphanGroups) delete(ctx context.Context, order *orphan.Delete, class *machine.Class, secret *machine.Secret) error {
	pool := &machinepool.Pool{Meta: object.Meta{Key: p.about(order)}}
	pool.Status.GroupID, pool.Spec.Template.Class.Name = order.ProviderID, order.Class.Name
	_, err := p.PoolDriver.DeletePool(ctx, &pooldriver.DeletePoolRequest{Request: pooldriver.Request{Pool: pool, Class: class.Clone(), Secret: secret}})
	return err
}
