package controllers

import (
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
)

// TestMetricsToAlertOn: the metrics have what the hooks report, and other hooks in the chain are
// called, too. Permits and backoffs that have ended are no longer in the metrics.
func TestMetricsToAlertOn(t *testing.T) {
	m, err := newMetrics(prometheus.NewRegistry(), nil)
	require.NoError(t, err)
	calls := 0
	h := chain(m.hooks(), manager.Hooks{
		Panic:        func(manager.Kind, object.Key, string, string) { calls++ },
		Call:         func(string, codes.Code, time.Duration) { calls++ },
		Overdue:      func(string, int) { calls++ },
		Span:         func(object.Key, manager.Span, time.Duration) { calls++ },
		Frozen:       func(string, bool) { calls++ },
		Permits:      func(manager.Kind, object.Key, int, int) { calls++ },
		ClassBackoff: func(object.Key, time.Duration) { calls++ },
	})
	web, other, class := object.Key{Namespace: "fleet", Name: "web"}, object.Key{Namespace: "fleet", Name: "other"}, object.Key{Namespace: "fleet", Name: "small"}
	h.Panic(manager.KindMachine, web, "pass", "hush")
	h.Call("CreateMachine", codes.ResourceExhausted, time.Second)
	h.Call("CreateMachine", 200, time.Second)
	h.Overdue("CreateMachine", 2)
	h.Overdue("ListMachines", 3)
	h.Span(web, manager.SpanJoin, 40*time.Second)
	h.Frozen("control", true)
	h.Frozen("target", true)
	h.Frozen("target", false)
	h.Permits(manager.KindDeployment, web, 1, 2)
	h.Permits(manager.KindDeployment, other, 1, 2)
	h.Permits(manager.KindDeployment, other, 0, 0)
	h.ClassBackoff(class, 90*time.Second)
	h.ClassBackoff(other, 90*time.Second)
	h.ClassBackoff(other, 0)
	require.Equal(t, 15, calls)
	require.Equal(t, []string{
		"millwright_class_backoff_seconds class=small namespace=fleet: 90",
		"millwright_driver_calls_overdue: 3",
		"millwright_driver_calls_total call=CreateMachine code=RESOURCE_EXHAUSTED: 1",
		"millwright_driver_calls_total call=CreateMachine code=UNKNOWN: 1",
		"millwright_frozen server=control: 1",
		"millwright_frozen server=target: 0",
		"millwright_machine_seconds span=join: 40",
		"millwright_panics_total in=pass kind=machine: 1",
		"millwright_replacement_permits kind=deployment name=web namespace=fleet type=limit: 2",
		"millwright_replacement_permits kind=deployment name=web namespace=fleet type=used: 1",
	}, served(t, m.fromHooks))
}

// served returns each metric with its labels and value. The value of a histogram is its sum.
func served(t *testing.T, a *hookMetrics) []string {
	to := prometheus.NewRegistry()
	to.MustRegister(a.all()...)
	families, err := to.Gather()
	require.NoError(t, err)
	var all []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			line := f.GetName()
			for _, l := range m.GetLabel() {
				line += " " + l.GetName() + "=" + l.GetValue()
			}
			value := m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetHistogram().GetSampleSum()
			all = append(all, line+": "+strconv.FormatFloat(value, 'f', -1, 64))
		}
	}
	return all
}
