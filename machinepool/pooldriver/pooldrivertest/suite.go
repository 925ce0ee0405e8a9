package pooldrivertest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/conformance"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/object"
)

// Suite says how to make the pool driver under test. Its fields are like those of drivertest.Suite.
type Suite struct {
	New      func(t *testing.T) Setup
	Patience time.Duration
	Prompt   time.Duration
}

// Setup is a pool driver and the objects to test it with. Only Driver and Class are required. A nil
// field skips the checks that need it.
type Setup struct {
	Driver pooldriver.Driver
	// Class is what groups are made from. The suite also tests an invalid copy of it.
	Class *machine.Class
	// Secret goes with every call, Bootstrap with each create and update. Their
	// values must appear in no answer.
	Secret, Bootstrap *machine.Secret
	// NewPool returns a new pool of that name, a DNS label of up to 30 characters.
	// Nil: a pool of Class with nothing else set.
	NewPool func(name string) *machinepool.Pool

	// Changed is a class of the same cluster as Class, to which a group can be updated.
	Changed *machine.Class
	// OtherCluster is for groups of another cluster in the same account.
	OtherCluster *machine.Class
	// Invalid can be decoded, but no group can be made from it.
	Invalid *machine.Class

	// Settle returns once the provider has carried out everything so far: instances have come or
	// gone. It is called from several goroutines at once. Nil: that takes no time.
	Settle func(ctx context.Context)
	// Count returns how many instances there really are in the account, without using the driver.
	// Only its changes count.
	Count func() int
	// AskDrain makes the provider want to remove an instance, and wait for its drain.
	AskDrain func(providerID string)
	// Leftovers names what is created along with groups and exists now: templates, disks, addresses. It
	// does not use the driver. Only what is new counts.
	Leftovers func() []string
	// Exhaust makes the provider refuse further instances for lack of quota or capacity, until restore
	// is called.
	Exhaust func(ctx context.Context) (restore func())
	// Again returns a second driver for the same provider, as another process has it: it shares nothing
	// with Driver.
	Again func() pooldriver.Driver
}

// check is one duty of a pool driver.
type check struct {
	name string
	run  func(*trial)
}

type group struct {
	name   string
	checks []check
}

// groups lists the checks in the order in which they are run: what others build on comes first.
func groups() []group {
	return []group{
		{"Create", firstChecks},
		{"Spelling", spellingChecks},
		{"Status", statusChecks},
		{"Create", createChecks},
		{"Scale", scaleChecks},
		{"Update", updateChecks},
		{"Delete", deleteChecks},
		{"Instances", instanceChecks},
		{"Arguments", argumentChecks},
		{"List", listChecks},
		{"Quota", quotaChecks},
		{"Cluster", clusterChecks},
		{"Secrets", secretChecks},
		{"Context", contextChecks},
		{"Concurrent", concurrentChecks},
		{"LostAnswer", lostAnswerChecks},
		{"Processes", processChecks},
	}
}

// Run checks every duty of a pool driver, as drivertest.Run does for a driver: one cause fails one
// check, and a failure says why its duty matters.
//
// To lose an answer, the suite uses the driver's pooldriver.FaultHook if there is one. Otherwise it
// replaces the answer by an error itself.
func Run(t *testing.T, s Suite) {
	t.Helper()
	conformance.Run(t, s.checks())
}

func (s Suite) checks() (all []conformance.Check) {
	for _, g := range groups() {
		for _, c := range g.checks {
			check := duties.Check(g.name, c.name)
			check.Start = func(t *testing.T, tb testing.TB) (*conformance.Trial, func()) {
				r := newTrial(tb, s, s.New(t))
				return r.Trial, func() { r.tryPool(c) }
			}
			all = append(all, check)
		}
	}
	return all
}

// trial is one run of one check, with a pool driver.
type trial struct {
	*conformance.Trial
	setup      Setup
	driver     pooldriver.Driver
	before     int             // Setup.Count at the start
	leftBefore map[string]bool // Setup.Leftovers at the start
	pools      []creation
}

// creation is a pool whose group may have been created and must be deleted at the end.
type creation struct {
	pool  *machinepool.Pool
	class *machine.Class
}

func newTrial(t testing.TB, s Suite, setup Setup) *trial {
	r := &trial{setup: setup, driver: setup.Driver, Trial: conformance.New(t, conformance.Options{
		Patience: s.Patience, Prompt: s.Prompt, Settle: setup.Settle,
		Responsive: []driver.Method{machinepool.CreatePool, machinepool.GetPoolStatus},
	})}
	r.ForbidInAnswers(setup.Secret, setup.Class) // no answer may contain its values
	r.ForbidInAnswers(setup.Bootstrap, setup.Class)
	return r
}

// tryPool runs a check and cleans up after it.
func (r *trial) tryPool(c check) {
	if r.driver == nil || r.setup.Class == nil {
		r.Fatalf("Setup has no Driver or no Class")
	}
	r.Cleanup(func() { r.Quiet(r.cleanUp) })
	if r.setup.Count != nil {
		r.before = r.setup.Count()
	}
	if r.setup.Leftovers != nil {
		r.leftBefore = map[string]bool{}
		for _, thing := range r.setup.Leftovers() {
			r.leftBefore[thing] = true
		}
	}
	c.run(r)
}

// cleanUp deletes all groups that the trial may have made. It only logs what can't be deleted, because
// other checks test deletion.
func (r *trial) cleanUp() {
	ctx := context.WithoutCancel(r.Ctx)
	for _, p := range r.pools {
		if r.Stuck() {
			return
		}
		within, cancel := context.WithTimeout(ctx, r.Patience)
		if _, err := r.deleteOf(within, p.pool, p.class); err != nil {
			r.Logf("the group of pool %s may be left behind: %v", p.pool.Name, err)
		}
		cancel()
	}
}

// pool returns a new pool under a new name, without a group.
func (r *trial) pool() *machinepool.Pool { return r.poolOf(r.setup.Class) }

func (r *trial) poolOf(class *machine.Class) *machinepool.Pool {
	p := r.newPool(fmt.Sprintf("%s-%d", r.Names, len(r.pools)))
	r.pools = append(r.pools, creation{p, class})
	return p
}

func (r *trial) newPool(name string) *machinepool.Pool {
	if r.setup.NewPool != nil {
		return r.setup.NewPool(name)
	}
	return &machinepool.Pool{
		Meta: object.Meta{Key: object.Key{Namespace: r.setup.Class.Namespace, Name: name}, UID: "uid-" + name},
		Spec: machinepool.Spec{ClusterName: "drivertest", Template: machinepool.Template{Class: machine.ClassRef{Name: r.setup.Class.Name}}},
	}
}

// created makes a pool's group; that must succeed. It returns the pool as the
// library stores it then.
func (r *trial) created(p *machinepool.Pool, n int32) *machinepool.Pool {
	r.Helper()
	return r.createdOf(p, r.setup.Class, n)
}

func (r *trial) createdOf(p *machinepool.Pool, c *machine.Class, n int32) *machinepool.Pool {
	r.Helper()
	a, err := r.createOf(r.Ctx, p, c, n)
	if err != nil {
		r.Fatalf("CreatePool: %v", err)
	}
	if a == nil || a.GroupID == "" {
		r.Fatalf("CreatePool answered OK without a group ID")
	}
	recorded := p.Clone()
	recorded.Status.GroupID, recorded.Status.LastKnown = a.GroupID, a.LastKnownState
	r.Settled()
	return recorded
}

// has requires that a group has its size, and returns its instances' IDs.
func (r *trial) has(p *machinepool.Pool, n int32, duty string) []string {
	r.Helper()
	return r.hasOf(p, r.setup.Class, n, duty)
}

func (r *trial) hasOf(p *machinepool.Pool, c *machine.Class, n int32, duty string) []string {
	r.Helper()
	r.Settled()
	a, err := r.statusOf(r.Ctx, p, c)
	if err != nil || a == nil {
		r.Fatalf("GetPoolStatus of pool %s: %v: %s", p.Name, err, duty)
	}
	if a.GroupID == "" {
		r.Errorf("GetPoolStatus answered OK without a group ID")
	}
	var ids []string
	for _, i := range a.Instances {
		if i.ProviderID == "" || slices.Contains(ids, i.ProviderID) {
			r.Errorf("GetPoolStatus has an instance %q without an ID of its own", i.ProviderID)
		}
		ids = append(ids, i.ProviderID)
	}
	if a.Target != n || int32(len(ids)) != n {
		r.Errorf("the group of pool %s has the target %d and the instances %q, not %d: %s", p.Name, a.Target, ids, n, duty)
	}
	slices.Sort(ids)
	return ids
}

// account requires that there are n instances more in the account than at the start, if Setup.Count can
// tell.
func (r *trial) account(n int, duty string) {
	r.Helper()
	if r.setup.Count == nil {
		return
	}
	r.Settled()
	if got := r.setup.Count() - r.before; got != n {
		r.Errorf("the account has %d instances more than before, not %d: %s", got, n, duty)
	}
}

// nothingLeft requires that nothing is left of groups that are gone, if Setup.Leftovers can tell.
func (r *trial) nothingLeft(duty string) {
	r.Helper()
	if r.setup.Leftovers == nil {
		return
	}
	r.Settled()
	left := slices.DeleteFunc(r.setup.Leftovers(), func(thing string) bool { return r.leftBefore[thing] })
	if len(left) > 0 {
		r.Errorf("%q is left of groups that are gone: %s", left, duty)
	}
}
