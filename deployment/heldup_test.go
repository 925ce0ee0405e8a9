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
		require.Equal(t, "not in the desired state, held up by "+want, plan.HeldUp.String(), name)
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

// A deployment reports what slows its sets: the new set's condition first, then the oldest one's,
// of those that stay. It writes once when that begins, changes or ends, and not between (P28).
// Invariants: P28
func TestSlowedSetsAreTold(t *testing.T) {
	for _, typ := range []string{deployment.ConditionCreationSlowed, deployment.ConditionReplacementSlowed} {
		o := settledObservation(t, 2)
		d := o.Deployment
		old, older := ownSet(d, "web-old", 0), ownSet(d, "web-older", 0)
		old.Set.Spec.Template.Spec.Class.Name, older.Set.Spec.Template.Spec.Class.Name = "tiny", "micro"
		old.Set.Revision, older.Set.Revision = 0, 0
		old.Set.CreatedAt, older.Set.CreatedAt = d.CreatedAt.Add(-time.Hour), d.CreatedAt.Add(-2*time.Hour)
		o.Sets = append(o.Sets, old, older)
		tell := func(child deployment.Children, reason string, status object.ConditionStatus) {
			s := child.Set.Clone()
			s.Status.Conditions = []object.Condition{{Type: typ, Status: status, Reason: reason, Message: "of " + s.Name, Since: begin}}
			for i := range o.Sets {
				if o.Sets[i].Set.UID == s.UID {
					o.Sets[i].Set = s
				}
			}
		}
		// told returns the condition after everything was written.
		told := func(at time.Time) *object.Condition {
			status := statusOf(t, decide(t, o, at))
			o.Deployment = o.Deployment.Clone()
			o.Deployment.Status = status
			require.Nil(t, decide(t, o, at.Add(time.Minute)).Write, "told twice")
			return object.FindCondition(status.Conditions, typ)
		}

		tell(old, "Old", object.True)
		require.Equal(t, &object.Condition{Type: typ, Status: object.True, Reason: "Old", Message: "of web-old", Since: begin.Add(time.Hour).Truncate(time.Second)}, told(begin.Add(time.Hour)))
		tell(older, "Older", object.True)
		require.Equal(t, "Older", told(begin.Add(2*time.Hour)).Reason)
		tell(o.Sets[0], "New", object.False)
		require.Nil(t, decide(t, o, begin.Add(3*time.Hour)).Write, "false is nothing")
		tell(o.Sets[0], "New", object.True)
		c := told(begin.Add(3 * time.Hour))
		require.Equal(t, "of "+o.Sets[0].Set.Name, c.Message)
		require.Equal(t, begin.Add(time.Hour).Truncate(time.Second), c.Since, "since it has been slowed")
		for _, child := range o.Sets {
			tell(child, "", object.False)
		}
		require.Nil(t, told(begin.Add(4*time.Hour)))

		going := o.Sets[1]
		tell(going, "Going", object.True)
		gone := o.Sets[1].Set.Clone()
		gone.DeletedAt = begin
		o.Sets[1].Set = gone
		require.Nil(t, decide(t, o, begin.Add(5*time.Hour)).Write, "a set that goes has no trouble any more")
	}
}
