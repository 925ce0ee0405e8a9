package drain_test

import (
	"container/heap"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/object"
)

// fullNode observes a node with 250 pods, 30 budgets and 60 volumes. After one pass every pod is refused, so that
// a decision examines each in detail.
func fullNode(b *testing.B, resolved bool) (*shell, *drain.Observation) {
	s := newShell(b)
	s.resolved = resolved
	for i := range 30 {
		s.protect(fmt.Sprintf("app-%d", i), 100, 0, func(b *budget) { b.ExpectedPods = 200 })
	}
	for i := range 250 {
		s.add(fmt.Sprintf("pod-%d", i), func(p *pod) {
			p.Labels["app"] = fmt.Sprintf("app-%d", i%30)
			if i < 60 {
				s.volume(fmt.Sprintf("vol-%d", i))(p)
			}
		})
	}
	for _, v := range s.volumes {
		s.known = append(s.known, v.Handle)
	}
	return s, s.observe()
}

func BenchmarkDecide(b *testing.B) {
	for _, c := range []struct {
		name             string
		resolved, refuse bool
	}{
		{"Due", true, false}, {"RefusedResolved", true, true}, {"RefusedMatching", false, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, _ := fullNode(b, c.resolved)
			plan, err := drain.Decide(s.observe(), s.policy, s.now)
			require.NoError(b, err)
			s.node = plan.Write
			s.memory.Begun()
			if c.refuse {
				s.pass()
			}
			o := s.observe()
			plan, err = drain.Decide(o, s.policy, s.now)
			require.NoError(b, err)
			require.Equal(b, c.refuse, len(plan.Blocked) == 250, "%s", plan.Why)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = drain.Decide(o, s.policy, s.now)
			}
		})
	}
}

// BenchmarkWaiting measures the most frequent decision: all pods are terminating, and there is nothing to do.
func BenchmarkWaiting(b *testing.B) {
	s := newShell(b)
	for i := range 250 {
		s.add(fmt.Sprintf("pod-%d", i))
	}
	s.pass()
	o := s.observe()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = drain.Decide(o, s.policy, s.now)
	}
}

// queue is a heap of nodes: the one whose next pass is due first is on top.
type queue []*dueNode

type dueNode struct {
	at time.Time
	*shell
}

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(*dueNode)) }
func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

// BenchmarkFleet drains 10,000 nodes with 30 pods each at once, in virtual time. A budget allows one
// eviction at a time, some pods have volumes, and on one node in a hundred a budget refuses a pod for ever.
func BenchmarkFleet(b *testing.B) {
	const nodes, pods = 10_000, 30
	for b.Loop() {
		q := &queue{}
		for i := range nodes {
			s := newShell(b)
			s.policy.Timeout = 30 * time.Minute
			s.resolved = true
			s.protect("web", 4, 0)
			for n := range pods {
				s.add(fmt.Sprintf("pod-%d", n), func(p *pod) {
					if n%6 == 0 {
						p.Labels["app"] = "web"
					}
					if n%10 == 0 {
						s.volume(fmt.Sprintf("vol-%d", n))(p)
					}
				})
			}
			if i%100 == 0 {
				s.protect("pod-7", 1, 0)
			}
			*q = append(*q, &dueNode{s.now, s})
		}
		heap.Init(q)
		decided, most := 0, 0
		var memory runtime.MemStats
		for q.Len() > 0 {
			next := heap.Pop(q).(*dueNode)
			next.advance(next.at)
			plan, _ := next.pass()
			if decided++; decided%50_000 == 0 {
				runtime.ReadMemStats(&memory)
				most = max(most, int(memory.HeapInuse>>20))
			}
			if plan.Done {
				continue
			}
			next.at = next.next()
			if !plan.At.IsZero() && (next.at.IsZero() || plan.At.Before(next.at)) {
				next.at = plan.At
			}
			heap.Push(q, next)
		}
		b.ReportMetric(float64(decided), "passes")
		b.ReportMetric(float64(most), "MiB")
		b.ReportMetric(float64(runtime.NumGoroutine()), "goroutines")
	}
}

// BenchmarkPredict shows how the time of a forecast grows with the pods of a node. Every forty pods share a budget
// that allows one eviction at a time.
func BenchmarkPredict(b *testing.B) {
	for _, n := range []int{1000, 20_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			o := manyPods(n)
			for b.Loop() {
				if f, err := drain.Predict(o, nil, drain.Assumptions{}, epoch); err != nil || !f.Done {
					b.Fatal(f, err)
				}
			}
		})
	}
}

// manyPods observes a node with many pods.
func manyPods(n int) *drain.Observation {
	o := &drain.Observation{Node: newCluster().node, Complete: true, Attachments: []*drain.Attachment{}}
	for i := range n {
		key := object.Key{Namespace: "default", Name: fmt.Sprintf("pod-%05d", i)}
		app := fmt.Sprint("app-", i/40)
		if i%40 == 0 {
			o.Budgets = append(o.Budgets, &drain.Budget{
				Key: object.Key{Namespace: "default", Name: app}, Selector: &object.Selector{Labels: map[string]string{"app": app}},
				DisruptionsAllowed: 1, CurrentHealthy: 40, DesiredHealthy: 39, ExpectedPods: 40,
			})
		}
		p := &drain.Pod{Key: key, UID: key.Name, Labels: map[string]string{"app": app}, Grace: 30 * time.Second, Owner: &object.Owner{Kind: "ReplicaSet", Name: app, UID: app}}
		o.Pods = append(o.Pods, p)
	}
	return o
}
