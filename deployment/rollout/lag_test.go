package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment/rollout"
)

// lagging simulates a fleet in ticks. A set carries out an order 0 to 3 ticks after it was given, and a new machine
// becomes available after 1 to 4 ticks. A set removes unavailable machines first. In each tick, machines of old sets
// fail with probability breaks, and do not recover. All draws come from the fleet's own random source, so that two
// rules are measured on the same fleet.
type lagging struct {
	r      *rand.Rand
	fleet  rollout.Fleet
	due    []int   // by set: the tick in which it acts on its size; 0: it has done so
	boots  [][]int // by set: in how many ticks machines become available
	tick   int
	breaks float64

	failed []int // by set: the last tick in which one of its machines failed
	given  []int // by set: when it was lowered last
	fell   bool  // availability fell below the floor by an order that was given before a failure
}

func newLagging(seed uint64, breaks float64) *lagging {
	r := rand.New(rand.NewPCG(seed, 15))
	l := &lagging{r: r, breaks: breaks}
	replicas := 1 + r.Int32N(200)
	surge, unavailable := int32(0), int32(0)
	for surge+unavailable == 0 {
		surge, unavailable = (r.Int32N(61)*replicas+99)/100, r.Int32N(61)*replicas/100
	}
	l.fleet = rollout.Fleet{Replicas: replicas, Bounds: rollout.Bounds{Surge: surge, Unavailable: unavailable}}
	olds := 1 + r.IntN(4)
	sizes := make([]int32, olds)
	for range replicas {
		sizes[r.IntN(olds)]++
	}
	for i, n := range sizes {
		l.fleet.Sets = append(l.fleet.Sets, rollout.Set{Name: fmt.Sprint("old-", i), Spec: n, Actual: n, Available: n})
	}
	l.fleet.Sets = append(l.fleet.Sets, rollout.Set{Name: "new", New: true})
	n := len(l.fleet.Sets)
	l.due, l.boots, l.failed, l.given = make([]int, n), make([][]int, n), make([]int, n), make([]int, n)
	return l
}

// order gives the orders of one decision.
func (l *lagging) order(orders []rollout.Scale) {
	for _, o := range orders {
		for i := range l.fleet.Sets {
			set := &l.fleet.Sets[i]
			if set.Name != o.Name {
				continue
			}
			if o.To < o.From {
				l.given[i] = l.tick
			}
			set.Spec = o.To
			if l.due[i] == 0 {
				l.due[i] = l.tick + l.r.IntN(4)
			}
		}
	}
}

func (l *lagging) available() (n int32) {
	for _, set := range l.fleet.Sets {
		n += set.Available
	}
	return n
}

// pass lets a tick pass: sets that are due act on their sizes, machines become available, others fail.
func (l *lagging) pass() {
	for i := range l.fleet.Sets {
		if l.due[i] != 0 && l.due[i] <= l.tick {
			l.due[i] = 0
			l.follow(i)
		}
	}
	for i := range l.fleet.Sets {
		set := &l.fleet.Sets[i]
		still := l.boots[i][:0]
		for _, left := range l.boots[i] {
			if left > 1 {
				still = append(still, left-1)
				continue
			}
			set.Available++
		}
		l.boots[i] = still
		if set.New {
			continue
		}
		for range set.Available {
			if l.r.Float64() < l.breaks {
				set.Available--
				l.failed[i] = l.tick
			}
		}
	}
	l.tick++
}

// follow lets a set get its ordered size.
func (l *lagging) follow(i int) {
	set := &l.fleet.Sets[i]
	for set.Actual < set.Spec {
		set.Actual++
		l.boots[i] = append(l.boots[i], 1+l.r.IntN(4))
	}
	before := set.Available
	set.Actual = min(set.Actual, set.Spec)
	set.Available = min(set.Available, set.Actual)
	l.boots[i] = l.boots[i][:min(len(l.boots[i]), int(set.Actual-set.Available))]
	floor := max(0, l.fleet.Replicas-l.fleet.Bounds.Unavailable)
	if set.Available < before && l.available() < floor {
		for _, failed := range l.failed {
			l.fell = l.fell || failed > 0 && failed >= l.given[i]
		}
	}
}

// roll takes one decision in each tick until the rollout is done, and returns their number.
func (l *lagging) roll(decide rule) int {
	var orders []rollout.Scale
	for l.tick = 1; !rollout.Done(l.fleet); {
		if l.tick > 2_000 {
			return -1
		}
		orders, _ = decide(l.fleet, orders)
		l.order(orders)
		l.pass()
	}
	return l.tick
}

// results are those of many fleets: how many decisions a rollout took, and in how many fleets availability fell below
// the floor by an order that was given before a machine failed.
type results struct {
	decisions float64
	fell      int
}

func measure(t *testing.T, fleets uint64, breaks float64, decide rule) (m results) {
	t.Helper()
	total := 0
	for seed := range fleets {
		l := newLagging(seed, breaks)
		n := l.roll(decide)
		require.Positive(t, n, "seed %d takes no end: %+v", seed, l.fleet)
		total += n
		if l.fell {
			m.fell++
		}
	}
	m.decisions = float64(total) / float64(fleets)
	return m
}

// TestP3P7LaggingFleets measures whole rollouts of lagging fleets with the seeds 0 to 1,999. There is one decision
// in each tick. Before this package considered that sets choose machines to delete early, rollouts took 17.750
// decisions on average. With machines that fail they took 17.522, and in 526 fleets pending orders took
// availability below the floor (in 368 fleets with establishedStep).
//
//	go test ./deployment/rollout -run LaggingFleets -v
//
// Invariants: P3 P7
func TestP3P7LaggingFleets(t *testing.T) {
	const fleets = 2_000
	sound := measure(t, fleets, 0, rollout.Step)
	t.Logf("none fails: %+v", sound)
	require.Zero(t, sound.fell)
	require.LessOrEqual(t, sound.decisions, 17.750*1.05)

	failing := measure(t, fleets, 0.02, rollout.Step)
	t.Logf("2 in 100 fail a tick: %+v", failing)
	require.LessOrEqual(t, failing.decisions, 17.522*1.05)
	require.Zero(t, failing.fell)

	established := measure(t, fleets, 0.02, establishedStep)
	t.Logf("the established arithmetic: %+v", established)
	require.Positive(t, established.fell, "in no fleet does availability fall, so the comparison shows nothing")
}

// establishedStep is the algorithm of Kubernetes' deployments, for comparison. While fewer than R + S machines are
// ordered, it grows the new set. Otherwise it lowers old sets: first each to its number of available machines, then
// by the available machines above the floor. It does nothing while a set that has yet to remove machines has more
// available ones than ordered.
func establishedStep(f rollout.Fleet, out []rollout.Scale) ([]rollout.Scale, rollout.Why) {
	out = out[:0]
	var why rollout.Why
	n := len(f.Sets) - 1
	current := f.Sets[n]
	total, available := int32(0), int32(0)
	for _, s := range f.Sets {
		total, available = total+s.Spec, available+s.Available
	}
	ceiling, floor := f.Replicas+f.Bounds.Surge, f.Replicas-f.Bounds.Unavailable
	if current.Spec < f.Replicas && total < ceiling {
		return append(out, rollout.Scale{Name: current.Name, From: current.Spec, To: current.Spec + min(ceiling-total, f.Replicas-current.Spec)}), why
	}
	budget := total - floor - (current.Spec - current.Available)
	if total == current.Spec || budget <= 0 {
		return out, why
	}
	olds := append([]rollout.Set(nil), f.Sets[:n]...)
	cleaned := int32(0)
	for i := range olds {
		s := &olds[i]
		if s.Spec == 0 || s.Spec == s.Available || cleaned >= budget {
			continue
		}
		k := min(budget-cleaned, s.Spec-s.Available)
		if k < 0 {
			return orders(f, olds, out), why
		}
		s.Spec -= k
		cleaned += k
	}
	spare := available - floor
	for i := range olds {
		k := min(olds[i].Spec, spare)
		if k > 0 {
			olds[i].Spec -= k
			spare -= k
		}
	}
	return orders(f, olds, out), why
}

func orders(f rollout.Fleet, olds []rollout.Set, out []rollout.Scale) []rollout.Scale {
	for i := range olds {
		if olds[i].Spec != f.Sets[i].Spec {
			out = append(out, rollout.Scale{Name: olds[i].Name, From: f.Sets[i].Spec, To: olds[i].Spec})
		}
	}
	return out
}
