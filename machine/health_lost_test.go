package machine_test

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
)

func init() { maps.Copy(healthStories, lostStories) }

// toAvailable brings a machine up without a cluster.
func (s *story) toAvailable() {
	s.cluster = nil
	s.give()
	s.run()
	require.Equal(s.t, machine.PhaseAvailable, s.store.live().Status.Phase)
	require.Empty(s.t, s.store.live().Spec.NodeName, "there are no nodes")
	s.text.Reset()
}

// unlisted has listings miss the machine's VM.
func (s *story) unlisted() {
	s.missing = &machine.MissingVM{Since: s.now.Add(-30 * time.Second)}
}

var lostStories = map[string]func(*story){
	"VM lost without a cluster": func(s *story) {
		s.toAvailable()
		s.provider.vms = nil
		s.pass(time.Hour)
		s.unlisted()
		s.later(0, "the VM is gone at the provider, and two listings did not name it")
	},
	"VM lost and the budget is spent": func(s *story) {
		s.toAvailable()
		s.provider.vms = nil
		s.answering(machine.Grant{Detail: "machines in replacement: 1 of at most 1"})
		s.pass(time.Hour)
		s.unlisted()
		s.later(0, "ten VMs are gone; another machine is in replacement")
		s.missing.NotFound = true
		s.wait()
		s.answering(machine.Grant{Allowed: true})
		s.say("the other one was replaced")
		s.wait()
	},
	"VM that a list leaves out": func(s *story) {
		s.toAvailable()
		s.pass(time.Hour)
		s.unlisted()
		s.later(0, "two listings did not name the VM, which is there")
		s.provider.noStatus = true
		s.unlisted()
		s.later(time.Hour, "further ones, of a driver that can't be asked")
	},
}

// TestNoVMIsLostForAList: a machine fails for its VM only when the driver has said
// in this pass that there is none, without a cluster, and by a grant where there is
// a budget; none that is kept for inspection does.
func TestNoVMIsLostForAList(t *testing.T) {
	lost := 0
	rapid.Check(t, func(t *rapid.T) {
		o := anyObservation(t)
		if rapid.Bool().Draw(t, "ripe") {
			m := o.Machine
			m.Name, m.DeletedAt, m.Finalizers, m.Annotations = ours, time.Time{}, []string{machine.Finalizer}, nil
			m.Spec.Class.Name, m.Spec.ProviderID, m.Spec.Config = "small", "p://1", machine.Configuration{}
			m.Status = machine.Status{Phase: machine.PhaseAvailable, Since: epoch.Add(-time.Hour)}
			if rapid.Bool().Draw(t, "kept") {
				m.Status.Preservation = machine.Preservation{
					Request: machine.PreserveNow, Since: epoch.Add(-time.Minute), Until: epoch.Add(time.Hour),
				}
				m.Annotations = map[string]string{machine.DefaultPolicy().Keys.Preserve: machine.PreserveNow}
				o.Missing, o.Budgeted = &machine.MissingVM{Since: epoch.Add(-time.Minute)}, false
				o.VM = &machine.VM{Outcome: machine.Outcome{Code: codes.NotFound}}
			}
			o.NoCluster, o.Frozen = true, false
			if rapid.Bool().Draw(t, "gone") {
				o.Missing = &machine.MissingVM{Since: epoch.Add(-time.Hour), NotFound: true}
				o.VM = &machine.VM{Outcome: machine.Outcome{Code: codes.NotFound}}
			}
		}
		plan, err := machine.Decide(o, machine.DefaultPolicy(), epoch)
		require.NoError(t, err)
		if plan.Moves[0].On != machine.EventLost {
			return
		}
		lost++
		require.True(t, o.NoCluster)
		require.NotNil(t, o.Missing)
		require.Equal(t, codes.NotFound, o.VM.Code)
		require.True(t, !o.Budgeted || o.Grant.Allowed)
		require.False(t, o.Machine.Preserved(epoch) || o.Frozen)
	})
	require.Positive(t, lost)
}
