package manager_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
)

// TestRolloutCompleteIsToldOnce for each rollout, and for nothing else: not by another process, not for
// another size, not after a pause, not for a VM that is replaced.
func TestRolloutCompleteIsToldOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, drivertest.MemoryOptions{})
		w.fleet()
		p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), unexpected(t))
		rollouts, replicas := 1, 3
		require.Equal(t, rollouts, w.heard("RolloutComplete: the rollout of revision 1 is complete"))
		for range rapid.IntRange(1, 6).Draw(rt, "actions") {
			switch rapid.SampledFrom([]string{"roll", "scale", "restart", "pause", "lose"}).Draw(rt, "action") {
			case "roll":
				rollouts++
				w.change(func(d *deployment.Deployment) {
					d.Spec.Template.Annotations = map[string]string{"version": strconv.Itoa(rollouts)}
				})
			case "scale":
				replicas = rapid.IntRange(1, 4).Draw(rt, "replicas")
				w.change(func(d *deployment.Deployment) { d.Spec.Replicas = int32(replicas) })
			case "restart":
				p = w.start(&testkit.Fuse{}, false)
			case "pause":
				w.change(func(d *deployment.Deployment) { d.Spec.Paused = true })
				p = w.until(p, func() bool {
					d, err := w.deployments.Get(ctx, fleetKey)
					return err == nil && d.Status.ObservedGeneration == d.Generation
				}, unexpected(t))
				w.change(func(d *deployment.Deployment) { d.Spec.Paused = false })
			case "lose":
				for _, m := range keysOf(w.machines)[:1] {
					require.NoError(t, w.machines.Delete(ctx, m, ""))
				}
			}
			p = w.until(p, w.settled(replicas), unexpected(t))
			require.Equal(t, rollouts, w.heard("RolloutComplete: "))
			if d, err := w.deployments.Get(ctx, fleetKey); err == nil {
				require.Zero(t, d.Status.RolloutSince)
			}
		}
	})
}
