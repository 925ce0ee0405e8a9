package manager_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/internal/testkit"
)

// TestStuckFleetSaysWhy: a manager that begins with a fleet whose quota is used up tells so at once, and
// again every ten minutes, from what is stored. It is quiet once the machines run.
func TestStuckFleetSaysWhy(t *testing.T) {
	w := guardedWorld(t)
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), unexpected(t))
	require.Zero(t, w.heard("HeldUp: "))
	w.refuse = func(c driver.CallInfo) error {
		if c.Method == codes.CreateMachine {
			return codes.New(codes.ResourceExhausted, "no cores are left")
		}
		return nil
	}
	w.change(func(d *deployment.Deployment) { d.Spec.Replicas = 5 })
	w.until(p, w.lasts(3*time.Minute), unexpected(t))
	before := w.heard("HeldUp: ")
	require.Equal(t, 1, before)

	p = w.until(w.start(&testkit.Fuse{}, false), func() bool { return w.heard("HeldUp: ") > before }, unexpected(t))
	began := w.at
	d, err := w.deployments.Get(ctx, fleetKey)
	require.NoError(t, err)
	require.Contains(t, deployment.Missing(d), "RESOURCE_EXHAUSTED")
	require.Contains(t, deployment.Missing(d), "no cores are left")
	p = w.until(p, w.lasts(9*time.Minute), unexpected(t))
	require.Equal(t, before+1, w.heard("HeldUp: "))
	p = w.until(p, func() bool { return w.heard("HeldUp: ") > before+1 }, unexpected(t))
	require.LessOrEqual(t, w.at.Sub(began), 12*time.Minute)

	w.refuse = nil
	p = w.until(p, w.settled(5), unexpected(t))
	told := w.heard("HeldUp: ")
	w.until(p, w.lasts(time.Hour), unexpected(t))
	require.Equal(t, told, w.heard("HeldUp: "))
}
