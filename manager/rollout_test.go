package manager_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/store"
)

// told counts the events of a reason.
func (w *world) told(reason decision.Reason) (n int) {
	for _, line := range w.story {
		if strings.Contains(line, ": "+reason.String()+": ") {
			n++
		}
	}
	return n
}

// request asks for a rollback and waits for the answer, and until the fleet
// has settled.
func (w *world) request(p *process, revision int64) {
	w.change(func(d *deployment.Deployment) { d.Spec.RollbackTo = &deployment.Rollback{Revision: revision} })
	w.until(p, func() bool {
		d, err := w.deployments.Get(ctx, fleetKey)
		require.NoError(w.t, err)
		return d.Spec.RollbackTo == nil && w.settled(3)()
	}, nil)
}

// TestRollbackIsTold: each request is answered by one event, also when the same
// one comes again.
func TestRollbackIsTold(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.bounded = true
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), unexpected(t))
	w.request(p, 7)
	w.request(p, 7)
	require.Equal(t, 2, w.told(deployment.ReasonRollbackRevisionNotFound))
	w.request(p, 1)
	require.Equal(t, 1, w.told(deployment.ReasonRollbackTemplateUnchanged))

	w.change(func(d *deployment.Deployment) { d.Spec.Template.Annotations = map[string]string{"version": "2"} })
	w.until(p, w.settled(3), unexpected(t))
	w.request(p, 0)
	require.Equal(t, 1, w.told(deployment.ReasonRollbackDone))
	d, err := w.deployments.Get(ctx, fleetKey)
	require.NoError(t, err)
	require.Empty(t, d.Spec.Template.Annotations)
	require.Equal(t, int64(3), d.Revision)
}

// TestRecreateThroughTheManager: a fleet is recreated twice; machines of two
// sets are never there at once, and without a history the old sets go.
func TestRecreateThroughTheManager(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	none := int32(0)
	w.change(func(d *deployment.Deployment) {
		d.Spec.Strategy.Kind, d.Spec.RevisionHistoryLimit = deployment.Recreate, &none
	})
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), unexpected(t))
	for _, version := range []string{"2", "3"} {
		w.change(func(d *deployment.Deployment) { d.Spec.Template.Annotations = map[string]string{"version": version} })
		w.until(p, func() bool {
			machines, err := w.machines.List(ctx, store.Query{})
			require.NoError(t, err)
			owners := map[string]bool{}
			for _, m := range machines {
				owners[m.Owner.UID] = true
			}
			require.LessOrEqual(t, len(owners), 1, "machines of two sets\n%s", w.dump())
			return w.settled(3)()
		}, unexpected(t))
	}
	for range 5 { // sets tell that they are empty, and go
		w.at = w.at.Add(time.Minute)
		w.round(p)
	}
	require.Len(t, keysOf(w.sets), 1)
}
