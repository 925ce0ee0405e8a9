package machine_test

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

func init() { maps.Copy(healthStories, grantStories) }

// answerGrants makes the budget give the same answer each time.
func (w *world) answerGrants(grant machine.Grant) {
	w.budget = func(*machine.Machine) *machine.Grant { return &grant }
}

var grantStories = map[string]func(*story){
	"replacement blocked by the budget": func(s *story) {
		s.toRunning()
		s.answerGrants(machine.Grant{Detail: "machines in replacement: 1 of at most 1"})
		s.cluster.setReady(node, object.False)
		s.later(0, "the kubelet is not ready, and another machine is in replacement")
		s.wait()
		s.wait()
		s.answerGrants(machine.Grant{Allowed: true, Until: s.now.Add(time.Minute)})
		s.comment("the other one was replaced")
		s.wait()
	},
	"replacement blocked until the node recovers": func(s *story) {
		s.toRunning()
		s.answerGrants(machine.Grant{Detail: "machines in replacement: 1 of at most 1"})
		s.cluster.setReady(node, object.False)
		s.later(0, "the kubelet is not ready, and another machine is in replacement")
		s.wait()
		s.cluster.setReady(node, object.True)
		s.later(10*time.Second, "the kubelet is ready")
	},
	"node deleted by somebody and the budget spent": func(s *story) {
		s.toRunning()
		s.answerGrants(machine.Grant{Detail: "machines in replacement: 1 of at most 1"})
		s.cluster.delete(node)
		s.later(time.Minute, "somebody deletes the node, as those of other machines")
		s.wait()
		s.answerGrants(machine.Grant{Allowed: true, Until: s.now.Add(time.Hour)})
		s.comment("the other one was replaced")
		s.wait()
	},
	"creation timeout needs no grant": func(s *story) {
		s.answerGrants(machine.Grant{Detail: "machines in replacement: 1 of at most 1"})
		s.provider.boot = -1
		s.createMachine()
		s.later(0, "its node never joins")
		s.wait()
	},
}

// P24: if there is a budget, a machine is marked Failed for its health only with a grant, and only before the
// grant expires.
// Invariants: P24
func TestP24NoVerdictWithoutAGrant(t *testing.T) {
	verdicts := 0
	rapid.Check(t, func(t *rapid.T) {
		o := anyObservation(t)
		o.Budgeted = true
		if rapid.Bool().Draw(t, "timed out") {
			makeHealthTimedOut(o)
			o.Grant = anyGrant(t)
		}
		plan, err := machine.Decide(o, machine.DefaultPolicy(), epoch)
		require.NoError(t, err)
		if first(&plan).On != machine.EventHealthTimeout {
			return
		}
		verdicts++
		require.NotNil(t, o.Grant)
		require.True(t, o.Grant.Allowed)
		require.True(t, o.Grant.Until.IsZero() || epoch.Before(o.Grant.Until))
	})
	assert.Positive(t, verdicts, "no machine ever failed")
}

// anyGrant returns an answer to AskGrant; half of them expire at about epoch. Nil: there is no answer yet.
func anyGrant(t *rapid.T) *machine.Grant {
	if rapid.IntRange(0, 3).Draw(t, "no answer") == 0 {
		return nil
	}
	g := &machine.Grant{Allowed: rapid.IntRange(0, 3).Draw(t, "refused") != 0}
	if rapid.Bool().Draw(t, "ends") {
		g.Until = epoch.Add(time.Duration(rapid.IntRange(-1, 1).Draw(t, "until")) * time.Second)
	}
	return g
}

// makeHealthTimedOut changes an observation to that of a machine whose health timeout has passed.
func makeHealthTimedOut(o *machine.Observation) {
	m := o.Machine
	m.Name, m.DeletedAt, m.Finalizers = ours, time.Time{}, []string{machine.Finalizer}
	m.Spec.Class.Name, m.Spec.NodeName, m.Spec.Config = "small", node, machine.Configuration{}
	m.Status = machine.Status{Phase: machine.PhaseUnknown, Since: epoch.Add(-time.Hour)}
	o.Frozen, o.NoCluster, o.Node = false, false, &machine.NodeAnswer{Name: node, Read: readAt(epoch)}
}

// Without a budget no grant is asked for, and nothing waits for one.
func TestNoGrantIsAskedForWithoutABudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anyObservation(t)
		o.Budgeted = false
		if rapid.Bool().Draw(t, "timed out") {
			makeHealthTimedOut(o)
		}
		plan, err := machine.Decide(o, machine.DefaultPolicy(), epoch)
		require.NoError(t, err)
		require.NotContains(t, []machine.Effect{machine.AskGrant{}, machine.AskGrant{NodeLeaves: true}}, plan.Effect)
		o.Grant = nil
		same, err := machine.Decide(o, machine.DefaultPolicy(), epoch)
		require.NoError(t, err)
		require.Equal(t, plan, same)
	})
}

// P45: if there is a budget, a machine is deleted because others delete its node only with a grant and after a
// live read of the node, in any phase. A frozen or paused machine is not deleted.
// Invariants: P45
func TestP45NoMachineFollowsItsNodeWithoutAGrant(t *testing.T) {
	followed, stayed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		o := anyObservation(t)
		o.Budgeted = rapid.IntRange(0, 9).Draw(t, "no budget") != 0
		makeNodeDeleted(t, o)
		plan, err := machine.Decide(o, machine.DefaultPolicy(), epoch)
		require.NoError(t, err)
		if _, deletes := plan.Write.(*machine.Delete); !deletes {
			stayed++
			return
		}
		followed++
		require.True(t, o.Node.Read.Live(), "a cached node may be old")
		require.False(t, o.Frozen)
		paused, _ := machine.Paused(&o.Machine.Meta, machine.DefaultPolicy().Keys.Paused)
		require.False(t, paused)
		if o.Budgeted {
			require.NotNil(t, o.Grant)
			require.True(t, o.Grant.Allowed)
			require.True(t, o.Grant.Until.IsZero() || epoch.Before(o.Grant.Until))
		}
	})
	assert.Positive(t, followed, "no machine ever followed its node")
	assert.Positive(t, stayed, "no machine ever stayed")
}

// makeNodeDeleted changes an observation to that of a machine whose node is being deleted by somebody.
func makeNodeDeleted(t *rapid.T, o *machine.Observation) {
	m := o.Machine
	m.Name, m.DeletedAt, m.Finalizers = ours, time.Time{}, []string{machine.Finalizer}
	m.Spec.Class.Name, m.Spec.NodeName, m.Spec.ProviderID = "small", node, "p://1"
	m.Spec.InPlace, m.Spec.Config = machine.InPlaceNone, machine.Configuration{}
	m.Status.Phase = rapid.SampledFrom([]machine.Phase{
		machine.PhasePending, machine.PhaseRunning, machine.PhaseUnknown, machine.PhaseInPlaceUpdating,
		machine.PhaseInPlaceUpdateSuccessful, machine.PhaseInPlaceUpdateFailed, machine.PhaseFailed,
	}).Draw(t, "phase of a machine with a node")
	o.NoCluster = false
	if o.Node == nil || o.Node.Node == nil {
		o.Node = &machine.NodeAnswer{Node: &machine.Node{}, Read: readAt(epoch)}
	}
	o.Node.Name, o.Node.Node.Name, o.Node.Failure = node, node, ""
	o.Node.Node.ProviderID, o.Node.Node.Labels = "p://1", nil
	o.Node.Node.DeletedAt, o.Node.Node.Finalizers = epoch.Add(-time.Minute), []string{machine.NodeFinalizer}
}

// Without a grant a machine does not follow its deleted node. Until then its health is judged, and its node is
// kept up to date, as usual.
// Invariants: P45
func TestMachineOfADeletedNodeWorksOn(t *testing.T) {
	w := newWorld(t)
	w.createRunning()
	w.answerGrants(machine.Grant{Detail: "machines in replacement: 1 of at most 1"})
	w.cluster.delete(node)
	s := &shell{w: w}
	w.runPass(s)
	require.Equal(t, machine.PhaseRunning, w.store.live().Status.Phase)
	w.cluster.setReady(node, object.False)
	w.runPass(s)
	require.Equal(t, machine.PhaseUnknown, w.store.live().Status.Phase)
	w.cluster.setReady(node, object.True)
	w.edit(func(m *machine.Machine) { m.Spec.NodeTemplate.Labels = map[string]string{"pool": "b"} })
	w.runPass(s)
	require.Equal(t, machine.PhaseRunning, w.store.live().Status.Phase)
	assert.Equal(t, "b", w.cluster.live(node).Labels["pool"])
	assert.True(t, w.cluster.live(node).HasFinalizer(machine.NodeFinalizer))
	w.answerGrants(machine.Grant{Allowed: true})
	s.settle(20)
	assert.Nil(t, w.store.live())
	assert.Empty(t, w.provider.vms)
}

// A grant is asked for only when the health timeout has passed, and once each time.
func TestGrantIsAskedOncePerVerdict(t *testing.T) {
	w := newWorld(t)
	w.createRunning()
	asked := 0
	w.budget = func(*machine.Machine) *machine.Grant {
		asked++
		return &machine.Grant{Allowed: asked > 2, Detail: "no"}
	}
	s := &shell{w: w}
	w.cluster.setReady(node, object.False)
	w.runPass(s)
	assert.Zero(t, asked, "asked before the time is up")
	_, then := w.phasesAround(w.store.live().Status.Since.Add(w.policy.HealthTimeout + time.Second))
	assert.Equal(t, machine.PhaseUnknown, then)
	assert.Equal(t, 1, asked)
	w.now = w.now.Add(time.Minute)
	w.runPass(s)
	w.now = w.now.Add(time.Minute)
	w.runPass(s)
	assert.Equal(t, 3, asked)
	assert.Equal(t, machine.PhaseFailed, w.store.live().Status.Phase)
}

func init() { maps.Copy(healthStories, lostStories) }

// toAvailable creates a machine without a cluster, and runs a pass that makes it Available.
func (s *story) toAvailable() {
	s.cluster = nil
	s.createMachine()
	s.reconcile()
	require.Equal(s.t, machine.PhaseAvailable, s.store.live().Status.Phase)
	require.Empty(s.t, s.store.live().Spec.NodeName, "there are no nodes")
	s.text.Reset()
}

// reportMissingVM makes the observation say that listings lack the machine's VM.
func (s *story) reportMissingVM() {
	s.missing = &machine.MissingVM{Since: s.now.Add(-30 * time.Second)}
}

var lostStories = map[string]func(*story){
	"VM lost without a cluster": func(s *story) {
		s.toAvailable()
		s.provider.vms = nil
		s.advance(time.Hour)
		s.reportMissingVM()
		s.later(0, "the VM is gone at the provider, and two listings did not name it")
	},
	"VM lost and the budget is spent": func(s *story) {
		s.toAvailable()
		s.provider.vms = nil
		s.answerGrants(machine.Grant{Detail: "machines in replacement: 1 of at most 1"})
		s.advance(time.Hour)
		s.reportMissingVM()
		s.later(0, "ten VMs are gone; another machine is in replacement")
		s.missing.NotFound = true
		s.wait()
		s.answerGrants(machine.Grant{Allowed: true})
		s.comment("the other one was replaced")
		s.wait()
	},
	"VM that a list leaves out": func(s *story) {
		s.toAvailable()
		s.advance(time.Hour)
		s.reportMissingVM()
		s.later(0, "two listings did not name the VM, which is there")
		s.provider.noStatus = true
		s.reportMissingVM()
		s.later(time.Hour, "further ones, of a driver that can't be asked")
	},
	"VM unhealthy without a cluster until the time is up": func(s *story) {
		s.toAvailable()
		s.advance(time.Hour)
		s.reportUnhealthyVM("stopped")
		s.later(0, "the list says that the VM is unhealthy")
		s.provider.faults = func(codes.Call) fault { return fault{code: codes.Unavailable} }
		s.later(time.Hour, "the provider is out, for longer than the health timeout")
		s.provider.faults = nil
		s.answerGrants(machine.Grant{Detail: "machines in replacement: 1 of at most 1"})
		s.later(0, "it answers again; another machine is in replacement")
		s.answerGrants(machine.Grant{Allowed: true})
		s.comment("the other one was replaced")
		s.wait()
	},
	"VM unhealthy without a cluster for a while": func(s *story) {
		s.toAvailable()
		s.advance(time.Hour)
		s.reportUnhealthyVM("rebooting")
		s.later(0, "the list says that the VM is unhealthy")
		s.wait()
		s.provider.vms[0].unhealthy = ""
		s.comment("it has rebooted")
		s.wait()
		s.later(time.Hour, "the list still says so, and the driver does not")
	},
	"VM lost while it is unhealthy": func(s *story) {
		s.toAvailable()
		s.advance(time.Hour)
		s.reportUnhealthyVM("stopped")
		s.later(0, "the list says that the VM is unhealthy")
		s.provider.vms = nil
		s.later(time.Hour, "the VM is gone, and no listing was made since")
		s.reportMissingVM()
		s.later(0, "two listings did not name it")
	},
	"VM unhealthy without a health timeout": func(s *story) {
		s.toAvailable()
		s.force(func(m *machine.Machine) { m.Spec.Config.DisableHealthTimeout = true })
		s.advance(time.Hour)
		s.reportUnhealthyVM("stopped")
		s.later(0, "the list says that the VM is unhealthy")
		s.later(5*time.Hour, "still so")
	},
}

// reportUnhealthyVM makes driver and listings report the machine's VM as unhealthy.
func (s *story) reportUnhealthyVM(why string) {
	s.provider.vms[0].unhealthy, s.listedUnhealthy = why, true
}

// TestP54NoVMIsGivenUpByOneAnswer: without a cluster, a machine becomes Unknown only if the listing and the
// driver report its VM as unhealthy. It fails only if the driver reports that in this pass, after a whole
// health timeout as Unknown and, if there is a budget, with a grant. No other answer of the driver, no error
// either, moves the phase.
// Invariants: P54
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
		if rapid.Bool().Draw(t, "timed out") {
			o.Class, o.Frozen, o.VMUnhealthy, o.Budgeted = &machine.Class{}, false, true, false
			o.VM = &machine.VM{Unhealthy: rapid.SampledFrom([]string{"", "stopped"}).Draw(t, "said")}
		}
		plan, err := machine.Decide(o, machine.DefaultPolicy(), epoch)
		require.NoError(t, err)
		on := first(&plan).On
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
			require.Failf(t, "unexpected event", "%s: %s", on, plan.Why)
		}
	})
	require.Positive(t, moved[machine.EventUnhealthy])
	require.Positive(t, moved[machine.EventAvailable])
	require.Positive(t, moved[machine.EventHealthTimeout])
}

// TestNoVMIsLostByListingsAlone: a machine fails because its VM is gone only without a cluster, if the driver
// returned NOT_FOUND in this pass and, if there is a budget, with a grant. A preserved machine does not fail
// for that.
// Invariants: P24
func TestNoVMIsLostByListingsAlone(t *testing.T) {
	lost := 0
	rapid.Check(t, func(t *rapid.T) {
		o := anyObservation(t)
		if rapid.Bool().Draw(t, "timed out") {
			m := o.Machine
			m.Name, m.DeletedAt, m.Finalizers, m.Annotations = ours, time.Time{}, []string{machine.Finalizer}, nil
			m.Spec.Class.Name, m.Spec.ProviderID, m.Spec.Config = "small", "p://1", machine.Configuration{}
			m.Status = machine.Status{Phase: machine.PhaseAvailable, Since: epoch.Add(-time.Hour)}
			if rapid.Bool().Draw(t, "preserved") {
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
		if first(&plan).On != machine.EventLost {
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
