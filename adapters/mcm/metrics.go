package mcm

import (
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// managersOwn are the prefixes of names that the manager serves itself. If one of them were there
// twice, nothing would be served.
var managersOwn = []string{"go_", "process_", "rest_client_", "workqueue_", "leader_election_", "certwatcher_", "controller_runtime_", "millwright_"}

// RegisterMetrics makes the manager serve what is, and will be, in the default registry of
// Prometheus, where providers count their calls. It leaves out what the manager has of its own:
// metrics of the Go runtime, the process, clients and work queues. A second call does nothing.
func RegisterMetrics() { registerOnce() }

var registerOnce = sync.OnceFunc(func() {
	ctrlmetrics.Registry.MustRegister(byDefault{}) // can't fail: it describes nothing
})

// byDefault collects what is in the default registry.
type byDefault struct{}

// Describe implements prometheus.Collector: the metrics are not known in advance.
func (byDefault) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (byDefault) Collect(to chan<- prometheus.Metric) {
	families, err := prometheus.DefaultGatherer.Gather() // an error comes with what could be gathered
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

// gathered is a metric that was collected already.
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
