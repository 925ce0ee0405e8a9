package drivertest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/object"
)

// PoolSuite says how to make the pool driver under test. Its fields are as those
// of Suite.
type PoolSuite struct {
	New      func(t *testing.T) PoolSetup
	Patience time.Duration
	Prompt   time.Duration
}

// PoolSetup is a pool driver and what it is tried with. Only Driver and Class
// are needed; a nil field leaves out the checks that need it.
type PoolSetup struct {
	Driver pooldriver.Driver
	// Class is what groups are made from; it is also spoilt to see it refused.
	Class *machine.Class
	// Secret goes with every call, Bootstrap with each create and update. Their
	// values must appear in no answer.
	Secret, Bootstrap *machine.Secret
	// NewPool returns a new pool of that name, a DNS label of up to 30 characters.
	// Nil: a pool of Class with nothing else set.
	NewPool func(name string) *machinepool.Pool

	// Changed is of the same cluster as Class; a group can be updated to it.
	Changed *machine.Class
	// OtherCluster is for groups of another cluster in the same account.
	OtherCluster *machine.Class
	// Invalid can be decoded, but no group can be made from it.
	Invalid *machine.Class

	// Settle returns once the provider has done all that was asked for so far:
	// instances that were to come or go have. Nil: that takes no time.
	Settle func(ctx context.Context)
	// Count returns how many instances there really are in the account, by other
	// means than the driver. Only its changes count.
	Count func() int
	// AskDrain has the provider want to remove an instance, and wait for its drain.
	AskDrain func(providerID string)
}

// poolCheck is one thing that a pool driver promises.
type poolCheck struct {
	name string
	run  func(*poolTrial)
}

type poolGroup struct {
	name   string
	checks []poolCheck
}

func poolGroups() []poolGroup {
	return []poolGroup{
		{"Create", poolCreateChecks},
		{"Status", poolStatusChecks},
		{"Scale", poolScaleChecks},
		{"Update", poolUpdateChecks},
		{"Delete", poolDeleteChecks},
		{"Instances", poolInstanceChecks},
		{"List", poolListChecks},
		{"Cluster", poolClusterChecks},
		{"Arguments", poolArgumentChecks},
		{"Secrets", poolSecretChecks},
		{"Context", poolContextChecks},
		{"Concurrent", poolConcurrentChecks},
		{"LostAnswer", poolLostAnswerChecks},
	}
}

// RunPools checks every duty of a pool driver, as Run does for a driver. Lost
// answers are tried with drivers that have a pooldriver.FaultHook.
func RunPools(t *testing.T, s PoolSuite) {
	t.Helper()
	var total int
	var left []string
	for _, g := range poolGroups() {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.checks {
				total++
				t.Run(c.name, func(t *testing.T) {
					r := newPoolTrial(t, s, s.New(t))
					defer func() {
						if t.Skipped() && !t.Failed() {
							left = append(left, fmt.Sprintf("%s/%s: %s", g.name, c.name, r.skipped))
						}
					}()
					r.tryPool(c)
				})
			}
		})
	}
	if len(left) > 0 {
		t.Logf("%d of %d checks were not run:\n  %s", len(left), total, strings.Join(left, "\n  "))
	}
}

// poolTrial is one check's time with a pool driver. The trial in it watches the
// calls; it knows no driver.
type poolTrial struct {
	*trial
	setup  PoolSetup
	driver pooldriver.Driver
	pools  []pooled
}

// pooled is a pool whose group may have been made, to be deleted in the end.
type pooled struct {
	pool  *machinepool.Pool
	class *machine.Class
}

func newPoolTrial(t testing.TB, s PoolSuite, setup PoolSetup) *poolTrial {
	base := newTrial(t, Suite{Patience: s.Patience, Prompt: s.Prompt},
		Setup{Class: setup.Class, Secret: setup.Secret, Settle: setup.Settle, Count: setup.Count})
	base.secrets.add(setup.Bootstrap, setup.Class)
	return &poolTrial{trial: base, setup: setup, driver: setup.Driver}
}

// tryPool runs a check and cleans up after it.
func (r *poolTrial) tryPool(c poolCheck) {
	if r.driver == nil || r.setup.Class == nil {
		r.Fatalf("PoolSetup has no Driver or no Class")
	}
	r.Cleanup(func() {
		ctx := context.WithoutCancel(r.ctx)
		for _, p := range r.pools {
			if r.stuck.Load() {
				return
			}
			within, cancel := context.WithTimeout(ctx, r.suite.Patience)
			if _, err := r.deleteOf(within, p.pool, p.class); err != nil {
				r.Logf("the group of pool %s may be left behind: %v", p.pool.Name, err)
			}
			cancel()
		}
	})
	if r.setup.Count != nil {
		r.before = r.setup.Count()
	}
	c.run(r)
}

// pool returns a new pool under a new name, without a group.
func (r *poolTrial) pool() *machinepool.Pool { return r.poolOf(r.setup.Class) }

func (r *poolTrial) poolOf(class *machine.Class) *machinepool.Pool {
	p := r.newPool(fmt.Sprintf("%s-%d", r.names, len(r.pools)))
	r.pools = append(r.pools, pooled{p, class})
	return p
}

func (r *poolTrial) newPool(name string) *machinepool.Pool {
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
func (r *poolTrial) created(p *machinepool.Pool, n int32) *machinepool.Pool {
	r.Helper()
	return r.createdOf(p, r.setup.Class, n)
}

func (r *poolTrial) createdOf(p *machinepool.Pool, c *machine.Class, n int32) *machinepool.Pool {
	r.Helper()
	a, err := r.createOf(r.ctx, p, c, n)
	if err != nil {
		r.Fatalf("CreatePool: %v", err)
	}
	if a == nil || a.GroupID == "" {
		r.Fatalf("CreatePool answered OK without a group ID")
	}
	recorded := p.Clone()
	recorded.Status.GroupID, recorded.Status.LastKnown = a.GroupID, a.LastKnownState
	r.settle()
	return recorded
}

// has requires that a group has its size, and returns its instances' IDs.
func (r *poolTrial) has(p *machinepool.Pool, n int32, duty string) []string {
	r.Helper()
	return r.hasOf(p, r.setup.Class, n, duty)
}

func (r *poolTrial) hasOf(p *machinepool.Pool, c *machine.Class, n int32, duty string) []string {
	r.Helper()
	r.settle()
	a, err := r.statusOf(r.ctx, p, c)
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

// account requires that there are so many instances more than in the beginning.
func (r *poolTrial) account(n int, duty string) {
	r.Helper()
	if r.setup.Count == nil {
		return
	}
	r.settle()
	if got := r.setup.Count() - r.before; got != n {
		r.Errorf("the account has %d instances more than before, not %d: %s", got, n, duty)
	}
}
