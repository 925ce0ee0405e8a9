package orphan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/orphan"
	"github.com/millwright-go/millwright/test/safetytest"
)

// TestP15PausedMachinesKeepTheirVMs: a paused machine owns every VM of its name, also in the last
// check just before a delete.
// Invariants: P15
func TestP15PausedMachinesKeepTheirVMs(t *testing.T) {
	class := object.Key{Namespace: "fleet", Name: "small"}
	for _, paused := range []string{"true", "false"} {
		m := safetytest.Member("m-1", machine.PhaseRunning, paused)
		o := &orphan.Observation{Machines: []*machine.Machine{m}}
		var orders []orphan.Delete
		for at := safetytest.Noon; at.Before(safetytest.Noon.Add(2 * time.Minute)); at = at.Add(time.Minute) {
			listing := &orphan.Listing{Asked: at, Answered: at, VMs: map[string]string{"p://other": "m-1", "p://m-1": "m-1"}}
			o.Classes = []orphan.Class{{Key: class, Asked: at, Listing: listing}}
			o.Read = decision.Freshness{Began: at}
			plan, err := orphan.Decide(o, safety.DefaultPolicy(), at)
			require.NoError(t, err)
			o.Candidates, orders = plan.Candidates, plan.Delete
		}
		if paused == "true" {
			require.Empty(t, orders)
			continue
		}
		require.Len(t, orders, 1)
		require.True(t, orders[0].StillOrphan(m))
		m.Annotations[safetytest.PausedKey] = "true"
		require.False(t, orders[0].StillOrphan(m), "it was paused since")
	}
}
