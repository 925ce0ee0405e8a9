package sim_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/scenario"
	"github.com/millwright-go/millwright/store"
)

func play(t tb, s *sim.Scenario) sim.Result {
	t.Helper()
	r, err := sim.Play(s)
	require.NoError(t, err)
	return r
}

// TestPropertiesAreChecked: the world checks the properties of Options after every change, and an error is
// a violation.
func TestPropertiesAreChecked(t *testing.T) {
	broken := errors.New("three machines are too many")
	s := &sim.Scenario{
		Options: sim.Options{Manager: quiet.Manager, Properties: []sim.Property{{Name: "few", Check: func(w *sim.World) error {
			if machines, _ := w.Machines().List(ctx, store.Query{}); len(machines) >= 3 {
				return broken
			}
			return nil
		}}}},
		Deployments: []*deployment.Deployment{sim.Fleet("web", 2, deployment.Strategy{})},
	}
	require.Nil(t, play(t, s).Violation)
	s.Steps = []sim.Step{{After: time.Hour, Do: sim.Scale, Name: "web", N: 3}}
	found := play(t, s).Violation
	require.NotNil(t, found)
	require.Equal(t, "few", found.Rule)
	require.Equal(t, broken.Error(), found.What)
}

// TestPropertiesAreCheckedInTheEnd: Play waits until Finally returns nil after all is deleted. It is a
// violation if that takes longer than the limit. A scenario that keeps its deployments does not call it.
func TestPropertiesAreCheckedInTheEnd(t *testing.T) {
	var since time.Time // when Finally was first called
	late := func(after time.Duration) *sim.Scenario {
		since = time.Time{}
		return &sim.Scenario{
			Options: sim.Options{Manager: quiet.Manager, Properties: []sim.Property{{Name: "disks", Finally: func(w *sim.World) error {
				if since.IsZero() {
					since = w.Now()
				}
				if w.Now().Sub(since) < after {
					return errors.New("disk d-1 is left")
				}
				return nil
			}}}},
			Deployments: []*deployment.Deployment{sim.Fleet("web", 2, deployment.Strategy{})},
			Limit:       6 * time.Hour,
		}
	}
	require.Nil(t, play(t, late(5*time.Hour)).Violation)
	found := play(t, late(7*time.Hour)).Violation
	require.NotNil(t, found)
	require.Equal(t, "disks", found.Rule)
	require.Equal(t, "disk d-1 is left, 6h0m0s after all is deleted", found.What)
	kept := late(7 * time.Hour)
	kept.Keep = true
	require.Nil(t, play(t, kept).Violation)
}

// TestScenariosThatOnceFailed plays the scenarios of testdata/scenarios, which soaks once found and which
// were made as small as possible. Each violated an invariant before a mistake was fixed.
// Invariants: P7 P22 P35 P50 P51 P53
func TestScenariosThatOnceFailed(t *testing.T) {
	files, err := filepath.Glob("testdata/scenarios/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			s := &sim.Scenario{}
			require.NoError(t, json.Unmarshal(text, s))
			require.NoError(t, errorOf(play(t, s).Violation))
		})
	}
}

// TestMoves plays scenarios in which moves of machines from set to set are interrupted (P7, P10).
// Invariants: P7 P10
func TestMoves(t *testing.T) {
	for seed := range uint64(60) {
		require.NoError(t, errorOf(play(t, scenario.Moves(seed)).Violation), "seed %d", seed)
	}
}

// TestScenariosNeedTheirFunctions: a scenario that was written with a driver, a pool driver or a property,
// and is read again, is not played until they are set.
func TestScenariosNeedTheirFunctions(t *testing.T) {
	own := func(w *sim.World) driver.Driver { return w.Provider() }
	huge := sim.Property{Name: "no huge ones", Check: func(*sim.World) error { return nil }}
	for name, c := range map[string]struct {
		set   func(*sim.Options)
		needs string
	}{
		"a driver":      {func(o *sim.Options) { o.Driver = own }, "set Options.Driver"},
		"a pool driver": {func(o *sim.Options) { o.PoolDriver = func(w *sim.World) pooldriver.Driver { return w.Groups() } }, "set Options.PoolDriver"},
		"a property":    {func(o *sim.Options) { o.Properties = []sim.Property{huge} }, "set Options.Properties: no huge ones"},
	} {
		t.Run(name, func(t *testing.T) {
			written := &sim.Scenario{}
			c.set(&written.Options)
			text, err := json.Marshal(written)
			require.NoError(t, err)
			read := &sim.Scenario{}
			require.NoError(t, json.Unmarshal(text, read))
			_, err = sim.Play(read)
			require.ErrorIs(t, err, sim.ErrIncomplete)
			require.ErrorContains(t, err, c.needs)
			again, err := json.Marshal(read)
			require.NoError(t, err)
			require.Equal(t, text, again, "the names of the functions are lost if it is written again")
			c.set(&read.Options)
			_, err = sim.Play(read)
			require.NoError(t, err)
		})
	}
	text, err := json.Marshal(&sim.Scenario{})
	require.NoError(t, err)
	require.NotContains(t, string(text), `"Needs":`)
}

// TestZeroOfAStoredPolicyIsOff: a zero in a stored policy means off, as it did before object.Off existed.
// A policy that is written now has defaults in place of zeros, so that it means the same when it is read.
func TestZeroOfAStoredPolicyIsOff(t *testing.T) {
	const stored = `{"MachinePolicy":{},"SetPolicy":{},"DeploymentPolicy":{},"SafetyPolicy":{},"Drain":{}}`
	read := &sim.Scenario{}
	require.NoError(t, json.Unmarshal([]byte(stored), read))
	o, m := &read.Options, &read.Options.Manager
	require.Equal(t, &machine.Policy{Grace: object.Off, HookTimeout: object.Off, NodeConditions: []string{}}, m.Policies.Machine)
	require.Equal(t, &machineset.Policy{StatusInterval: object.Off, CrashLoopBase: object.Off}, m.Policies.Set)
	require.Equal(t, &deployment.Policy{
		StatusInterval: object.Off, FailedSummaries: object.Off, UpdateLimit: rollout.IntOrPercent{Value: 1},
	}, m.Policies.Deployment)
	require.Equal(t, &safety.Policy{OrphanSoon: object.Off, BrakeShare: object.Off, SettleTime: object.Off, ClassBackoffBase: object.Off}, m.Policies.Safety)
	require.Equal(t, &drain.Policy{Timeout: object.Off, TerminationBuffer: object.Off}, o.Drain)

	written := &sim.Scenario{}
	o, m = &written.Options, &written.Options.Manager
	m.Policies.Machine, m.Policies.Set, m.Policies.Deployment, m.Policies.Pool = &machine.Policy{}, &machineset.Policy{}, &deployment.Policy{}, &machinepool.Policy{}
	m.Policies.Safety, o.Drain = &safety.Policy{ClassBackoffBase: object.Off}, &drain.Policy{}
	text, err := json.Marshal(written)
	require.NoError(t, err)
	again := &sim.Scenario{}
	require.NoError(t, json.Unmarshal(text, again))
	o, m = &again.Options, &again.Options.Manager
	require.Equal(t, machine.DefaultPolicy(), m.Policies.Machine)
	require.Equal(t, machineset.DefaultPolicy(), m.Policies.Set)
	require.Equal(t, (&deployment.Policy{}).WithDefaults(), m.Policies.Deployment)
	require.Equal(t, machinepool.DefaultPolicy(), m.Policies.Pool)
	require.Equal(t, (&safety.Policy{ClassBackoffBase: object.Off}).WithDefaults(), m.Policies.Safety)
	require.Equal(t, drain.DefaultPolicy(), o.Drain)
}

// TestUnsettledMachinesAreNamed: if a fleet does not converge, the violation names the first machines, with
// their phases and reasons.
func TestUnsettledMachinesAreNamed(t *testing.T) {
	s := &sim.Scenario{
		Options:          sim.Options{Faults: sim.Faults{DeadBoot: 1}, Manager: quiet.Manager},
		Deployments:      []*deployment.Deployment{sim.Fleet("web", 7, deployment.Strategy{})},
		FaultsAfterSteps: 5 * time.Minute, Limit: time.Second,
	}
	found := play(t, s).Violation
	require.NotNil(t, found)
	require.Equal(t, sim.RuleSettled, found.Rule)
	require.Contains(t, found.What, "deployment web: 7 are wanted, 7 machines are there, and its status counts 7, updated 7, available 0")
	require.Regexp(t, `; machine web-\w+-\w+-1: Pending \(Create, Initialized, Processing\)`, found.What)
	require.Contains(t, found.What, "; and 2 more")
}
