// Package fleet reconciles what concerns a whole fleet: whether the API servers answer, VMs and groups
// without an owner, nodes without a machine, and machines and sets whose owner is gone. They are kinds of
// package manager with one key each.
//
// A pass asks one of safety's decisions, and carries out what its plan asks for: listings, live reads,
// deletions, writes of nodes and clocks. Reachability decides for the whole process whether anything is
// frozen ([Reach]); the passes of machines, sets and pools ask it first.
//
// EXPERIMENTAL: the names in this package may change with any release.
package fleet

import (
	"context"
	"sync"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/pace"
	"github.com/millwright-go/millwright/manager/internal/secrets"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/orphan"
	"github.com/millwright-go/millwright/safety/reachability"
	"github.com/millwright-go/millwright/store"
)

// Config is what the kinds of the fleet need.
type Config struct {
	Machines    *engine.Objects[*machine.Machine]
	Classes     *engine.Objects[*machine.Class]
	Sets        *engine.Objects[*machineset.Set]        // nil: there are none
	Deployments *engine.Objects[*deployment.Deployment] // nil: there are none
	Pools       *engine.Objects[*machinepool.Pool]      // nil: there are none
	Nodes       store.Collection[*machine.Node]         // nil: there is no cluster
	Secrets     secrets.Secrets
	Driver      driver.Driver
	PoolDriver  pooldriver.Driver // nil: groups are not looked for
	Policy      *safety.Policy
	// Namespace is one that machines may be read in. Empty: that of a class.
	Namespace string
	// MachineKind names the kind of machines to hooks.
	MachineKind string

	// Own is set if another manager deletes orphans, and reports whether a machine belongs to this manager.
	// Then VMs are listed only to notice that VMs of its machines are missing. Nil: this manager deletes
	// orphans.
	Own func(object.Key) bool

	Reach *Reach
	// Paces are shared by all callers of the provider.
	Paces *pace.Paces
	// Hints returns reasons to list the VMs of classes before the next listing is due.
	Hints func(map[object.Key]orphan.Class) []orphan.Hint
	// Missing is called with machines whose VMs the last listings lack, or call unhealthy.
	Missing func([]orphan.Unlisted, []orphan.Unhealthy)
	// Frozen is called with whether everything is frozen because of a server; may be nil.
	Frozen func(server string, frozen bool)
}

// wait returns the step of a plan that waits. If everything is frozen, it waits for the thaw.
func (c *Config) wait(frozen bool, at time.Time, why decision.Why) engine.Step {
	if frozen {
		at = c.Reach.Thaw(at)
	}
	return engine.Step{At: at, Why: why}
}

// instances returns the provider IDs of all pools' instances, read live. A pool's instance has no machine,
// but is no orphan.
func (c *Config) instances(ctx context.Context) (map[string]bool, error) {
	if c.Pools == nil {
		return nil, nil
	}
	pools, err := c.Pools.Live().List(ctx, store.Query{})
	if err != nil || len(pools) == 0 {
		return nil, err
	}
	owned := make(map[string]bool)
	for _, p := range pools {
		for _, id := range p.Spec.ProviderIDs {
			owned[id] = id != ""
		}
	}
	return owned, nil
}

// firstLook is how long a pass waits that begins before the first check of the API servers has ended. It is
// also the shortest wait for a thaw.
const firstLook = time.Second

var reasonUnproven = decision.NewReason("NotAskedYet", "the API servers were not asked yet")

// Reach holds what this process knows about its API servers, for all passes. Without a policy, nothing is
// ever frozen.
type Reach struct {
	policy *safety.Policy
	now    func() time.Time

	mu    sync.Mutex
	known reachability.State
	next  time.Time // when the servers are checked again
	begun bool      // a first pass has ended
}

// NewReach returns a Reach that knows nothing yet.
func NewReach(p *safety.Policy, now func() time.Time) *Reach { return &Reach{policy: p, now: now} }

func (r *Reach) get() reachability.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known
}

func (r *Reach) set(known reachability.State, next time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known, r.next = known, next
}

func (r *Reach) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun = true
}

// Delay reports whether a pass must wait, and until when, because the API servers were not checked yet.
func (r *Reach) Delay() (engine.Result, bool) {
	if r.policy == nil {
		return engine.Result{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return engine.Result{At: r.now().Add(firstLook), Why: decision.Why{Reason: reasonUnproven}}, !r.begun
}

// Frozen reports whether everything is frozen, because an API server does not answer.
func (r *Reach) Frozen() bool { return r.policy != nil && r.get().Stage.Frozen() }

// ClockFrom returns when clocks start that ran while an API server did not answer: now while everything is
// frozen, and the end of the last outage later. Zero: this process has seen no outage.
func (r *Reach) ClockFrom() time.Time {
	if r.Frozen() {
		return r.now()
	}
	return r.get().From
}

// Thaw returns when to look at a frozen object again: at the next check, since no change of an object
// announces a thaw, or at the time at, if that is sooner and not zero.
func (r *Reach) Thaw(at time.Time) time.Time {
	r.mu.Lock()
	thaw := r.next
	r.mu.Unlock()
	if soon := r.now().Add(firstLook); thaw.Before(soon) {
		thaw = soon
	}
	if at.IsZero() || thaw.Before(at) {
		return thaw
	}
	return at
}
