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
