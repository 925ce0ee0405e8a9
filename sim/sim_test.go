package sim_test

import (
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
	"github.com/millwright-go/millwright/sim"
)

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

// busy is a world in which everything is under way for a while, and nothing fails.
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
