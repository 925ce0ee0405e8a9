package machineset_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// TestProgressIsTold: the numbers of a deployment's set may wait for longer than
// all else; those of a set without owner may not.
func TestProgressIsTold(t *testing.T) {
	p := machineset.DefaultPolicy()
	p.ProgressInterval = time.Minute
	numbers := func(o *machineset.Observation) { o.Machines[0].Status.Phase = machine.PhaseUnknown }
	for name, c := range map[string]struct {
		change func(*machineset.Observation)
		lone   bool
		after  time.Duration
	}{
		"numbers":                      {numbers, false, time.Minute},
		"numbers and the generation":   {func(o *machineset.Observation) { numbers(o); o.Set.Generation++ }, false, time.Minute},
		"numbers of a set of nobody's": {numbers, true, time.Second},
		"a failure": {func(o *machineset.Observation) {
			o.Machines[0].Status.LastOperation.State = machine.StateFailed
		}, false, time.Second},
		"a condition": {func(o *machineset.Observation) { o.Frozen = true }, false, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			now := morning.Add(9 * time.Hour)
			o := fleet(3, 3, false)
			if !c.lone {
				o.Set.Owner = &object.Owner{Kind: "MachineDeployment", Name: "web", UID: "deployment-1"}
			}
			settle(t, o, now)
			c.change(o)
			o.StatusWritten = now.Add(1 - c.after)
			plan, err := machineset.Decide(o, p, now)
			require.NoError(t, err)
			require.Nil(t, plan.Write)
			require.Equal(t, now.Add(1), plan.At)
			o.StatusWritten = now.Add(-c.after)
			plan, err = machineset.Decide(o, p, now)
			require.NoError(t, err)
			require.IsType(t, &machineset.UpdateStatus{}, plan.Write)
		})
	}
}
