package mcm_test

import (
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/millwright-go/millwright/adapters/kubernetes/mcm"
)

// TestMetrics: what a provider counts in the default registry is served with the
// manager's own metrics, also what it registers later.
func TestMetrics(t *testing.T) {
	for _, name := range []string{"test_before_total", "test_after_total"} {
		counter := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: "Calls."}, []string{"service"})
		prometheus.MustRegister(counter)
		counter.WithLabelValues("vm").Add(7)
		for range 2 {
			require.NoError(t, mcm.RegisterMetrics())
		}
		families, err := ctrlmetrics.Registry.Gather()
		require.NoError(t, err)
		named := func(want string) bool {
			return slices.ContainsFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == want })
		}
		require.True(t, named(name))
		require.True(t, named("go_goroutines"))
	}
}
