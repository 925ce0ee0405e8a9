package sim_test

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/sim"
)

// tb is the common interface of *testing.T and *rapid.T.
type tb interface {
	require.TestingT
	Helper()
	Logf(format string, args ...any)
}

// run is one fleet, the deployment web, in one world.
type run struct {
	t   tb
	w   *sim.World
	say func(text string) // is told of the user's edits; or nil
}

// patience is how long anything may take, in virtual time.
const patience = 48 * time.Hour

func (r *run) start(seed uint64, faults sim.Faults, d *deployment.Deployment, hooks manager.Hooks) {
	r.t.Helper()
	r.open(sim.Options{Seed: seed, Faults: faults, Manager: manager.Options{Hooks: hooks}}, d)
}

// quiet holds the options of a world without faults, and without the loops of package safety.
var quiet = sim.Options{Manager: manager.Options{Policies: manager.Policies{Safety: safety.Off()}}}

func (r *run) open(o sim.Options, d *deployment.Deployment) {
	r.t.Helper()
	o.Manager.Policies.Safety = cmp.Or(o.Manager.Policies.Safety, quiet.Manager.Policies.Safety)
	w, err := sim.New(o)
	require.NoError(r.t, err)
	r.w = w
	require.NoError(r.t, w.AddClass("large"))
	require.NoError(r.t, w.AddClass("huge"))
	_, err = w.Deployments().Create(ctx, d)
	require.NoError(r.t, err)
}

// edit changes the deployment as its owner would.
func (r *run) edit(what string, change func(*deployment.Spec)) {
	r.t.Helper()
	if r.say != nil {
		r.say(what)
	}
	d, err := r.w.Deployments().Get(ctx, web)
	require.NoError(r.t, err)
	d = d.Clone()
	change(&d.Spec)
	_, err = r.w.Deployments().Update(ctx, d)
	require.NoError(r.t, err)
}

func (r *run) roll(class string) {
	r.t.Helper()
	r.edit("class "+class+" is wanted", func(s *deployment.Spec) { s.Template.Spec.Class.Name = class })
}

// awaitComplete waits until all machines are as wanted. It continues a rollout that has stopped, as a user
// does.
func (r *run) awaitComplete() {
	r.t.Helper()
	for range 100 {
		require.NoError(r.t, r.w.Until(func() bool { return r.w.Complete(web.Name) || r.stopped() }, patience))
		if r.w.Complete(web.Name) {
			return
		}
		r.edit("paused, as the rollout has stopped", func(s *deployment.Spec) { s.Paused = true })
		require.NoError(r.t, r.w.Until(func() bool { return r.failures() == 0 }, patience))
		r.edit("resumed", func(s *deployment.Spec) { s.Paused = false })
	}
	require.Fail(r.t, "the rollout stopped 100 times")
}

// stopped reports whether the present rollout has stopped because machines failed.
func (r *run) stopped() bool {
	d, err := r.w.Deployments().Get(ctx, web)
	require.NoError(r.t, err)
	c := object.FindCondition(d.Status.Conditions, deployment.ConditionProgressing)
	return c != nil && c.Reason == deployment.ProgressStopped && d.Status.ObservedGeneration == d.Generation
}

// failures returns how many failures the rollout counts.
func (r *run) failures() int32 {
	d, err := r.w.Deployments().Get(ctx, web)
	require.NoError(r.t, err)
	return d.Status.RolloutFailures.Count
}

// awaitUpdated waits until n machines have the present template, and so many are available.
func (r *run) awaitUpdated(n int32) {
	r.t.Helper()
	require.NoError(r.t, r.w.Until(func() bool {
		d, err := r.w.Deployments().Get(ctx, web)
		return err == nil && d.Status.ObservedGeneration == d.Generation && d.Status.Updated >= n && d.Status.Available >= min(n, d.Status.Updated)
	}, patience))
}

func (r *run) scale(n int32) {
	r.t.Helper()
	r.edit(fmt.Sprintf("%d are wanted", n), func(s *deployment.Spec) { s.Replicas = n })
}

func (r *run) wait(d time.Duration) {
	r.t.Helper()
	require.NoError(r.t, r.w.Run(d))
}

var (
	ctx = context.Background()
	web = object.Key{Namespace: sim.Namespace, Name: "web"}
)

func fleet(replicas int32, strategy deployment.Strategy) *deployment.Deployment {
	labels := map[string]string{"app": "web"}
	return &deployment.Deployment{Meta: object.Meta{Key: web}, Spec: deployment.Spec{
		Replicas: replicas, Selector: object.Selector{Labels: labels}, Strategy: strategy,
		Template: machineset.Template{Labels: labels, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}}},
	}}
}

// busy returns faults that delay everything, so that passes overlap, but let nothing fail.
func busy() sim.Faults {
	return sim.Faults{Latency: 2 * time.Second, CacheLag: 5 * time.Second, CallTime: 20 * time.Second, Repeat: 0.1, SlowBoot: time.Minute}
}

// TestSameSeedSameRun: the same seed repeats a run.
func TestSameSeedSameRun(t *testing.T) {
	tell := func(seed uint64) (story string) {
		faults := busy()
		faults.Call, faults.LostCall, faults.LostAnswer, faults.Flap, faults.DeadBoot = 0.1, 0.05, 0.02, 0.3, 0.2
		faults.Kills, faults.KillWithin, faults.Late, faults.LateBy = 3, 60, 0.5, 30*time.Second
		r := &run{t: t}
		r.start(seed, faults, fleet(4, deployment.Strategy{}), manager.Hooks{
			Event: func(_ manager.Kind, key object.Key, _ manager.EventType, reason, why string) {
				story += fmt.Sprintln(r.w.Now().Format("15:04:05.000"), key.Name, reason, why)
			},
		})
		_ = r.w.Run(3 * time.Hour)
		r.w.Close()
		return story
	}
	first := tell(7)
	require.NotEmpty(t, first)
	require.Equal(t, first, tell(7))
	require.NotEqual(t, first, tell(8))
}
