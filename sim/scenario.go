package sim

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
)

// Scenario is a world, what is in it, and what is done to it, as plain data. Faults go on until the
// last step and Calm are over. Then everything has to converge, and is deleted in the end. The zero
// value is an empty world.
type Scenario struct {
	Options Options
	// Classes exist besides "small".
	Classes     []string
	Deployments []*deployment.Deployment
	// Pools exist besides them. If there are any, Options.Pools may be nil: the provider of groups
	// is then the simplest one.
	Pools []*machinepool.Pool
	// Apps are started before anything else happens.
	Apps []App
	// Lone adds a machine that belongs to no set and that no selector picks. It is deleted with the
	// deployments.
	Lone bool
	// Steps are done one after another.
	Steps []Step
	// Calm is how long after the last step the faults stop.
	Calm time.Duration
	// Limit is how long convergence may take once the faults have stopped, and then the deletion.
	// Zero: 48 h.
	Limit time.Duration
	// Keep leaves the deployments at the end. Without it they are deleted, and the run shows
	// whether anything stays behind.
	Keep bool

	needs []string // the code that a written scenario had
}

// These tell how far a scenario has come.
type (
	// allAtRest: all has converged, and nothing is to be done.
	allAtRest struct{}
	// allGone: all was deleted, and nothing is left.
	allGone struct{}
)

// Result is the outcome of a scenario.
type Result struct {
	// Violation is the first violation of a rule, or what did not converge in time. It is nil if
	// there is none.
	Violation *Violation
	Stats     Stats
	// Left is what was there at the end, counted by kind.
	Left Left
	// Took is how long it was, in the world's time.
	Took time.Duration
}

// Left counts what is there.
type Left struct {
	Deployments, Sets, Machines, Nodes, VMs int
	Pools, Groups                           int
}

// None reports whether nothing is left.
func (l Left) None() bool { return l == Left{} }

// String returns what is left.
func (l Left) String() string {
	text := fmt.Sprintf("%d deployments, %d sets, %d machines, %d nodes, %d VMs", l.Deployments, l.Sets, l.Machines, l.Nodes, l.VMs)
	if l.Pools+l.Groups > 0 {
		text += fmt.Sprintf(", %d pools, %d groups", l.Pools, l.Groups)
	}
	return text
}

// Stats counts what has happened in a world. The zero value is nothing.
type Stats struct {
	// Steps are calls of the manager that left its process, and events that were delivered to it.
	// Reads from its caches don't count.
	Steps int
	// Passes are those of all reconcilers that came to an end.
	Passes int
	// Calls are those that reached the provider.
	Calls map[codes.Call]int
	// PoolCalls are those about groups. PoolRefusals are those of them that were refused, by code
	// and call, which Faults counts as CallFailed too.
	PoolCalls    map[machinepool.Call]int
	PoolRefusals map[PoolRefusal]int
	// Faults are how often each kind of fault occurred.
	Faults map[Fault]int
	// Refusals are the CallFailed among them, by code and call.
	Refusals map[Refusal]int
	// Actions are what users asked of single machines, sets and VMs and that took effect.
	Actions map[Action]int
	// Collected is how many VMs were deleted as orphans.
	Collected int
}

// Kills is how many times the manager was killed.
func (s *Stats) Kills() int { return s.Faults[KilledBefore] + s.Faults[KilledAfter] }

// Add adds what has happened in another world.
func (s *Stats) Add(other *Stats) {
	s.Steps, s.Passes, s.Collected = s.Steps+other.Steps, s.Passes+other.Passes, s.Collected+other.Collected
	s.Calls = sum(s.Calls, other.Calls)
	s.PoolCalls = sum(s.PoolCalls, other.PoolCalls)
	s.PoolRefusals = sum(s.PoolRefusals, other.PoolRefusals)
	s.Faults = sum(s.Faults, other.Faults)
	s.Refusals = sum(s.Refusals, other.Refusals)
	s.Actions = sum(s.Actions, other.Actions)
}

func sum[K comparable](a, b map[K]int) map[K]int {
	if a == nil {
		a = make(map[K]int, len(b))
	}
	for k, n := range b {
		a[k] += n
	}
	return a
}

// Refusal is a call that the provider refused with a code.
type Refusal struct {
	Call codes.Call
	Code codes.Code
}

// PoolRefusal is a call about a group that the provider refused with a code.
type PoolRefusal struct {
	Call machinepool.Call
	Code codes.Code
}

// writtenScenario is a scenario in written form. Driver, Class, Properties, Tell, hooks and ports are code and are
// left out. Durations are in nanoseconds.
type writtenScenario struct {
	Seed                                        uint64
	Boot, Update                                time.Duration
	Faults                                      Faults
	NoCluster, NeedsInitialization, KeepClasses bool
	UpdatableTags                               bool
	Resync, CallTimeout                         time.Duration

	MachinePolicy    *machine.Policy     `json:",omitempty"`
	SetPolicy        *machineset.Policy  `json:",omitempty"`
	DeploymentPolicy *deployment.Policy  `json:",omitempty"`
	PoolPolicy       *machinepool.Policy `json:",omitempty"`
	PoolOptions      *PoolOptions        `json:",omitempty"`
	SafetyPolicy     *safety.Policy      `json:",omitempty"`
	Drain            *drain.Policy       `json:",omitempty"`
	DrainMax         int

	Classes     []string
	Deployments []*deployment.Deployment
	Pools       []*machinepool.Pool `json:",omitempty"`
	Apps        []App
	Steps       []Step
	Calm, Limit time.Duration
	Keep, Lone  bool

	// Needs names what is left out that a run depends on.
	Needs []string `json:",omitempty"`
}

// MarshalJSON writes the data of a scenario. It leaves out code, such as a driver, and names it:
// set it again before you play the scenario that was read.
func (s *Scenario) MarshalJSON() ([]byte, error) {
	o, m := &s.Options, &s.Options.Manager
	return json.Marshal(&writtenScenario{
		Seed: o.Seed, Boot: o.Boot, Update: o.Update, Faults: o.Faults, UpdatableTags: o.UpdatableTags,
		NoCluster: o.NoCluster, NeedsInitialization: o.NeedsInitialization, KeepClasses: m.Classes.Keep,
		Resync: m.Tuning.Resync, CallTimeout: m.Tuning.CallTimeout,
		MachinePolicy:    withDefaultsIn(m.Policies.Machine, (*machine.Policy).WithDefaults),
		SetPolicy:        withDefaultsIn(m.Policies.Set, (*machineset.Policy).WithDefaults),
		DeploymentPolicy: withDefaultsIn(m.Policies.Deployment, (*deployment.Policy).WithDefaults),
		PoolPolicy:       withDefaultsIn(m.Policies.Pool, (*machinepool.Policy).WithDefaults),
		SafetyPolicy:     withDefaultsIn(m.Policies.Safety, (*safety.Policy).WithDefaults),
		Drain:            withDefaultsIn(o.Drain, (*drain.Policy).WithDefaults),
		DrainMax:         o.DrainLimit.Max, PoolOptions: o.Pools, Pools: s.Pools,
		Classes: s.Classes, Deployments: s.Deployments, Apps: s.Apps, Steps: s.Steps, Calm: s.Calm, Limit: s.Limit, Keep: s.Keep, Lone: s.Lone,
		Needs: s.code(),
	})
}

// UnmarshalJSON reads what MarshalJSON has written, and leaves the code in s as it is.
func (s *Scenario) UnmarshalJSON(text []byte) error {
	var in writtenScenario
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	in.turnOff()
	o, m := &s.Options, &s.Options.Manager
	o.Seed, o.Boot, o.Update, o.Faults = in.Seed, in.Boot, in.Update, in.Faults
	o.UpdatableTags = in.UpdatableTags
	o.NoCluster, o.NeedsInitialization, m.Classes.Keep = in.NoCluster, in.NeedsInitialization, in.KeepClasses
	m.Tuning.Resync, m.Tuning.CallTimeout = in.Resync, in.CallTimeout
	m.Policies.Machine, m.Policies.Set, m.Policies.Deployment, m.Policies.Safety = in.MachinePolicy, in.SetPolicy, in.DeploymentPolicy, in.SafetyPolicy
	o.Drain, o.DrainLimit.Max = in.Drain, in.DrainMax
	m.Policies.Pool, o.Pools, s.Pools = in.PoolPolicy, in.PoolOptions, in.Pools
	s.Classes, s.Deployments, s.Apps, s.Steps = in.Classes, in.Deployments, in.Apps, in.Steps
	s.Calm, s.Limit, s.Keep, s.Lone = in.Calm, in.Limit, in.Keep, in.Lone
	s.needs = in.Needs
	return nil
}

// withDefaultsIn returns a policy to be written, with defaults in place of zeros, because zeros mean
// off in a stored policy (see turnOff). It returns nil for nil.
func withDefaultsIn[P any](p *P, withDefaults func(*P) *P) *P {
	if p == nil {
		return nil
	}
	return withDefaults(p)
}

// turnOff makes zeros of stored policies what they meant before object.Off was its name: off, where a
// setting can be, no conditions of nodes, and one update at a time.
func (s *writtenScenario) turnOff() {
	if p := s.MachinePolicy; p != nil {
		p.Grace, p.HookTimeout = cmp.Or(p.Grace, object.Off), cmp.Or(p.HookTimeout, object.Off)
		if p.NodeConditions == nil {
			p.NodeConditions = []string{}
		}
	}
	if p := s.SetPolicy; p != nil {
		p.StatusInterval, p.CrashLoopBase = cmp.Or(p.StatusInterval, object.Off), cmp.Or(p.CrashLoopBase, object.Off)
	}
	if p := s.DeploymentPolicy; p != nil {
		p.StatusInterval, p.FailedSummaries = cmp.Or(p.StatusInterval, object.Off), cmp.Or(p.FailedSummaries, object.Off)
		p.UpdateLimit = cmp.Or(p.UpdateLimit, rollout.IntOrPercent{Value: 1})
	}
	if p := s.SafetyPolicy; p != nil && !p.Off {
		p.OrphanSoon, p.SettleTime = cmp.Or(p.OrphanSoon, object.Off), cmp.Or(p.SettleTime, object.Off)
		p.BrakeShare, p.ClassBackoffBase = cmp.Or(p.BrakeShare, object.Off), cmp.Or(p.ClassBackoffBase, object.Off)
	}
	if p := s.Drain; p != nil {
		p.Timeout, p.TerminationBuffer = cmp.Or(p.Timeout, object.Off), cmp.Or(p.TerminationBuffer, object.Off)
	}
}

// ErrIncomplete is what Play returns for a scenario that was read from JSON, if it was written with
// a driver or properties of its own and they are not set again. Without them it would be another
// scenario.
var ErrIncomplete = errors.New("sim: the scenario needs code that is not written down")

// code names what a run of the scenario depends on and that is not written.
func (s *Scenario) code() (names []string) {
	o := &s.Options
	if o.Driver != nil || slices.Contains(s.needs, needsDriver) {
		names = append(names, needsDriver)
	}
	if o.PoolDriver != nil || slices.Contains(s.needs, needsPoolDriver) {
		names = append(names, needsPoolDriver)
	}
	if o.Class != nil || slices.Contains(s.needs, needsClass) {
		names = append(names, needsClass)
	}
	for _, p := range o.Properties {
		names = append(names, needsProperty+p.Name)
	}
	for _, name := range s.needs {
		if strings.HasPrefix(name, needsProperty) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// These names stand for what a written scenario needs.
const (
	needsDriver     = "Options.Driver"
	needsPoolDriver = "Options.PoolDriver"
	needsClass      = "Options.Class"
	needsProperty   = "Options.Properties: "
)

// whole returns ErrIncomplete if a scenario that was read lacks what it was played with.
func (s *Scenario) whole() error {
	set := *s
	set.needs = nil
	for _, name := range s.needs {
		if !slices.Contains(set.code(), name) {
			return fmt.Errorf("%w: set %s", ErrIncomplete, name)
		}
	}
	return nil
}
