package mcm

import (
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// managersOwn are the prefixes of metrics that the manager serves itself. If a metric were in both
// registries, no metrics would be served.
var managersOwn = []string{"go_", "process_", "rest_client_", "workqueue_", "leader_election_", "certwatcher_", "controller_runtime_", "millwright_"}

// RegisterMetrics makes the manager also serve the metrics in the default registry of Prometheus, where
// providers count their calls; also those that are registered later. It leaves out metrics that the
// manager serves itself: of the Go runtime, the process, clients and work queues. A second call does
// nothing.
func RegisterMetrics() { registerOnce() }

var registerOnce = sync.OnceFunc(func() {
	ctrlmetrics.Registry.MustRegister(defaultRegistry{}) // can't panic: there are no descriptions that could conflict
})

// defaultRegistry is a collector of the metrics in the default registry.
type defaultRegistry struct{}

// Describe implements prometheus.Collector: the metrics are not known in advance.
func (defaultRegistry) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (defaultRegistry) Collect(to chan<- prometheus.Metric) {
	families, err := prometheus.DefaultGatherer.Gather() // there may be both families and an error
	if err != nil {
		to <- prometheus.NewInvalidMetric(prometheus.NewDesc("provider_metrics", "The default registry.", nil, nil), err)
	}
	for _, f := range families {
		if slices.ContainsFunc(managersOwn, func(own string) bool { return strings.HasPrefix(f.GetName(), own) }) {
			continue
		}
		for _, m := range f.GetMetric() {
			to <- gathered{prometheus.NewDesc(f.GetName(), f.GetHelp(), nil, nil), m}
		}
	}
}

// gathered is a metric whose value is already known.
type gathered struct {
	desc   *prometheus.Desc
	metric *dto.Metric
}

// Desc implements prometheus.Metric.
func (g gathered) Desc() *prometheus.Desc { return g.desc }

// Write implements prometheus.Metric.
func (g gathered) Write(to *dto.Metric) error {
	m := g.metric
	to.Label, to.TimestampMs = m.Label, m.TimestampMs
	to.Counter, to.Gauge, to.Untyped, to.Summary, to.Histogram = m.Counter, m.Gauge, m.Untyped, m.Summary, m.Histogram
	return nil
}
