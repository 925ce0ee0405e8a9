package manager_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver/drivertest"
)

// TestP8StrictQuotaLife: through a whole life under the strict quota there are
// never more machines than R + S, those that are being deleted among them.
func TestP8StrictQuotaLife(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.policy = deployment.DefaultPolicy()
	w.policy.StrictQuota = true
	w.life(w.start(&fuse{}, false), unexpected(t))
	require.Len(t, w.made, 6)
}
