package workload

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/examples/quickstart/task"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// tester is what both kinds of tests have.
type tester interface {
	require.TestingT
	Helper()
	Fatalf(format string, args ...any)
}

// site is a workload whose agents are the test.
type site struct {
	*Workload
	t     tester
	dir   string
	nodes *store.Memory[*machine.Node]
	heard []string
	past  time.Duration // since noon
}

func newSite(t tester, dir string, nodes ...string) *site {
	t.Helper()
	s := &site{t: t, dir: dir, nodes: store.NewMemory(time.Now, manager.NodeIndexes("machine"))}
	w, err := New(Options{
		Desks: filepath.Join(dir, "desks"), Volumes: filepath.Join(dir, "volumes"), Ledger: filepath.Join(dir, "ledger"),
		Nodes: s.nodes, Tell: func(text string) { s.heard = append(s.heard, text) },
	})
	require.NoError(t, err)
	s.Workload = w
	for _, name := range nodes {
		s.join(name)
	}
	return s
}

func (s *site) join(name string) {
	s.t.Helper()
	n := &machine.Node{Meta: object.Meta{Key: object.Key{Name: name}}}
	_, err := s.nodes.Create(context.Background(), n)
	require.NoError(s.t, err)
	s.condition(name, machine.NodeReady, object.True)
}

func (s *site) node(name string) *machine.Node {
	s.t.Helper()
	n, err := s.nodes.Get(context.Background(), object.Key{Name: name})
	require.NoError(s.t, err)
	return n.Clone()
}

func (s *site) condition(name, typ string, status object.ConditionStatus) {
	s.t.Helper()
	n := s.node(name)
	n.Conditions = object.SetCondition(n.Conditions, object.Condition{Type: typ, Status: status})
	_, err := s.nodes.UpdateStatus(context.Background(), n)
	require.NoError(s.t, err)
}

func (s *site) change(name string, change func(*machine.Node)) {
	s.t.Helper()
	n := s.node(name)
	change(n)
	_, err := s.nodes.Update(context.Background(), n)
	require.NoError(s.t, err)
}

func (s *site) leave(name string) {
	s.t.Helper()
	require.NoError(s.t, s.nodes.Delete(context.Background(), object.Key{Name: name}, ""))
}

func (s *site) apply(a App) {
	s.t.Helper()
	require.NoError(s.t, s.Apply(a))
	s.looks()
}

func (s *site) looks() {
	s.t.Helper()
	require.NoError(s.t, s.look(context.Background(), noon.Add(s.past)))
}

// serve makes the agents of all nodes do what they are told.
func (s *site) serve() {
	s.t.Helper()
	for _, p := range s.pods {
		if p.given {
			s.report(p, task.Serving)
		}
	}
	s.looks()
}

func (s *site) report(p *pod, state task.State) {
	s.t.Helper()
	require.NoError(s.t, s.desk(p.node).Report(p.UID, task.Report{State: state}))
}

// end makes an agent report the end of a task.
func (s *site) ended(p *pod) {
	s.t.Helper()
	s.report(p, task.Ended)
	s.looks()
}

func (s *site) pod(name string) *pod {
	s.t.Helper()
	for _, p := range s.pods {
		if p.Name == name {
			return p
		}
	}
	s.t.Fatalf("there is no task %s", name)
	return nil
}

func order(p *pod) drain.Order { return drain.Order{Pod: p.Key, UID: p.UID} }

func (s *site) evicts(p *pod) drain.Result {
	s.t.Helper()
	answer, err := s.Evict(context.Background(), order(p))
	require.NoError(s.t, err)
	return answer.Result
}

var front = App{Name: "front", Replicas: 4, MaxUnavailable: 1, Grace: time.Second}

func TestTasksAreSpread(t *testing.T) {
	s := newSite(t, t.TempDir(), "a", "b", "c", "d", "e", "f")
	s.change("c", func(n *machine.Node) { n.Unschedulable = true })
	s.change("d", func(n *machine.Node) { n.Taints = []object.Taint{{Key: "x", Effect: object.NoSchedule}} })
	s.change("e", func(n *machine.Node) { n.Taints = []object.Taint{{Key: "x", Effect: object.NoExecute}} })
	s.condition("f", machine.NodeReady, object.Unknown)
	s.apply(front)
	require.Equal(t, []string{"front-1", "front-3"}, s.Tasks("a"))
	require.Equal(t, []string{"front-2", "front-4"}, s.Tasks("b"))
	orders, err := task.At(filepath.Join(s.dir, "desks", "a")).Orders()
	require.NoError(t, err)
	require.Len(t, orders, 2)
	require.Equal(t, "front-1", orders["task-1"].Name)

	// A node that will be deleted soon is a last resort.
	s.condition("a", machine.NodeTerminating, object.True)
	s.change("c", func(n *machine.Node) { n.Unschedulable = false })
	more := front
	more.Replicas = 8
	s.apply(more)
	require.Len(t, s.Tasks("a"), 2)
	require.Len(t, s.Tasks("b"), 3)
	require.Len(t, s.Tasks("c"), 3)
	s.change("b", func(n *machine.Node) { n.Unschedulable = true })
	s.change("c", func(n *machine.Node) { n.Unschedulable = true })
	more.Replicas = 9
	s.apply(more)
	require.Len(t, s.Tasks("a"), 3)
}

func TestTaskWaitsForANode(t *testing.T) {
	s := newSite(t, t.TempDir())
	s.apply(front)
	require.Equal(t, 4, s.Left())
	require.Empty(t, s.Where("front-1"))
	s.join("a")
	s.looks()
	require.Len(t, s.Tasks("a"), 4)
	require.Zero(t, s.Serving("front"), "nobody has said so")
	s.serve()
	require.Equal(t, 4, s.Serving("front"))
	s.condition("a", machine.NodeReady, object.Unknown)
	s.looks()
	require.Zero(t, s.Serving("front"), "nothing is known of the node")
}

func TestEvictionFollowsTheBudget(t *testing.T) {
	s := newSite(t, t.TempDir(), "a", "b")
	s.apply(front)
	one, two := s.pod("front-1"), s.pod("front-2")
	require.Equal(t, drain.Refused, s.evicts(one), "nothing is healthy yet")
	s.serve()
	b := s.budgets()[0]
	require.Equal(t, []int32{4, 3, 4, 1, 0}, []int32{b.CurrentHealthy, b.DesiredHealthy, b.ExpectedPods, b.DisruptionsAllowed, b.Disrupted})
	require.True(t, b.Selects(one.Pod))
	require.False(t, b.Stale())

	before := one.Pod
	require.Equal(t, drain.Accepted, s.evicts(one))
	require.Zero(t, before.GraceEnds, "what others have read stays as it was")
	require.False(t, one.GraceEnds.IsZero())
	b = s.budgets()[0]
	require.Equal(t, []int32{3, 0, 1}, []int32{b.CurrentHealthy, b.DisruptionsAllowed, b.Disrupted})
	require.Equal(t, drain.Accepted, s.evicts(one), "it is going already")
	require.Equal(t, drain.Refused, s.evicts(two))
	require.Contains(t, s.heard, "task front-2 may not be evicted: budget front: 3 healthy tasks, 3 are needed")

	s.looks()
	replacement := s.pod("front-5") // created while the old one is ending
	require.Equal(t, drain.Accepted, s.evicts(replacement), "it is not healthy, and the app is not disrupted")
	s.looks()
	s.serve()
	require.Equal(t, drain.Accepted, s.evicts(two))
	require.Equal(t, drain.NotFound, s.evicts(&pod{Pod: &drain.Pod{Key: two.Key, UID: "another"}}))
	s.ended(one)
	require.Equal(t, drain.NotFound, s.evicts(one))
}

func (s *site) budgets() []*drain.Budget {
	s.t.Helper()
	budgets, complete, err := s.In(context.Background(), []string{Namespace})
	require.NoError(s.t, err)
	require.True(s.t, complete)
	return budgets
}

func TestOrdersSayHowATaskEnds(t *testing.T) {
	s := newSite(t, t.TempDir(), "a")
	s.apply(front)
	s.serve()
	p := s.pod("front-1")
	letter := func() task.Letter {
		orders, err := s.desk("a").Orders()
		require.NoError(t, err)
		return orders[p.UID]
	}
	require.False(t, letter().Told)
	require.Equal(t, drain.Accepted, s.evicts(p))
	require.True(t, letter().Told)
	require.Equal(t, time.Second, letter().Grace)
	kill := order(p)
	kill.Now = true
	answer, err := s.Delete(context.Background(), kill)
	require.NoError(t, err)
	require.Equal(t, drain.Accepted, answer.Result)
	require.Zero(t, letter().Grace, "a shorter grace counts")
	end := p.GraceEnds
	_, err = s.Delete(context.Background(), order(p))
	require.NoError(t, err)
	require.Equal(t, end, p.GraceEnds, "a longer one does not")
	s.ended(p)
	require.Zero(t, letter())
	answer, err = s.Delete(context.Background(), order(p))
	require.NoError(t, err)
	require.Equal(t, drain.NotFound, answer.Result)
}

// TestDeletionAsksNoBudget: a drain deletes when its time is up.
func TestDeletionAsksNoBudget(t *testing.T) {
	s := newSite(t, t.TempDir(), "a")
	s.apply(front)
	s.serve()
	for _, p := range s.pods {
		answer, err := s.Delete(context.Background(), order(p))
		require.NoError(t, err)
		require.Equal(t, drain.Accepted, answer.Result)
	}
	require.Empty(t, s.Tasks("a"))
}

func TestFewerTasks(t *testing.T) {
	s := newSite(t, t.TempDir(), "a", "b", "c")
	s.apply(App{Name: "front", Replicas: 5})
	s.report(s.pod("front-2"), task.Serving)
	s.report(s.pod("front-3"), task.Serving)
	s.report(s.pod("front-4"), task.Serving)
	s.looks()
	s.apply(App{Name: "front", Replicas: 2})
	going := map[string]bool{}
	for _, p := range s.pods {
		going[p.Name] = p.going()
	}
	// 1 and 5 do not serve; of the others the youngest is ended.
	require.Equal(t, map[string]bool{"front-1": true, "front-2": false, "front-3": false, "front-4": true, "front-5": true}, going)
	s.apply(App{Name: "front"})
	for len(s.pods) > 0 {
		s.ended(s.pods[0])
	}
	require.Zero(t, s.Left())
}

// TestTasksOfALostNode: they are gone with it, and are started elsewhere.
func TestTasksOfALostNode(t *testing.T) {
	s := newSite(t, t.TempDir(), "a", "b")
	s.apply(front)
	s.serve()
	s.leave("a")
	s.looks()
	require.Empty(t, s.Tasks("a"))
	require.Len(t, s.Tasks("b"), 4)
}

// TestCrashedTaskIsReplaced: by another one, of another name.
func TestCrashedTaskIsReplaced(t *testing.T) {
	s := newSite(t, t.TempDir(), "a")
	s.apply(front)
	s.serve()
	s.ended(s.pod("front-2"))
	require.Equal(t, []string{"front-1", "front-3", "front-4", "front-5"}, s.Tasks("a"))
}

func TestWatchTellsOfNodes(t *testing.T) {
	s := newSite(t, t.TempDir(), "a", "b")
	ctx, cancel := context.WithCancel(t.Context())
	names := make(chan string, 100)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for name := range s.Watch(ctx) {
			names <- name
		}
	}()
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.watchers) == 1
	}, time.Minute, time.Millisecond)
	tells := func(want ...string) {
		t.Helper()
		seen := map[string]bool{}
		for len(seen) < len(want) {
			select {
			case name := <-names:
				seen[name] = true
			case <-time.After(time.Minute):
				t.Fatalf("told of %v, not of all of %v", seen, want)
			}
		}
		for _, name := range want {
			require.True(t, seen[name])
		}
	}
	s.apply(App{Name: "front", Replicas: 1, MaxUnavailable: 1})
	tells("a")
	s.serve()
	tells("a")
	s.evicts(s.pod("front-1"))
	tells("a")
	s.ended(s.pod("front-1"))
	tells("a") // and the replacement is on a again
	s.leave("b")
	s.looks()
	tells("a") // there is room for another drain
	cancel()
	<-ended
	require.Empty(t, s.watchers)
}

func TestNothingIsKnownBeforeTheFirstLook(t *testing.T) {
	s := newSite(t, t.TempDir(), "a")
	_, complete, err := s.On(context.Background(), "a")
	require.NoError(t, err)
	require.False(t, complete)
	s.looks()
	_, complete, err = s.On(context.Background(), "a")
	require.NoError(t, err)
	require.True(t, complete)
}

func TestRefusesWhatCannotWork(t *testing.T) {
	_, err := New(Options{})
	require.Error(t, err)
	s := newSite(t, t.TempDir())
	for _, a := range []App{{}, {Name: "a", Replicas: -1}, {Name: "a", MaxUnavailable: -1}} {
		require.Error(t, s.Apply(a))
	}
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "desks"), nil, 0o600))
	s.join("a")
	require.NoError(t, s.Apply(front))
	require.Error(t, s.look(context.Background(), noon))
}
