package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
)

// TestFailuresSeenLate: a machine that failed counts once, however far its set has got with
// replacing it when the deployment first looks, and also when it is gone.
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
			s.obeyAll()
			s.pass(20 * time.Minute)
			failed := s.pending()[0].Name
			s.enter(failed, machine.PhaseFailed)
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

// TestSuccessCountsFromItsTime: a machine was updated with success and kept for inspection, and
// another one's update failed since. When the machine is not kept any more, that is no new success:
// the rollout does not go on.
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
		require.Equal(t, since, d.Status.RolloutFailures.Since, "kept, and in service for its MinReady, if that counts")
		d.Status.RolloutFailures.Count = 1 // of a machine that failed half an hour later and is gone
		require.EqualValues(t, 1, count(2*time.Hour))
	}
}

// TestP46RolloutIsOnRecordBeforeItTouchesMachines: a process dies right after the first order of a rollout, and the
// machine that the order was about fails before another one writes a status. The failure counts, also if the
// machine is gone by then.
// Invariants: P46
func TestP46RolloutIsOnRecordBeforeItTouchesMachines(t *testing.T) {
	fails := map[deployment.StrategyKind]func(*story){
		deployment.InPlaceUpdate: func(s *story) { s.liveAll(); s.liveAll() },
		deployment.RollingUpdate: func(s *story) {
			s.obeyAll()
			s.enter(s.pending()[0].Name, machine.PhaseFailed)
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
			for again := range 2 { // with a set that is made for it, and with one that has been the new set before
				s.doom(s.running(0), fateFails)
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
