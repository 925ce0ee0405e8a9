package controllers

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
)

// hookMetrics are further metrics that are set by hooks of the manager; see metrics.hooks.
type hookMetrics struct {
	panics  *prometheus.CounterVec
	calls   *prometheus.CounterVec
	overdue prometheus.Gauge
	spans   *prometheus.HistogramVec
	frozen  *prometheus.GaugeVec
	permits *prometheus.GaugeVec
	backoff *prometheus.GaugeVec
}

func newHookMetrics() *hookMetrics {
	return &hookMetrics{
		panics: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millwright_panics_total",
			Help: "Panics that were contained, by where: pass, driver, hook, wake or watch.",
		}, []string{"kind", "in"}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millwright_driver_calls_total",
			Help: "Calls of the driver by the code of their answer.",
		}, []string{"call", "code"}),
		overdue: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "millwright_driver_calls_overdue",
			Help: "Calls of the driver that have not returned although they were told to end.",
		}),
		spans: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "millwright_machine_seconds",
			Help:    "Time that parts of a machine's life took: creation, initialization, join, drain, deletion.",
			Buckets: []float64{1, 5, 15, 30, 60, 120, 300, 600, 1200, 3600, 7200},
		}, []string{"span"}),
		frozen: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "millwright_frozen",
			Help: "1 while everything is frozen because of an API server, control or target; 0 otherwise.",
		}, []string{"server"}),
		permits: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "millwright_replacement_permits",
			Help: "Permits for replacement of a deployment, or of a set without one: used, limit.",
		}, []string{"kind", "namespace", "name", "type"}),
		backoff: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "millwright_class_backoff_seconds",
			Help: "While the provider refuses machines of the class: seconds from its last answer to the next attempt.",
		}, []string{"namespace", "class"}),
	}
}

func (a *hookMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{a.panics, a.calls, a.overdue, a.spans, a.frozen, a.permits, a.backoff}
}

func (a *hookMetrics) panicked(kind manager.Kind, _ object.Key, in, _ string) {
	a.panics.WithLabelValues(string(kind), in).Inc()
}

func (a *hookMetrics) called(call string, code codes.Code, _ time.Duration) {
	if !code.Valid() { // a driver may return any number, and a label must have few values
		code = codes.Unknown
	}
	a.calls.WithLabelValues(call, code.Contract()).Inc()
}

func (a *hookMetrics) late(_ string, overdue int) { a.overdue.Set(float64(overdue)) }

func (a *hookMetrics) lasted(_ object.Key, span manager.Span, took time.Duration) {
	a.spans.WithLabelValues(string(span)).Observe(took.Seconds())
}

func (a *hookMetrics) froze(server string, frozen bool) {
	value := 0.0
	if frozen {
		value = 1
	}
	a.frozen.WithLabelValues(server).Set(value)
}

func (a *hookMetrics) permitted(kind manager.Kind, key object.Key, used, limit int) {
	if limit == 0 { // the object is gone
		a.permits.DeletePartialMatch(prometheus.Labels{"kind": string(kind), "namespace": key.Namespace, "name": key.Name})
		return
	}
	a.permits.WithLabelValues(string(kind), key.Namespace, key.Name, "used").Set(float64(used))
	a.permits.WithLabelValues(string(kind), key.Namespace, key.Name, "limit").Set(float64(limit))
}

func (a *hookMetrics) slowed(class object.Key, wait time.Duration) {
	if wait == 0 { // not slowed any more
		a.backoff.DeleteLabelValues(class.Namespace, class.Name)
		return
	}
	a.backoff.WithLabelValues(class.Namespace, class.Name).Set(wait.Seconds())
}
