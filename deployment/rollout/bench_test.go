package rollout_test

import (
	"fmt"
	"testing"

	"github.com/millwright-go/millwright/deployment/rollout"
)

// tenSets returns nine old sets of 20 machines each and a new one, far into a rollout of 200.
func tenSets(replicas, fresh, freshAvailable int32) rollout.Fleet {
	f := rollout.Fleet{Replicas: replicas, Bounds: rollout.Bounds{Surge: 20, Unavailable: 20}}
	for i := range int32(9) {
		f.Sets = append(f.Sets, rollout.Set{Name: fmt.Sprintf("old-%d", i), Spec: 20, Actual: 20, Available: 20 - i%4})
	}
	f.Sets = append(f.Sets, rollout.Set{Name: "new", New: true, Spec: fresh, Actual: fresh, Available: freshAvailable})
	return f
}

func BenchmarkStep10Sets(b *testing.B) {
	for _, c := range []struct {
		name  string
		fleet rollout.Fleet
	}{
		{"rolling", tenSets(200, 40, 30)},
		{"waiting", tenSets(220, 60, 0)},
		{"scaling", tenSets(110, 40, 30)},
		{"scalingAgainstFloor", tenSets(180, 40, 3)},
		{"done", rollout.Fleet{Replicas: 9, Sets: append(make([]rollout.Set, 9), rollout.Set{New: true, Spec: 9, Actual: 9, Available: 9})}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var orders []rollout.Scale
			b.ReportAllocs()
			for b.Loop() {
				orders, _ = rollout.Step(c.fleet, orders)
			}
			b.ReportMetric(float64(len(orders)), "orders")
		})
		b.Run(c.name+"/fresh", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rollout.Step(c.fleet, nil)
			}
		})
	}
}

func BenchmarkFenceposts(b *testing.B) {
	surge, unavailable := rollout.IntOrPercent{Value: 25, Percent: true}, rollout.IntOrPercent{Value: 20, Percent: true}
	b.ReportAllocs()
	for b.Loop() {
		rollout.Fenceposts(surge, unavailable, 13)
	}
}
