package sim_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim"
)

// BenchmarkPlay plays a scenario without faults in which a fleet of 10 is created, rolled, scaled up and
// deleted, with and without latency of calls. It reports how many decisions, including live reads, take
// effect in a second of processor time. The checks of all invariants are part of that time.
func BenchmarkPlay(b *testing.B) {
	for _, latency := range []time.Duration{0, 100 * time.Millisecond} {
		b.Run(fmt.Sprint("latency-", latency), func(b *testing.B) {
			decisions := 0
			s := &sim.Scenario{Options: quiet, Classes: []string{"large"}, Steps: []sim.Step{
				{After: time.Hour, Do: sim.Roll, Name: "web", Class: "large"}, {After: time.Hour, Do: sim.Scale, Name: "web", N: 12}, {After: time.Hour},
			}}
			s.Deployments = append(s.Deployments, sim.Fleet("web", 10, deployment.Strategy{MaxSurge: rollout.IntOrPercent{Value: 2}}))
			s.Options.Faults.Latency = latency
			s.Options.Manager.Hooks.Pass = func(_ manager.Kind, _ object.Key, steps int, _ manager.Result, _ error) { decisions += steps }
			begin := processorTime()
			for b.Loop() {
				r, err := sim.Play(s)
				if err != nil || r.Violation != nil || !r.Left.None() {
					b.Fatal(err, r.Violation, r.Left)
				}
			}
			b.ReportMetric(float64(decisions)/(processorTime()-begin).Seconds(), "decisions/cpu-s")
			b.ReportMetric(float64(decisions)/float64(b.N), "decisions/op")
		})
	}
}

// processorTime returns the processor time that this process has used.
func processorTime() time.Duration {
	var use syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &use) // can't fail for the process itself
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
