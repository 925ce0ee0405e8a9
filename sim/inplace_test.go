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

// selectedMachines returns a set to which the names of all machines are added that are selected for an
// update in place from now on.
func (r *run) selectedMachines() map[string]bool {
	names := map[string]bool{}
	r.w.Watch(func() {
		for _, m := range r.machines() {
			if m.Spec.InPlace == machine.InPlaceSelected {
				names[m.Name] = true
			}
		}
	})
	return names
}

func (r *run) machines() []*machine.Machine {
	machines, err := r.w.Machines().List(ctx, store.Query{})
	require.NoError(r.t, err)
	return machines
}

// TestP46FailingUpdatesStop: when all updates in place fail, at once or because no agent answers, then for
// a week no more machines are selected than may be unavailable. Failed machines are replaced after the
// health timeout. The rollout continues with another template.
// Invariants: P46
func TestP46FailingUpdatesStop(t *testing.T) {
	for _, faults := range []sim.Faults{{BadUpdate: 1}, {DeadUpdate: 1}} {
		for _, unavailable := range []int32{1, 3} {
			r := &run{t: t}
			o := sim.Options{Faults: faults}
			o.Manager.Policies.Safety = safety.DefaultPolicy()
			r.open(o, fleet(6, inPlace(unavailable)))
			r.awaitComplete()
			made, touched := r.w.Made(), r.selectedMachines()
			r.roll("large")
			r.wait(7 * 24 * time.Hour)
			require.Len(t, touched, int(unavailable))
			require.Equal(t, int(unavailable), r.w.Made()-made, "replaced machines; those that failed have to be")
			d, err := r.w.Deployments().Get(ctx, web)
			require.NoError(t, err)
			c := object.FindCondition(d.Status.Conditions, deployment.ConditionProgressing)
			require.Equal(t, deployment.ProgressStopped, c.Reason)
			require.Contains(t, deployment.Missing(d), "the rollout has stopped")
			require.EqualValues(t, 6, d.Status.Available)

			r.w.StopFaults()
			r.roll("huge")
			r.awaitComplete()
			require.Equal(t, int(unavailable), r.w.Made()-made)
			r.w.Close()
		}
	}
}

// TestFailedUpdateIsReplacedAtOnce: with Policy.ReplaceFailedUpdates, a machine whose update failed is
// replaced at once, and the rollout stops as it does without.
// Invariants: P47
func TestFailedUpdateIsReplacedAtOnce(t *testing.T) {
	for atOnce, made := range map[bool]int{true: 4, false: 3} {
		r := &run{t: t}
		o := sim.Options{Faults: sim.Faults{BadUpdate: 1}, Update: time.Minute}
		o.Manager.Policies.Safety = safety.DefaultPolicy()
		o.Manager.Policies.Machine = &machine.Policy{ReplaceFailedUpdates: atOnce}
		r.open(o, fleet(3, inPlace(1)))
		r.awaitComplete()
		touched := r.selectedMachines()
		r.roll("large")
		r.wait(5 * time.Minute)
		require.Equal(t, made, r.w.Made(), "%v", atOnce)
		r.wait(24 * time.Hour)
		require.Equal(t, 4, r.w.Made())
		require.Len(t, touched, 1)
		r.w.Close()
	}
}

// TestP46NodesThatNeverReturn: if the agent reports success but the node never becomes ready again, the
// update counts as failed when its machine is replaced, and the rollout stops.
// Invariants: P46
func TestP46NodesThatNeverReturn(t *testing.T) {
	r := settledInPlace(t, 4, 1)
	defer r.w.Close()
	made := r.w.Made()
	r.w.Watch(func() {
		for _, m := range r.machines() {
			if m.Status.Phase == machine.PhaseInPlaceUpdateSuccessful {
				r.setReady(m.Name, object.False)
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
	r.awaitComplete()
	return r
}

// setReady sets the readiness of a node.
func (r *run) setReady(name string, status object.ConditionStatus) {
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

// TestP47NotReadyCostsNoVM: nodes that are not Ready for less than the health timeout, before an update in
// place or during it, cost no VM, also with manual orchestration. The rollout waits for them, and ends.
// Invariants: P47
func TestP47NotReadyCostsNoVM(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		replicas := rapid.Int32Range(2, 8).Draw(t, "replicas")
		r := settledInPlace(t, replicas, rapid.Int32Range(1, replicas).Draw(t, "unavailable"))
		defer r.w.Close()
		manual, noTimeout := rapid.Bool().Draw(t, "manual"), rapid.Bool().Draw(t, "no health timeout")
		r.edit("", func(s *deployment.Spec) {
			if manual {
				s.Strategy.Orchestration = deployment.Manual
			}
			s.Template.Spec.Config.DisableHealthTimeout = noTimeout
		})
		ill := map[string]time.Time{} // when a node becomes ready again, by name
		pass := func(d time.Duration) {
			for end := r.w.Now().Add(d); r.w.Now().Before(end); {
				r.wait(min(10*time.Second, end.Sub(r.w.Now())))
				for _, m := range r.machines() {
					if until, is := ill[m.Name]; is && !r.w.Now().Before(until) {
						delete(ill, m.Name)
						r.setReady(m.Name, object.True)
					}
				}
			}
		}
		pass(time.Minute)
		flap := func() {
			for _, m := range r.machines() {
				if _, is := ill[m.Name]; is || rapid.IntRange(0, 2).Draw(t, "not ready") > 0 {
					continue
				}
				ill[m.Name] = r.w.Now().Add(time.Duration(rapid.IntRange(1, 9*60).Draw(t, "seconds")) * time.Second)
				r.setReady(m.Name, object.False)
			}
		}
		flap()
		pass(time.Duration(rapid.IntRange(0, 60).Draw(t, "before")) * time.Second)
		r.roll("large")
		pass(time.Duration(rapid.IntRange(0, 300).Draw(t, "amid")) * time.Second)
		flap()
		pass(10 * time.Minute)
		if !manual {
			r.awaitComplete()
		}
		require.EqualValues(t, replicas, r.w.Made())
	})
}

// TestP7SelectionByHandKeepsTheBound: a user selects all nodes by labels at once. With automatic
// orchestration, no more machines are out of service at a time than may be, and events say that the others
// wait. With manual orchestration all are updated at once.
// Invariants: P7
func TestP7SelectionByHandKeepsTheBound(t *testing.T) {
	for manual, out := range map[deployment.Orchestration]int{deployment.Automatic: 1, deployment.Manual: 4} {
		waiting := map[string]bool{} // machines about which a warning said that they wait
		r := &run{t: t}
		o := sim.Options{Update: time.Minute}
		o.Manager.Policies.Safety = safety.DefaultPolicy()
		o.Manager.Hooks.Event = func(_ manager.Kind, key object.Key, typ manager.EventType, reason, _ string) {
			if typ == manager.Warning && reason == "SelectionWaits" {
				waiting[key.Name] = true
			}
		}
		r.open(o, fleet(4, inPlace(1)))
		r.edit("", func(s *deployment.Spec) { s.Strategy.Orchestration = manual })
		r.awaitComplete()
		most, made := 0, r.w.Made()
		r.w.Watch(func() {
			n := 0
			for _, m := range r.machines() {
				if m.Status.Phase == machine.PhaseInPlaceUpdating {
					n++
				}
			}
			most = max(most, n)
		})
		r.roll("large")
		r.wait(2 * time.Second)
		for _, m := range r.machines() {
			n, err := r.w.Nodes().Get(ctx, object.Key{Name: m.Name})
			require.NoError(t, err)
			n = n.Clone()
			n.Labels[machine.DefaultPolicy().Keys.SelectedForUpdate] = "true"
			_, err = r.w.Nodes().Update(ctx, n)
			require.NoError(t, err)
		}
		r.awaitComplete()
		require.Equal(t, out, most, "with orchestration %q", manual)
		require.Equal(t, manual == deployment.Automatic, len(waiting) >= 3, "warnings about: %v", waiting)
		require.Equal(t, made, r.w.Made())
		r.w.Close()
	}
}

// TestWaitsForUnreadyMachines: while machines that are not Ready use up the allowed unavailability, the
// deployment's condition names one of them.
func TestWaitsForUnreadyMachines(t *testing.T) {
	r := settledInPlace(t, 3, 1)
	defer r.w.Close()
	name := r.machines()[1].Name
	r.setReady(name, object.False)
	r.wait(5 * time.Second)
	r.roll("large")
	r.wait(time.Minute)
	d, err := r.w.Deployments().Get(ctx, web)
	require.NoError(t, err)
	c := object.FindCondition(d.Status.Conditions, deployment.ConditionProgressing)
	require.Contains(t, c.Message, "machine "+name+" is Unknown")
	require.EqualValues(t, 3, r.w.Made())
}

// TestNodeRegisteredAnewIsDrainedAgain: a node that registers again after it was drained for its update
// gets pods until it is cordoned again. Its agent may begin the update only when these are gone (P22).
// Invariants: P22
func TestNodeRegisteredAnewIsDrainedAgain(t *testing.T) {
	landed := 0
	for seed := range uint64(10) {
		r := &run{t: t}
		o := sim.Options{Seed: seed, Faults: sim.Faults{Latency: 2 * time.Second, CacheLag: 10 * time.Second}}
		o.Manager.Policies.Safety = safety.DefaultPolicy()
		r.open(o, fleet(1, inPlace(1)))
		r.w.AddApp(sim.App{Name: "app", Replicas: 2, Grace: 30 * time.Second})
		r.awaitComplete()
		name := r.machines()[0].Name
		r.roll("large")
		require.NoError(t, r.w.Until(func() bool {
			return r.machines()[0].Status.LastOperation.Stage == machine.StageReady
		}, time.Hour))
		r.w.Do(&sim.Step{Do: sim.RegisterNode, For: time.Second})
		require.NoError(t, r.w.Until(func() bool {
			landed += r.w.PodsOn(name)
			return r.machines()[0].Status.Phase == machine.PhaseInPlaceUpdateSuccessful
		}, time.Hour))
		r.awaitComplete()
		require.EqualValues(t, 1, r.w.Made())
		r.w.Close()
	}
	require.Positive(t, landed, "pods that were bound to the node")
}
