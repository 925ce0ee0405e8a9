package sim_test

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/sim"
)

// scenario is what happens to one fleet.
type scenario struct {
	name     string
	replicas int32
	strategy deployment.Strategy
	faults   func(*sim.Faults) // nil: none
	happens  func(*run, int32)
}

// shapes are bounds of rollouts.
var shapes = []struct {
	name               string
	surge, unavailable rollout.IntOrPercent
}{
	{"1-more", rollout.IntOrPercent{Value: 1}, rollout.IntOrPercent{}},
	{"1-less", rollout.IntOrPercent{}, rollout.IntOrPercent{Value: 1}},
	{"25-percent-more", rollout.IntOrPercent{Value: 25, Percent: true}, rollout.IntOrPercent{}},
	{"half-less", rollout.IntOrPercent{}, rollout.IntOrPercent{Value: 50, Percent: true}},
	{"2-more-1-less", rollout.IntOrPercent{Value: 2}, rollout.IntOrPercent{Value: 1}},
	{"twice", rollout.IntOrPercent{Value: 100, Percent: true}, rollout.IntOrPercent{}},
}

// happenings are the events of the scenarios. replicas are spread over them.
var happenings = []struct {
	name     string
	replicas []int32
	faults   func(*sim.Faults)
	do       func(*run, int32)
}{
	{"rolls", []int32{5, 1, 10, 50, 3, 2}, nil, rolls},
	{"grows-amid", []int32{4, 2, 8, 3, 6, 1}, nil, growsAmid},
	{"shrinks-amid", []int32{6, 3, 10, 4, 20, 5}, nil, shrinksAmid},
	{"pauses", []int32{4, 6, 3, 8, 5, 2}, nil, pauses},
	{"rolls-back", []int32{5, 3, 7, 4, 2, 1}, nil, rollsBack},
	{"reverts", []int32{3, 5, 4, 6, 8, 2}, nil, reverts},
	{"changes-again", []int32{4, 2, 6, 5, 3, 1}, nil, changesAgain},
	{"to-zero-and-back", []int32{3, 2, 5, 4, 1, 6}, nil, toZeroAndBack},
	{"boots-fail", []int32{5, 4, 6, 8, 3, 2}, func(f *sim.Faults) { f.DeadBoot = 0.25 }, rolls},
	{"calls-fail", []int32{3, 4, 2, 5, 6, 1}, func(f *sim.Faults) { f.Call, f.LostCall, f.LostAnswer = 0.1, 0.05, 0.02 }, rolls},
}

// scenarios returns all of them by name: each strategy, each shape, each happening.
func scenarios() (all []scenario) {
	for i, shape := range shapes {
		for _, h := range happenings {
			all = append(all, scenario{
				name: "rolling-" + shape.name + "-" + h.name, replicas: h.replicas[i], faults: h.faults, happens: h.do,
				strategy: deployment.Strategy{MaxSurge: shape.surge, MaxUnavailable: shape.unavailable},
			})
		}
	}
	for i, h := range happenings {
		all = append(all, scenario{
			name: "recreate-" + h.name, replicas: h.replicas[i%len(h.replicas)], faults: h.faults, happens: h.do,
			strategy: deployment.Strategy{Kind: deployment.Recreate},
		})
	}
	for i, shape := range shapes[:4] {
		for _, h := range happenings {
			all = append(all, scenario{
				name: "in-place-" + shape.name + "-" + h.name, replicas: h.replicas[i], faults: h.faults, happens: h.do,
				strategy: deployment.Strategy{Kind: deployment.InPlaceUpdate, MaxSurge: shape.surge, MaxUnavailable: shape.unavailable},
			})
		}
	}
	return append(all, scenario{
		name: "in-place-updates-fail", replicas: 6, happens: rolls,
		faults:   func(f *sim.Faults) { f.BadUpdate, f.DeadUpdate = 0.3, 0.1 },
		strategy: deployment.Strategy{Kind: deployment.InPlaceUpdate, MaxUnavailable: rollout.IntOrPercent{Value: 2}},
	})
}

func rolls(r *run, _ int32) {
	r.complete()
	r.roll("large")
	r.complete()
}

func growsAmid(r *run, n int32) {
	r.complete()
	r.roll("large")
	r.underWay(n / 2)
	r.scale(2*n + 1)
	r.complete()
}

func shrinksAmid(r *run, n int32) {
	r.complete()
	r.roll("large")
	r.underWay(n / 2)
	r.scale(n - n/2)
	r.complete()
}

func pauses(r *run, n int32) {
	r.complete()
	r.roll("large")
	r.underWay(n / 2)
	r.edit("paused", func(s *deployment.Spec) { s.Paused = true })
	r.wait(30 * time.Minute)
	r.edit("resumed", func(s *deployment.Spec) { s.Paused = false })
	r.complete()
}

func rollsBack(r *run, n int32) {
	r.complete()
	r.roll("large")
	r.underWay(n/2 + 1)
	r.edit("rolled back", func(s *deployment.Spec) { s.RollbackTo = &deployment.Rollback{} })
	r.wait(10 * time.Minute) // the request has to be answered first
	r.complete()
}

func reverts(r *run, n int32) {
	r.complete()
	r.roll("large")
	r.underWay(n / 2)
	r.roll("small")
	r.complete()
}

func changesAgain(r *run, n int32) {
	r.complete()
	r.roll("large")
	r.underWay(n / 2)
	r.roll("huge")
	r.complete()
}

func toZeroAndBack(r *run, n int32) {
	r.complete()
	r.roll("large")
	r.underWay(n / 2)
	r.scale(0)
	r.complete()
	r.roll("huge")
	r.scale(n)
	r.complete()
}

func (r *run) scale(n int32) {
	r.t.Helper()
	r.edit(fmt.Sprintf("%d are wanted", n), func(s *deployment.Spec) { s.Replicas = n })
}

func (r *run) wait(d time.Duration) {
	r.t.Helper()
	if err := r.w.Run(d); err != nil {
		r.t.Errorf("%v", err)
		r.t.FailNow()
	}
}
