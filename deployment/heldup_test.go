package deployment_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// TestHeldUp: why a fleet is not as wanted is known from what is stored about its machines, and said in
// the condition, in Missing and to the caller.
func TestHeldUp(t *testing.T) {
	draining := func(since time.Duration) func(*machine.Machine) {
		return func(m *machine.Machine) {
			m.DeletedAt, m.Status.Phase = begin.Add(-time.Hour), machine.PhaseTerminating
			m.Status.LastOperation = machine.Operation{
				Kind: machine.OperationDelete, State: machine.StateProcessing, Stage: machine.StageInitiateDrain,
				Message: "1 pod is held by budget db", Time: begin.Add(-since),
			}
		}
	}
	refused := func(m *machine.Machine) {
		m.Status.Phase, m.Status.LastOperation = machine.PhaseCrashLoopBackOff, failed("no cores are left")
	}
	failing := func(code codes.Code, since time.Duration) func(*machine.Machine) {
		return func(m *machine.Machine) {
			refused(m)
			m.CreatedAt, m.Status.LastOperation.Code = begin.Add(-since), code
		}
	}
	deleting := func(since time.Duration) func(*machine.Machine) {
		return func(m *machine.Machine) {
			failing(codes.Unavailable, time.Hour)(m)
			m.DeletedAt, m.Status.Phase, m.Status.LastOperation.Kind = begin.Add(-since), machine.PhaseTerminating, machine.OperationDelete
			m.Status.LastOperation.Stage = machine.StageInitiateVMDeletion
		}
	}
	for name, c := range map[string]struct {
		first, second func(*machine.Machine)
		want          string
	}{
		"a deletion that is retried at once":   {deleting(59 * time.Second), func(*machine.Machine) {}, ""},
		"a deletion that is retried for long":  {deleting(time.Minute), func(*machine.Machine) {}, "machine web-a-4qwb9-1: Delete: UNAVAILABLE: no cores are left"},
		"a create that is retried at once":     {failing(codes.Unavailable, 59*time.Second), failing(codes.Internal, 0), ""},
		"a create that is retried for long":    {failing(codes.Unavailable, time.Minute), failing(codes.Internal, 0), "machine web-a-4qwb9-1: Create: UNAVAILABLE: no cores are left"},
		"a create that is not retried so soon": {failing(codes.InvalidArgument, 0), func(*machine.Machine) {}, "machine web-a-4qwb9-1: Create: INVALID_ARGUMENT: no cores are left"},
		"nothing":                              {func(*machine.Machine) {}, func(*machine.Machine) {}, ""},
		"a create":                             {func(*machine.Machine) {}, refused, "machine web-a-4qwb9-2: Create: RESOURCE_EXHAUSTED: no cores are left"},
		"two creates":                          {refused, refused, "2 machines, such as machine web-a-4qwb9-1: Create: RESOURCE_EXHAUSTED: no cores are left"},
		"a drain for long":                     {draining(2 * time.Minute), func(*machine.Machine) {}, "machine web-a-4qwb9-1: Delete: 1 pod is held by budget db"},
		"a drain of seconds":                   {draining(time.Minute), func(*machine.Machine) {}, ""},
		"a paused machine": {func(m *machine.Machine) {
			refused(m)
			m.Annotations = map[string]string{"millwright-go/paused": "true"}
		}, func(*machine.Machine) {}, ""},
	} {
		o := settledObservation(t, 2)
		machines := o.Sets[0].Machines
		prefix := machines[0].Name[:len(machines[0].Name)-1]
		c.first(machines[0])
		c.second(machines[1])
		if plan := decide(t, o, begin); plan.Write != nil {
			o.Deployment.Status = statusOf(t, plan)
		}
		plan := decide(t, o, begin)
		message := object.FindCondition(o.Deployment.Status.Conditions, deployment.ConditionProgressing).Message
		if c.want == "" {
			require.Equal(t, decision.Why{}, plan.HeldUp, name)
			require.NotContains(t, message, "held up", name)
			require.NotContains(t, deployment.Missing(o.Deployment), "held up", name)
			continue
		}
		want := strings.ReplaceAll(c.want, "web-a-4qwb9-", prefix)
		require.Equal(t, "not as wanted, held up by "+want, plan.HeldUp.String(), name)
		require.Contains(t, message, "; held up by "+want, name)
		require.Contains(t, deployment.Missing(o.Deployment), "; held up by "+want, name)
	}
	o := settledObservation(t, 2)
	draining(time.Minute)(o.Sets[0].Machines[0])
	o.Deployment.Status = statusOf(t, decide(t, o, begin))
	require.Equal(t, begin.Add(time.Minute), decide(t, o, begin).At, "it is looked at when the drain has taken long")

	o = settledObservation(t, 2)
	failing(codes.Unavailable, 20*time.Second)(o.Sets[0].Machines[0])
	o.Deployment.Status = statusOf(t, decide(t, o, begin))
	require.Equal(t, begin.Add(40*time.Second), decide(t, o, begin).At, "it is looked at when a minute of retries is over")
}
