package scenario_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/scenario"
	"github.com/millwright-go/millwright/store"
)

// forgetful is a driver that creates a VM for each call, even if the machine has one.
type forgetful struct{ *sim.Provider }

func (f forgetful) CreateMachine(_ context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	var spec drivertest.MemorySpec
	if err := json.Unmarshal(req.Class.ProviderSpec, &spec); err != nil {
		return nil, err
	}
	id := f.Add(drivertest.MemoryVM{Name: req.Machine.Name, Cluster: "blue", Size: spec.Size, Tags: spec.Tags, Initialized: true})
	return &driver.CreateMachineResponse{ProviderID: id, NodeName: req.Machine.Name}, nil
}

// broken are changes of scenarios that make some storms violate a rule.
var broken = map[string]struct {
	rule   string
	change func(*sim.Scenario)
	steps  int // how many steps the smallest scenario may have
}{
	"a driver that creates a second VM": {"P13", func(s *sim.Scenario) {
		s.Options.Driver = func(w *sim.World) driver.Driver { return forgetful{w.Provider()} }
	}, 1},
	"a health timeout that is too short": {"no haste", func(s *sim.Scenario) {
		s.Options.Manager.Policies.Machine = machine.DefaultPolicy()
		s.Options.Manager.Policies.Machine.HealthTimeout = time.Second
		s.Options.Properties = []sim.Property{{Name: "no haste", Check: noHaste}}
	}, 1},
	"a property that does not hold": {"no huge ones", func(s *sim.Scenario) {
		s.Options.Properties = []sim.Property{{Name: "no huge ones", Check: noHugeOnes}}
	}, 1},
	"a limit that is too short": {sim.RuleSettled, func(s *sim.Scenario) { s.Limit = time.Second }, 0},
}

func noHugeOnes(w *sim.World) error {
	machines, err := w.Machines().List(context.Background(), store.Query{})
	for _, m := range machines {
		if m.Spec.Class.Name == "huge" {
			return errors.New("machine " + m.Name + " is huge")
		}
	}
	return err
}

// noHaste returns an error if a machine is failed whose node has not been ready for less than a minute.
func noHaste(w *sim.World) error {
	machines, err := w.Machines().List(context.Background(), store.Query{})
	for _, m := range machines {
		if op := &m.Status.LastOperation; m.Status.Phase == machine.PhaseFailed && op.Kind == machine.OperationHealthCheck && w.Now().Sub(readySince(w, m.Name)) < time.Minute {
			return errors.New("machine " + m.Name + " is given up too soon")
		}
	}
	return err
}

// readySince returns when a node's readiness last changed.
func readySince(w *sim.World, node string) time.Time {
	n, err := w.Nodes().Get(context.Background(), object.Key{Name: node})
	if err != nil {
		return time.Time{}
	}
	if c := object.FindCondition(n.Conditions, machine.NodeReady); c != nil {
		return c.Since
	}
	return time.Time{}
}

// TestViolationsAreFoundAndShrunk: some storm finds each violation, and Shrink leaves only a few steps and
// machines of it. Written to JSON and read again, the scenario breaks the same rule in the same way.
func TestViolationsAreFoundAndShrunk(t *testing.T) {
	for name, b := range broken {
		t.Run(name, func(t *testing.T) {
			s, found := firstViolation(t, b.change)
			require.Equal(t, b.rule, found.Rule)
			before := len(s.Steps)
			small := scenario.Shrink(s, found.Rule, 400)
			require.Len(t, s.Steps, before, "Shrink changed its argument")
			require.LessOrEqual(t, len(small.Steps), b.steps)
			require.LessOrEqual(t, len(small.Deployments), 1)
			require.LessOrEqual(t, len(small.Apps), 2)
			first := play(t, small).Violation
			require.NotNil(t, first)
			require.Equal(t, b.rule, first.Rule)

			text, err := json.Marshal(small)
			require.NoError(t, err)
			again := &sim.Scenario{}
			b.change(again) // functions are not written to JSON
			require.NoError(t, json.Unmarshal(text, again))
			require.Equal(t, first, play(t, again).Violation)
			lines, err := scenario.Trace(again)
			require.NoError(t, err)
			require.Contains(t, lines[len(lines)-1], "violation of "+b.rule)
			require.Less(t, len(lines), 500)
		})
	}
}

// firstViolation plays storms with a change until one fails.
func firstViolation(t *testing.T, change func(*sim.Scenario)) (*sim.Scenario, *sim.Violation) {
	t.Helper()
	for seed := range uint64(50) {
		s := scenario.Random(seed)
		change(s)
		if r := play(t, s); r.Violation != nil {
			return s, r.Violation
		}
	}
	require.Fail(t, "nothing is violated")
	return nil, nil
}

// TestShrinkKeepsTheRule: Shrink returns no scenario that breaks another rule. It removes faults that the
// violation does not need.
func TestShrinkKeepsTheRule(t *testing.T) {
	b := broken["a property that does not hold"]
	s, found := firstViolation(t, b.change)
	require.Same(t, s, scenario.Shrink(s, "another rule", 20))
	require.Equal(t, "none", scenario.Shrink(s, found.Rule, 400).Options.Faults.String())
}

func play(t *testing.T, s *sim.Scenario) sim.Result {
	t.Helper()
	r, err := sim.Play(s)
	require.NoError(t, err)
	return r
}
