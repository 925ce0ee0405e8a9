package mcm_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/millwright-go/millwright/adapters/mcm"
)

// TestMetrics: the manager serves the metrics in the default registry, also those that are registered
// later. It does not serve its own metrics twice.
func TestMetrics(t *testing.T) {
	for _, name := range []string{"rest_client_requests_total", "test_before_total", "test_after_total"} {
		counter := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: "Calls."}, []string{"service"})
		prometheus.MustRegister(counter)
		counter.WithLabelValues("vm").Add(7)
		for range 2 {
			mcm.RegisterMetrics()
		}
		families, err := ctrlmetrics.Registry.Gather()
		require.NoError(t, err)
		values := map[string]float64{}
		for _, f := range families {
			values[f.GetName()] = f.GetMetric()[0].GetCounter().GetValue()
		}
		require.Contains(t, values, "go_goroutines")
		if name == "rest_client_requests_total" {
			require.NotContains(t, values, name, "the manager has its own metric of this name")
		} else {
			require.Equal(t, 7.0, values[name])
		}
	}
}
