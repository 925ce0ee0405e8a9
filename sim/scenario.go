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

// Scenario describes a simulated world: its options, the objects in it, and the steps that change
// them. All of it is data, except for the functions in Options. Faults occur until FaultsAfterSteps
// have passed since the last step. Then everything has to converge, and is deleted in the end. The
// zero value is an empty world.
type Scenario struct {
	Options Options
	// Classes are the names of additional machine classes. The class "small" always exists.
	Classes     []string
	Deployments []*deployment.Deployment
	// Pools exist beside the deployments. If there are any and Options.Pools is nil, the zero
	// PoolOptions are used.
	Pools []*machinepool.Pool
	// Apps are started before anything else happens.
	Apps []App
	// Lone adds a machine that belongs to no set and that no selector picks. It is deleted with the
	// deployments.
	Lone bool
	// Steps are done one after another.
	Steps []Step
	// FaultsAfterSteps is how long faults go on after the last step.
	FaultsAfterSteps time.Duration
	// Limit bounds the time until everything has converged after the faults have stopped, and again
	// the time of the deletion after that. Zero: 48 h.
	Limit time.Duration
	// Keep leaves the deployments and pools at the end. Without it they are deleted, and the run shows
	// whether anything stays behind.
	Keep bool

	needs []string // the options that were functions when the scenario was written (see functions)
}

// These are the events by which Play tells the invariants how far the scenario has come.
type (
	// allAtRest: all has converged, and nothing is to be done.
	allAtRest struct{}
	// allGone: all was deleted, and nothing is left.
	allGone struct{}
)

// Result is the outcome of a scenario.
type Result struct {
	// Violation is the first violation of an invariant, or says what did not converge in time. It is
	// nil if there is none.
	Violation *Violation
	Stats     Stats
	// Left is what was there at the end, counted by kind.
	Left Left
	// Took is how long the run took, in virtual time.
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
	// Steps counts the manager's calls to stores, provider and cluster (not reads from its caches),
	// and the events delivered to it. They are not those of Scenario.Steps.
	Steps int
	// Passes is the number of passes that were completed, over all reconcilers.
	Passes int
	// Calls counts the calls about machines that reached the provider.
	Calls map[codes.Call]int
	// PoolCalls counts the calls about groups that reached the provider. PoolRefusals counts the
	// refused ones by call and code. Faults[CallFailed] includes them.
	PoolCalls    map[machinepool.Call]int
	PoolRefusals map[PoolRefusal]int
	// Faults is how often each kind of fault occurred.
	Faults map[Fault]int
	// Refusals counts the refused calls about machines by call and code. Faults[CallFailed] includes
	// them.
	Refusals map[Refusal]int
	// Actions counts the steps that took effect. The actions from Roll to JumpClock are not counted.
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

// writtenScenario is the JSON form of a scenario. It leaves out the functions in Options (Driver,
// PoolDriver, Class, Properties, Tell), and of Options.Manager all but policies, Classes.Keep,
// Tuning.Resync and Tuning.CallTimeout. Durations are in nanoseconds.
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

	FaultsAfterSteps time.Duration `json:"Calm"` // its former name, in old files, too
	Limit            time.Duration
	Keep, Lone       bool

	// Needs lists the omitted functions that must be set before the scenario is played.
	Needs []string `json:",omitempty"`
}

// MarshalJSON writes the data of a scenario. Of functions, such as a driver, it writes the names of
// the options only: set them again before you play a scenario that was read.
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
		Classes: s.Classes, Deployments: s.Deployments, Apps: s.Apps, Steps: s.Steps,
		FaultsAfterSteps: s.FaultsAfterSteps, Limit: s.Limit, Keep: s.Keep, Lone: s.Lone,
		Needs: s.functions(),
	})
}

// UnmarshalJSON reads what MarshalJSON has written. It leaves the functions in s as they are.
func (s *Scenario) UnmarshalJSON(text []byte) error {
	var in writtenScenario
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	in.zerosMeanOff()
	o, m := &s.Options, &s.Options.Manager
	o.Seed, o.Boot, o.Update, o.Faults = in.Seed, in.Boot, in.Update, in.Faults
	o.UpdatableTags = in.UpdatableTags
	o.NoCluster, o.NeedsInitialization, m.Classes.Keep = in.NoCluster, in.NeedsInitialization, in.KeepClasses
	m.Tuning.Resync, m.Tuning.CallTimeout = in.Resync, in.CallTimeout
	m.Policies.Machine, m.Policies.Set, m.Policies.Deployment, m.Policies.Safety = in.MachinePolicy, in.SetPolicy, in.DeploymentPolicy, in.SafetyPolicy
	o.Drain, o.DrainLimit.Max = in.Drain, in.DrainMax
	m.Policies.Pool, o.Pools, s.Pools = in.PoolPolicy, in.PoolOptions, in.Pools
	s.Classes, s.Deployments, s.Apps, s.Steps = in.Classes, in.Deployments, in.Apps, in.Steps
	s.FaultsAfterSteps, s.Limit, s.Keep, s.Lone = in.FaultsAfterSteps, in.Limit, in.Keep, in.Lone
	s.needs = in.Needs
	return nil
}

// withDefaultsIn returns a policy to be written, with defaults in place of zeros, because zeros mean
// off in a stored policy (see zerosMeanOff). It returns nil for nil.
func withDefaultsIn[P any](p *P, withDefaults func(*P) *P) *P {
	if p == nil {
		return nil
	}
	return withDefaults(p)
}

// zerosMeanOff replaces zeros of stored policies by object.Off: old files were written when zero
// meant off, while it means the default today. Missing NodeConditions become none, and a missing
// UpdateLimit becomes 1.
func (s *writtenScenario) zerosMeanOff() {
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
// functions (Driver, PoolDriver, Class, Properties) that are not set again. Without them it would
// be another scenario.
var ErrIncomplete = errors.New("sim: the scenario needs code that is not written down")

// functions returns the names of the options that are functions, that a run depends on, and that are
// not written to JSON.
func (s *Scenario) functions() (names []string) {
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

// These are the names in writtenScenario.Needs. That of a property follows the last one.
const (
	needsDriver     = "Options.Driver"
	needsPoolDriver = "Options.PoolDriver"
	needsClass      = "Options.Class"
	needsProperty   = "Options.Properties: "
)

// checkComplete returns ErrIncomplete if functions that the scenario was written with are not set.
func (s *Scenario) checkComplete() error {
	current := *s
	current.needs = nil
	for _, name := range s.needs {
		if !slices.Contains(current.functions(), name) {
			return fmt.Errorf("%w: set %s", ErrIncomplete, name)
		}
	}
	return nil
}
