package manager_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
)

// TestObservingAnyFleet: in any state that a manager left a fleet in when it died,
// and after anything that others did, one that only observes changes nothing and tells what
// an ordinary one would begin with.
func TestObservingAnyFleet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, drivertest.MemoryOptions{NeedsInitialization: rapid.Bool().Draw(t, "initialize")})
		w.safety, w.sick = safety.DefaultPolicy(), map[string]bool{}
		drains := 0
		w.classed = func(o *manager.Options, f *testkit.Fuse) { o.Classes.Keep, o.Drainer = true, fused{f, &drains} }
		w.fleet()
		for range rapid.IntRange(1, 4).Draw(t, "stages") {
			w.disturb(rapid.IntRange(0, 12).Draw(t, "event"), rapid.IntRange(0, 5).Draw(t, "n"))
			p := w.start(&testkit.Fuse{}, false)
			for range rapid.IntRange(0, 6).Draw(t, "rounds") {
				w.round(p)
				w.join()
				w.at = w.at.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "s")) * time.Second)
			}
			f := &testkit.Fuse{BlowAfter: true, BlowAt: rapid.IntRange(1, 60).Draw(t, "dies at")}
			w.round(w.start(f, false))
			w.compare()
		}
	})
}

// happen to has others do one thing to the fleet, if it is there to be done.
func (w *world) disturb(event, n int) {
	d, err := w.deployments.Get(ctx, fleetKey)
	switch {
	case event < 4 && err == nil && !d.Deleted():
		w.disturbDeployment(event, n)
	case event < 7 && len(keysOf(w.machines)) > 0:
		machines := keysOf(w.machines)
		w.disturbMachine(event, machines[n%len(machines)])
	default:
		w.disturbRest(event, n)
	}
}

func (w *world) disturbDeployment(event, n int) {
	switch event {
	case 0:
		w.change(func(d *deployment.Deployment) { d.Spec.Replicas = int32(n) })
	case 1:
		w.change(func(d *deployment.Deployment) {
			d.Spec.Template.Annotations = map[string]string{"version": fmt.Sprint(n)}
		})
	case 2:
		w.change(func(d *deployment.Deployment) { d.Spec.Strategy.Kind = deployment.Recreate })
	case 3:
		require.NoError(w.t, w.deployments.Delete(ctx, fleetKey, ""))
	}
}

func (w *world) disturbMachine(event int, key object.Key) {
	switch event {
	case 4:
		require.NoError(w.t, w.machines.Delete(ctx, key, ""))
	case 5:
		w.sick[key.Name] = true
	case 6:
		annotate(w, w.machines, key, preserveKey, "now")
	}
}

func (w *world) disturbRest(event, n int) {
	sets := keysOf(w.sets)
	switch {
	case event == 7:
		w.stray("blue", fmt.Sprint("web-lost-", len(w.strays)))
	case event == 8 && !w.holds("late"):
		w.late("late", machineset.OwnerKind)
	case event == 9:
		_, _ = w.nodes.Create(ctx, &machine.Node{Meta: object.Meta{Key: object.Key{Name: fmt.Sprint("foreign-", n)}}})
	case event == 10 && len(sets) > 0:
		require.NoError(w.t, w.sets.Delete(ctx, sets[0], ""))
	case event == 11 && len(sets) == 1 && w.smuggled == 0:
		w.smuggle(w.set(), 3)
	case event == 12:
		w.tag("small", "s", tags{"n": fmt.Sprint(n)})
	}
}

func (w *world) holds(machine string) bool {
	_, err := w.machines.Get(ctx, object.Key{Namespace: namespace, Name: machine})
	return err == nil
}
