package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/store"
)

func inPlace(unavailable int32) deployment.Strategy {
	return deployment.Strategy{Kind: deployment.InPlaceUpdate, MaxUnavailable: rollout.IntOrPercent{Value: unavailable}}
}

// touched follows which machines of a world were ever selected for an update in place.
func (r *run) touched() map[string]bool {
	names := map[string]bool{}
	r.w.Watch(func() {
		for _, m := range r.all() {
			if m.Spec.InPlace == machine.InPlaceSelected {
				names[m.Name] = true
			}
		}
	})
	return names
}

func (r *run) all() []*machine.Machine {
	machines, err := r.w.Machines().List(ctx, store.Query{})
	require.NoError(r.t, err)
	return machines
}

// TestP46FailingUpdatesStop: when all updates in place fail, at once or because no agent answers, no
// more machines are touched than may be unavailable, for a week. What failed is replaced after its
// health timeout. The rollout goes on with another template.
// Invariants: P46
func TestP46FailingUpdatesStop(t *testing.T) {
	for _, faults := range []sim.Faults{{BadUpdate: 1}, {DeadUpdate: 1}} {
		for _, unavailable := range []int32{1, 3} {
			r := &run{t: t}
			o := sim.Options{Faults: faults}
			o.Manager.Policies.Safety = safety.DefaultPolicy()
			r.open(o, fleet(6, inPlace(unavailable)))
			r.complete()
			made, touched := r.w.Made(), r.touched()
			r.roll("large")
			r.wait(7 * 24 * time.Hour)
			require.Len(t, touched, int(unavailable))
			require.Equal(t, int(unavailable), r.w.Made()-made, "each that failed was replaced, and no other")
			d, err := r.w.Deployments().Get(ctx, web)
			require.NoError(t, err)
			c := object.FindCondition(d.Status.Conditions, deployment.ConditionProgressing)
			require.Equal(t, deployment.ProgressStopped, c.Reason)
			require.Contains(t, deployment.Missing(d), "the rollout has stopped")
			require.EqualValues(t, 6, d.Status.Available)

			r.w.StopFaults()
			r.roll("huge")
			r.complete()
			require.Equal(t, int(unavailable), r.w.Made()-made)
			r.w.Close()
		}
	}
}

// TestFailedUpdateIsReplacedAtOnce by policy, and the rollout stops all the same.
// Invariants: P47
func TestFailedUpdateIsReplacedAtOnce(t *testing.T) {
	for atOnce, made := range map[bool]int{true: 4, false: 3} {
		r := &run{t: t}
		o := sim.Options{Faults: sim.Faults{BadUpdate: 1}, Update: time.Minute}
		o.Manager.Policies.Safety = safety.DefaultPolicy()
		o.Manager.Policies.Machine = &machine.Policy{ReplaceFailedUpdates: atOnce}
		r.open(o, fleet(3, inPlace(1)))
		r.complete()
		touched := r.touched()
		r.roll("large")
		r.wait(5 * time.Minute)
		require.Equal(t, made, r.w.Made(), "%v", atOnce)
		r.wait(24 * time.Hour)
		require.Equal(t, 4, r.w.Made())
		require.Len(t, touched, 1)
		r.w.Close()
	}
}

// TestP46AgentsThatNeverReturn: an update that succeeds, and whose node never comes back, has failed
// when its machine is given up.
// Invariants: P46
func TestP46AgentsThatNeverReturn(t *testing.T) {
	r := settledInPlace(t, 4, 1)
	defer r.w.Close()
	made := r.w.Made()
	r.w.Watch(func() {
		for _, m := range r.all() {
			if m.Status.Phase == machine.PhaseInPlaceUpdateSuccessful {
				r.ready(m.Name, object.False)
			}
		}
	})
	r.roll("large")
	r.wait(24 * time.Hour)
	require.Equal(t, 1, r.w.Made()-made)
}

// settledInPlace returns a converged fleet that is updated in place.
func settledInPlace(t tb, replicas, unavailable int32) *run {
	r := &run{t: t}
	o := sim.Options{}
	o.Manager.Policies.Safety = safety.DefaultPolicy()
	r.open(o, fleet(replicas, inPlace(unavailable)))
	r.complete()
	return r
}

// ready sets the readiness of a node.
func (r *run) ready(name string, status object.ConditionStatus) {
	n, err := r.w.Nodes().Get(ctx, object.Key{Name: name})
	require.NoError(r.t, err)
	if c := object.FindCondition(n.Conditions, machine.NodeReady); c != nil && c.Status == status {
		return
	}
	n = n.Clone()
	n.Conditions = object.SetCondition(n.Conditions, object.Condition{Type: machine.NodeReady, Status: status, Since: r.w.Now()})
	_, err = r.w.Nodes().UpdateStatus(ctx, n)
	require.NoError(r.t, err)
}

// TestP47NotReadyCostsNoVM: nodes that are not Ready for less than the health timeout, before an
// update in place and amid it, cost no VM, also if a user selects the machines. The rollout waits, says for
// which machine, and ends.
// Invariants: P47
func TestP47NotReadyCostsNoVM(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		replicas := rapid.Int32Range(2, 8).Draw(t, "replicas")
		r := settledInPlace(t, replicas, rapid.Int32Range(1, replicas).Draw(t, "unavailable"))
		defer r.w.Close()
		manual, waits := rapid.Bool().Draw(t, "manual"), rapid.Bool().Draw(t, "no health timeout")
		r.edit("", func(s *deployment.Spec) {
			if manual {
				s.Strategy.Orchestration = deployment.Manual
			}
			s.Template.Spec.Config.DisableHealthTimeout = waits
		})
		ill := map[string]time.Time{} // until when, by node
		pass := func(d time.Duration) {
			for end := r.w.Now().Add(d); r.w.Now().Before(end); {
				r.wait(min(10*time.Second, end.Sub(r.w.Now())))
				for _, m := range r.all() {
					if until, is := ill[m.Name]; is && !r.w.Now().Before(until) {
						delete(ill, m.Name)
						r.ready(m.Name, object.True)
					}
				}
			}
		}
		pass(time.Minute)
		flap := func() {
			for _, m := range r.all() {
				if _, is := ill[m.Name]; is || rapid.IntRange(0, 2).Draw(t, "not ready") > 0 {
					continue
				}
				ill[m.Name] = r.w.Now().Add(time.Duration(rapid.IntRange(1, 9*60).Draw(t, "seconds")) * time.Second)
				r.ready(m.Name, object.False)
			}
		}
		flap()
		pass(time.Duration(rapid.IntRange(0, 60).Draw(t, "before")) * time.Second)
		r.roll("large")
		pass(time.Duration(rapid.IntRange(0, 300).Draw(t, "amid")) * time.Second)
		flap()
		pass(10 * time.Minute)
		if !manual {
			r.complete()
		}
		require.EqualValues(t, replicas, r.w.Made())
	})
}

// TestP7SelectionByHandKeepsTheBound: with automatic orchestration, labels by hand that select all
// nodes at once take no more machines out of service than may be, and each is told to wait. With
// manual orchestration the user's selection is what is done.
// Invariants: P7
func TestP7SelectionByHandKeepsTheBound(t *testing.T) {
	for manual, out := range map[deployment.Orchestration]int{deployment.Automatic: 1, deployment.Manual: 4} {
		told := map[string]bool{}
		r := &run{t: t}
		o := sim.Options{Update: time.Minute}
		o.Manager.Policies.Safety = safety.DefaultPolicy()
		o.Manager.Hooks.Event = func(_ manager.Kind, key object.Key, typ manager.EventType, reason, _ string) {
			if typ == manager.Warning && reason == "SelectionWaits" {
				told[key.Name] = true
			}
		}
		r.open(o, fleet(4, inPlace(1)))
		r.edit("", func(s *deployment.Spec) { s.Strategy.Orchestration = manual })
		r.complete()
		most, made := 0, r.w.Made()
		r.w.Watch(func() {
			n := 0
			for _, m := range r.all() {
				if m.Status.Phase == machine.PhaseInPlaceUpdating {
					n++
				}
			}
			most = max(most, n)
		})
		r.roll("large")
		r.wait(2 * time.Second)
		for _, m := range r.all() {
			n, err := r.w.Nodes().Get(ctx, object.Key{Name: m.Name})
			require.NoError(t, err)
			n = n.Clone()
			n.Labels[machine.DefaultPolicy().Keys.SelectedForUpdate] = "true"
			_, err = r.w.Nodes().Update(ctx, n)
			require.NoError(t, err)
		}
		r.complete()
		require.Equal(t, out, most, "with orchestration %q", manual)
		require.Equal(t, manual == deployment.Automatic, len(told) >= 3, "told: %v", told)
		require.Equal(t, made, r.w.Made())
		r.w.Close()
	}
}

// TestWaitsForUnreadyMachines: while machines that are not Ready use up the allowed unavailability,
// the condition names one of them.
func TestWaitsForUnreadyMachines(t *testing.T) {
	r := settledInPlace(t, 3, 1)
	defer r.w.Close()
	name := r.all()[1].Name
	r.ready(name, object.False)
	r.wait(5 * time.Second)
	r.roll("large")
	r.wait(time.Minute)
	d, err := r.w.Deployments().Get(ctx, web)
	require.NoError(t, err)
	c := object.FindCondition(d.Status.Conditions, deployment.ConditionProgressing)
	require.Contains(t, c.Message, "machine "+name+" is Unknown")
	require.EqualValues(t, 3, r.w.Made())
}

// TestNodeRegisteredAnewIsDrainedAgain: a node that registers again when it has been emptied for its
// update takes pods until it is cordoned again. Its agent is told to go to work when these are gone
// (P22).
// Invariants: P22
func TestNodeRegisteredAnewIsDrainedAgain(t *testing.T) {
	landed := 0
	for seed := range uint64(10) {
		r := &run{t: t}
		o := sim.Options{Seed: seed, Faults: sim.Faults{Latency: 2 * time.Second, CacheLag: 10 * time.Second}}
		o.Manager.Policies.Safety = safety.DefaultPolicy()
		r.open(o, fleet(1, inPlace(1)))
		r.w.AddApp(sim.App{Name: "app", Replicas: 2, Grace: 30 * time.Second})
		r.complete()
		name := r.all()[0].Name
		r.roll("large")
		require.NoError(t, r.w.Until(func() bool {
			return r.all()[0].Status.LastOperation.Stage == machine.StageReady
		}, time.Hour))
		r.w.Do(&sim.Step{Do: sim.RegisterNode, For: time.Second})
		require.NoError(t, r.w.Until(func() bool {
			landed += r.w.PodsOn(name)
			return r.all()[0].Status.Phase == machine.PhaseInPlaceUpdateSuccessful
		}, time.Hour))
		r.complete()
		require.EqualValues(t, 1, r.w.Made())
		r.w.Close()
	}
	require.Positive(t, landed, "pods have come to the node")
}
