package controllers

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// metrics are those that docs/how-to/kubernetes.md lists. Their names are stable.
type metrics struct {
	passes      *prometheus.CounterVec
	effects     *prometheus.HistogramVec
	transitions *prometheus.CounterVec
	due         *prometheus.GaugeVec
	dryRun      *prometheus.CounterVec
	fromHooks   *hookMetrics
}

// newMetrics registers metrics with to, except those that another manager of this process has registered.
func newMetrics(to prometheus.Registerer, s *stores) (*metrics, error) {
	if to == nil {
		to = ctrlmetrics.Registry
	}
	m := &metrics{
		passes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millwright_passes_total",
			Help: "Passes of the reconcilers; outcome failed: could not be finished and is made again.",
		}, []string{"kind", "outcome"}),
		effects: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "millwright_effect_seconds",
			Help:    "Time of calls to the driver and to the clusters, by call.",
			Buckets: []float64{0.005, 0.02, 0.1, 0.5, 2, 10, 60, 300},
		}, []string{"effect", "outcome"}),
		transitions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millwright_transitions_total",
			Help: "Steps of the state machines of machines that were stored, by table and new state.",
		}, []string{"table", "to"}),
		due: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "millwright_due",
			Help: "Objects that wait for a worker.",
		}, []string{"kind"}),
		dryRun: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millwright_dry_run_total",
			Help: "What was not done because of a dry run, by the reason to do it.",
		}, []string{"kind", "reason"}),
	}
	m.fromHooks = newHookMetrics()
	all := []prometheus.Collector{m.passes, m.effects, m.transitions, m.due, m.dryRun, &fleetCollector{stores: s}}
	for _, c := range append(all, m.fromHooks.all()...) {
		var twice prometheus.AlreadyRegisteredError
		if err := to.Register(c); err != nil && !errors.As(err, &twice) {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) hooks() manager.Hooks {
	return manager.Hooks{
		Panic: m.fromHooks.panicked, Call: m.fromHooks.called, Overdue: m.fromHooks.late, Span: m.fromHooks.lasted,
		Frozen: m.fromHooks.froze, Permits: m.fromHooks.permitted, ClassBackoff: m.fromHooks.slowed,
		Pass: func(kind manager.Kind, _ object.Key, _ int, _ manager.Result, err error) {
			m.passes.WithLabelValues(string(kind), outcome(err)).Inc()
		},
		Effect: func(_ manager.Kind, _ object.Key, name string, took time.Duration, err error) {
			m.effects.WithLabelValues(name, outcome(err)).Observe(took.Seconds())
		},
		Transition: func(_ object.Key, move machine.Move, _ decision.Why) {
			m.transitions.WithLabelValues(move.Table, move.To).Inc()
		},
		DryRun: func(kind manager.Kind, _ object.Key, _, reason, _ string) {
			m.dryRun.WithLabelValues(string(kind), reason).Inc()
		},
		Queue: func(kind manager.Kind, due int) { m.due.WithLabelValues(string(kind)).Set(float64(due)) },
	}
}

func outcome(err error) string {
	if err != nil {
		return "failed"
	}
	return "done"
}

// fleetCollector counts the objects in the caches each time that the metrics are read.
type fleetCollector struct{ stores *stores }

var (
	machinesDesc = prometheus.NewDesc("millwright_machines",
		"Machines by namespace and phase; phase Terminating: being deleted.", []string{"namespace", "phase"}, nil)
	replicasDesc = prometheus.NewDesc("millwright_deployment_machines",
		"Machines of a deployment: desired, current, updated, ready, available, unavailable, preserved.",
		[]string{"namespace", "deployment", "state"}, nil)
	conditionDesc = prometheus.NewDesc("millwright_deployment_condition",
		"1 for each condition of a deployment that is true, by its reason.",
		[]string{"namespace", "deployment", "condition", "reason"}, nil)
)

// Describe implements prometheus.Collector.
func (c *fleetCollector) Describe(to chan<- *prometheus.Desc) {
	to <- machinesDesc
	to <- replicasDesc
	to <- conditionDesc
	to <- poolsDesc
	to <- poolReplicasDesc
}

// Collect implements prometheus.Collector. Before the caches are filled it counts nothing.
func (c *fleetCollector) Collect(to chan<- prometheus.Metric) {
	if !c.stores.synced() {
		return
	}
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	c.collectPools(gauge)
	machines, err := c.stores.machines.List(context.Background(), store.Query{})
	if err != nil {
		return
	}
	type group struct{ namespace, phase string }
	counts := map[group]int{}
	for _, m := range machines {
		phase := string(m.Status.Phase)
		if m.Deleted() {
			phase = string(machine.PhaseTerminating)
		}
		counts[group{m.Namespace, phase}]++
	}
	for g, n := range counts {
		gauge(machinesDesc, float64(n), g.namespace, g.phase)
	}
	deployments, err := c.stores.deployments.List(context.Background(), store.Query{})
	if err != nil {
		return
	}
	for _, d := range deployments {
		s := &d.Status
		for state, n := range map[string]int32{
			"desired": d.Spec.Replicas, "current": s.Replicas, "updated": s.Updated, "ready": s.Ready,
			"available": s.Available, "unavailable": s.Unavailable, "preserved": s.Preserved,
		} {
			gauge(replicasDesc, float64(n), d.Namespace, d.Name, state)
		}
		for _, condition := range s.Conditions {
			if condition.Status == object.True {
				gauge(conditionDesc, 1, d.Namespace, d.Name, condition.Type, condition.Reason)
			}
		}
	}
}
