package deployment_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// TestHeldUp: what holds machines up is known from their stored status. The condition, Missing and the plan say it.
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
	require.Equal(t, begin.Add(time.Minute), decide(t, o, begin).At, "the next decision is due when the drain has waited long enough to be reported")

	o = settledObservation(t, 2)
	failing(codes.Unavailable, 20*time.Second)(o.Sets[0].Machines[0])
	o.Deployment.Status = statusOf(t, decide(t, o, begin))
	require.Equal(t, begin.Add(40*time.Second), decide(t, o, begin).At, "the next decision is due when the retries have taken a minute")
}

// TestSlowedConditionsAreCopied: a deployment copies the conditions that slow its sets: the new set's, or else the
// oldest set's, leaving out sets that are being deleted. It writes them once when they begin, change or end (P28).
// Invariants: P28
func TestSlowedConditionsAreCopied(t *testing.T) {
	for _, typ := range []string{deployment.ConditionCreationSlowed, deployment.ConditionReplacementSlowed} {
		o := settledObservation(t, 2)
		d := o.Deployment
		old, older := ownSet(d, "web-old", 0), ownSet(d, "web-older", 0)
		old.Set.Spec.Template.Spec.Class.Name, older.Set.Spec.Template.Spec.Class.Name = "tiny", "micro"
		old.Set.Revision, older.Set.Revision = 0, 0
		old.Set.CreatedAt, older.Set.CreatedAt = d.CreatedAt.Add(-time.Hour), d.CreatedAt.Add(-2*time.Hour)
		o.Sets = append(o.Sets, old, older)
		setCondition := func(child deployment.Children, reason string, status object.ConditionStatus) {
			s := child.Set.Clone()
			s.Status.Conditions = []object.Condition{{Type: typ, Status: status, Reason: reason, Message: "of " + s.Name, Since: begin}}
			for i := range o.Sets {
				if o.Sets[i].Set.UID == s.UID {
					o.Sets[i].Set = s
				}
			}
		}
		// written returns the condition that the next decision writes. A second decision must not write it again.
		written := func(at time.Time) *object.Condition {
			status := statusOf(t, decide(t, o, at))
			o.Deployment = o.Deployment.Clone()
			o.Deployment.Status = status
			require.Nil(t, decide(t, o, at.Add(time.Minute)).Write, "the same condition is written again")
			return object.FindCondition(status.Conditions, typ)
		}

		setCondition(old, "Old", object.True)
		require.Equal(t, &object.Condition{Type: typ, Status: object.True, Reason: "Old", Message: "of web-old", Since: begin.Add(time.Hour).Truncate(time.Second)}, written(begin.Add(time.Hour)))
		setCondition(older, "Older", object.True)
		require.Equal(t, "Older", written(begin.Add(2*time.Hour)).Reason)
		setCondition(o.Sets[0], "New", object.False)
		require.Nil(t, decide(t, o, begin.Add(3*time.Hour)).Write, "a condition that is false counts as none")
		setCondition(o.Sets[0], "New", object.True)
		c := written(begin.Add(3 * time.Hour))
		require.Equal(t, "of "+o.Sets[0].Set.Name, c.Message)
		require.Equal(t, begin.Add(time.Hour).Truncate(time.Second), c.Since, "the condition began when the set was slowed")
		for _, child := range o.Sets {
			setCondition(child, "", object.False)
		}
		require.Nil(t, written(begin.Add(4*time.Hour)))

		deleted := o.Sets[1]
		setCondition(deleted, "Deleted", object.True)
		marked := o.Sets[1].Set.Clone()
		marked.DeletedAt = begin
		o.Sets[1].Set = marked
		require.Nil(t, decide(t, o, begin.Add(5*time.Hour)).Write, "the conditions of a set that is being deleted do not count")
	}
}

// TestFailuresSeenLate: a machine that failed counts once, even if its set is replacing it already when the deployment
// first sees the failure. It still counts when the machine is gone.
func TestFailuresSeenLate(t *testing.T) {
	for name, then := range map[string]func(*machine.Machine){
		"failed": func(*machine.Machine) {},
		"deleted": func(m *machine.Machine) {
			m.DeletedAt = m.Status.Since
		},
		"terminating": func(m *machine.Machine) {
			m.DeletedAt = m.Status.Since
			m.Status.Phase, m.Status.DeletedFrom = machine.PhaseTerminating, machine.PhaseFailed
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := web(4)
			d.Spec.Strategy = deployment.DefaultStrategy()
			d.Spec.Strategy.StopAfter.Value = 2
			s := settled(t, d)
			s.edit(class("large"))
			s.decide()
			s.pass(time.Minute)
			s.runSetControllers()
			s.pass(20 * time.Minute)
			failed := s.pending()[0].Name
			s.setPhase(failed, machine.PhaseFailed)
			s.changeMachine(failed, then)
			count := func() int32 { return s.deployment.Status.RolloutFailures.Count }
			for range 2 {
				s.decide()
				require.EqualValues(t, 1, count())
				s.pass(time.Minute)
			}
			s.changeMachine(failed, func(m *machine.Machine) { // as another manager deletes it
				m.DeletedAt, m.Status.Phase, m.Status.DeletedFrom = m.Status.Since, machine.PhaseTerminating, ""
			})
			s.decide()
			require.EqualValues(t, 1, count())
			s.pass(time.Minute)
			s.dropMachine(failed)
			s.decide()
			require.EqualValues(t, 1, count())
			require.Empty(t, s.deployment.Status.RolloutFailures.Names)
		})
	}
}

// TestSuccessCountsFromItsTime: a machine was updated successfully and is preserved, and another machine's update fails
// later. When the first one is no longer preserved, that is no new success, so the rollout stays stopped.
func TestSuccessCountsFromItsTime(t *testing.T) {
	for ignored, since := range map[bool]time.Time{false: begin.Add(time.Minute + time.Second), true: begin} {
		p := deployment.DefaultPolicy()
		p.IgnoreMinReady = ignored
		d := stored(3)
		d.Spec.Strategy, d.Spec.MinReady = inPlace(3, 0, 1).Spec.Strategy, time.Minute
		old, s := another(d, "large", 1, 2), ownSet(d, "web-a", 1)
		s.Set.Revision = 2
		updated := s.Machines[0]
		updated.Status.LastOperation.Kind = machine.OperationInPlaceUpdate
		updated.Status.Preservation = machine.Preservation{Since: begin, Until: begin.Add(time.Hour)}
		o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{old, s}}
		count := func(after time.Duration) int32 {
			for decisions := 0; ; decisions++ {
				require.Less(t, decisions, mostDecisions)
				plan, err := deployment.Decide(o, p, begin.Add(after))
				require.NoError(t, err)
				if plan.Write != nil {
					d.Status = statusOf(t, plan)
					return d.Status.RolloutFailures.Count
				}
				follow(t, o, plan)
			}
		}
		require.EqualValues(t, 0, count(time.Second))
		require.EqualValues(t, 0, count(2*time.Minute))
		require.Equal(t, since, d.Status.RolloutFailures.Since, "since the machine was available")
		d.Status.RolloutFailures.Count = 1 // of a machine that failed half an hour later and is gone
		require.EqualValues(t, 1, count(2*time.Hour))
	}
}

// TestP46RolloutIsOnRecordBeforeItTouchesMachines: a process dies right after the first order of a rollout, and a
// machine fails because of that order before another process writes a status. The failure counts, even if the machine
// is gone by then.
// Invariants: P46
func TestP46RolloutIsOnRecordBeforeItTouchesMachines(t *testing.T) {
	fails := map[deployment.StrategyKind]func(*scenario){
		deployment.InPlaceUpdate: func(s *scenario) { s.advanceMachines(); s.advanceMachines() },
		deployment.RollingUpdate: func(s *scenario) {
			s.runSetControllers()
			s.setPhase(s.pending()[0].Name, machine.PhaseFailed)
		},
	}
	for kind, fail := range fails {
		t.Run(string(kind), func(t *testing.T) {
			d := inPlace(3, 1, 0)
			if kind == deployment.InPlaceUpdate {
				d = inPlace(3, 0, 1)
			}
			d.Spec.Strategy.Kind, d.Spec.Strategy.StopAfter.Value = kind, 1
			s := settled(t, d)
			for again := range 2 { // with a set that is created for the rollout, and with one that was the new set before
				s.setFate(s.running(0), fateFails)
				s.edit(class("large"))
				ordered := false
				s.shell.issue = func(kind string, _ deployment.Order, _ *deployment.Deployment) { ordered = ordered || kind == "scale" }
				s.shell.issueMachine = func(_ string, o deployment.MachineOrder) {
					ordered = ordered || o.Machine.Spec.InPlace == machine.InPlaceSelected
				}
				for steps := 0; !ordered; steps++ {
					require.Less(t, steps, mostDecisions)
					s.shell.step()
				}
				s.shell = newShell(t, s.world)
				s.shell.decided = s.note
				s.pass(time.Minute)
				fail(s)
				s.pass(time.Minute)
				s.decide()
				require.EqualValues(t, 1, s.deployment.Status.RolloutFailures.Count, "round %d", again)
				s.edit(class("small"))
				s.fates = nil
				s.settle()
			}
		})
	}
}

// TestP58ConditionTextsAreCurrent: no message of a condition is kept from an earlier status, from any state.
// Invariants: P58
func TestP58ConditionTextsAreCurrent(t *testing.T) {
	const old = "as it was"
	rapid.Check(t, func(rt *rapid.T) {
		o := drawLive(rt)
		conditions := []object.Condition{{Type: deployment.ConditionAvailable, Status: object.True, Message: old}}
		for _, typ := range []string{
			deployment.ConditionCreationSlowed, deployment.ConditionReplacementSlowed, deployment.ConditionReplicaFailure,
			deployment.ConditionClassMissing, deployment.ConditionClassInvalid, deployment.ConditionSpecValid, deployment.ConditionVMsOutdated,
		} {
			conditions = append(conditions, object.Condition{Type: typ, Status: object.True, Reason: typ, Message: old})
		}
		progress := object.Condition{Type: deployment.ConditionProgressing, Status: object.True, Message: old}
		progress.Reason = rapid.SampledFrom([]string{
			deployment.ProgressCreated, deployment.ProgressFound, deployment.ProgressUpdated, deployment.ProgressAvailable,
			deployment.ProgressPaused, deployment.ProgressResumed, deployment.ProgressStopped, deployment.ProgressDeadlineExceeded,
		}).Draw(rt, "reason")
		switch progress.Reason {
		case deployment.ProgressDeadlineExceeded, deployment.ProgressStopped:
			progress.Status = object.False
		case deployment.ProgressPaused:
			progress.Status = object.Unknown
		}
		o.Deployment.Status.Conditions = append(conditions, progress)
		o.Deployment.Status.ObservedGeneration = o.Deployment.Generation
		o.Deployment.Revision = rapid.SampledFrom([]int64{0, 1, 2, 3, 4, 5}).Draw(rt, "revision")
		plan := decide(rt, o, begin)
		if update, ok := plan.Write.(*deployment.UpdateStatus); ok && plan.Why.Reason != deployment.ReasonCount { // that one changes no condition
			for _, c := range update.Status.Conditions {
				require.NotEqual(rt, old, c.Message, c.Type)
			}
		}
	})
}
