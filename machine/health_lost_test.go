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
	"VM unhealthy without a cluster until the time is up": func(s *story) {
		s.toAvailable()
		s.pass(time.Hour)
		s.unhealthy("stopped")
		s.later(0, "the list says that the VM is unhealthy")
		s.provider.faults = func(codes.Call) fault { return fault{code: codes.Unavailable} }
		s.later(time.Hour, "the provider is out, for longer than the health timeout")
		s.provider.faults = nil
		s.answering(machine.Grant{Detail: "machines in replacement: 1 of at most 1"})
		s.later(0, "it answers again; another machine is in replacement")
		s.answering(machine.Grant{Allowed: true})
		s.say("the other one was replaced")
		s.wait()
	},
	"VM unhealthy without a cluster for a while": func(s *story) {
		s.toAvailable()
		s.pass(time.Hour)
		s.unhealthy("rebooting")
		s.later(0, "the list says that the VM is unhealthy")
		s.wait()
		s.provider.vms[0].unhealthy = ""
		s.say("it has rebooted")
		s.wait()
		s.later(time.Hour, "the list still says so, and the driver does not")
	},
	"VM lost while it is unhealthy": func(s *story) {
		s.toAvailable()
		s.pass(time.Hour)
		s.unhealthy("stopped")
		s.later(0, "the list says that the VM is unhealthy")
		s.provider.vms = nil
		s.later(time.Hour, "the VM is gone, and no listing was made since")
		s.unlisted()
		s.later(0, "two listings did not name it")
	},
	"VM unhealthy without a health timeout": func(s *story) {
		s.toAvailable()
		s.force(func(m *machine.Machine) { m.Spec.Config.DisableHealthTimeout = true })
		s.pass(time.Hour)
		s.unhealthy("stopped")
		s.later(0, "the list says that the VM is unhealthy")
		s.later(5*time.Hour, "still so")
	},
}

// unhealthy has the provider say so of the machine's VM.
func (s *story) unhealthy(why string) { s.provider.vms[0].unhealthy, s.listed = why, true }

// TestP54NoVMIsGivenUpByOneAnswer: without a cluster, a machine fails for the health of its VM only if
// the driver has said in this pass that it is unhealthy, after a whole health timeout as Unknown, and by
// a grant where there is a budget. It becomes Unknown only if list and driver say so. Nothing else that
// a driver answers, errors among it, moves it.
func TestP54NoVMIsGivenUpByOneAnswer(t *testing.T) {
	moved := map[machine.Event]int{}
	rapid.Check(t, func(t *rapid.T) {
		o := anyObservation(t)
		m := o.Machine
		m.Name, m.DeletedAt, m.Finalizers, m.Annotations = ours, time.Time{}, []string{machine.Finalizer}, nil
		m.Spec.Class.Name, m.Spec.ProviderID, m.Spec.Config = "small", "p://1", machine.Configuration{}
		phase := rapid.SampledFrom([]machine.Phase{machine.PhaseAvailable, machine.PhaseRunning, machine.PhaseUnknown}).Draw(t, "phase")
		since := epoch.Add(-time.Duration(rapid.IntRange(0, 1200).Draw(t, "seconds")) * time.Second)
		m.Status = machine.Status{Phase: phase, Since: since}
		o.NoCluster, o.Missing, o.WatchedSince = true, nil, time.Time{}
		if rapid.Bool().Draw(t, "ripe") {
			o.Class, o.Frozen, o.VMUnhealthy, o.Budgeted = &machine.Class{}, false, true, false
			o.VM = &machine.VM{Unhealthy: rapid.SampledFrom([]string{"", "stopped"}).Draw(t, "said")}
		}
		plan, err := machine.Decide(o, machine.DefaultPolicy(), epoch)
		require.NoError(t, err)
		on := plan.Moves[0].On
		moved[on]++
		switch on {
		case "":
		case machine.EventUnhealthy:
			require.True(t, o.VMUnhealthy && o.VM.Code == codes.OK && o.VM.Unhealthy != "" && !o.Frozen)
		case machine.EventAvailable:
			require.True(t, phase == machine.PhaseUnknown && o.VM.Code == codes.OK && o.VM.Unhealthy == "")
		case machine.EventHealthTimeout:
			require.True(t, phase == machine.PhaseUnknown && o.VM.Code == codes.OK && o.VM.Unhealthy != "" && !o.Frozen)
			require.False(t, epoch.Before(since.Add(machine.DefaultPolicy().HealthTimeout)))
			require.True(t, !o.Budgeted || o.Grant.Allowed)
		default:
			require.Failf(t, "moved", "%s: %s", on, plan.Why)
		}
	})
	require.Positive(t, moved[machine.EventUnhealthy])
	require.Positive(t, moved[machine.EventAvailable])
	require.Positive(t, moved[machine.EventHealthTimeout])
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
