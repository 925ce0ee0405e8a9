package workload

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// TestMain makes this test program a machine or a task, if it was started as one.
func TestMain(m *testing.M) {
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	agent.Main()
	os.Exit(m.Run())
}

// site is a workload whose budget allows one unavailable task, on machines that are processes.
type site struct {
	*Workload
	t     *testing.T
	nodes *store.Memory[*machine.Node]
	lock  *os.File
}

func newSite(t *testing.T, nodes ...string) *site {
	t.Helper()
	dir := t.TempDir()
	s := &site{t: t, nodes: store.NewMemory(time.Now, manager.NodeIndexes("machine"))}
	var err error
	s.lock, err = roster.Hold(t.Context(), filepath.Join(dir, "lock"))
	require.NoError(t, err)
	s.Workload = &Workload{options: Options{
		Machines: roster.Open(filepath.Join(dir, "machines")), Tasks: roster.Open(filepath.Join(dir, "tasks")),
		Nodes: s.nodes, App: "front", MaxUnavailable: 1,
	}}
	s.restart()
	t.Cleanup(func() {
		for _, r := range []*roster.Roster{s.options.Machines, s.options.Tasks} {
			_, err := r.End(context.Background())
			require.NoError(t, err)
		}
		require.NoError(t, s.lock.Close())
	})
	for _, name := range nodes {
		s.join(name)
	}
	return s
}

// restart replaces the workload by that of a new program.
func (s *site) restart() {
	s.t.Helper()
	w, err := New(s.options)
	require.NoError(s.t, err)
	s.Workload = w
}

// join starts a machine and its node.
func (s *site) join(name string) {
	s.t.Helper()
	about, err := json.Marshal(agent.Machine{Program: s.lock.Name()})
	require.NoError(s.t, err)
	require.NoError(s.t, s.options.Machines.Start("", agent.MachineRole, roster.Entry{Name: name, Instance: name, About: about}))
	require.Eventually(s.t, func() bool {
		running, err := s.options.Machines.Running()
		require.NoError(s.t, err)
		return slices.ContainsFunc(running, func(e roster.Entry) bool { return e.Name == name })
	}, time.Minute, time.Millisecond)
	_, err = s.nodes.Create(s.t.Context(), &machine.Node{Meta: object.Meta{Key: object.Key{Name: name}}})
	require.NoError(s.t, err)
	s.condition(name, machine.NodeReady, object.True)
}

func (s *site) condition(name, typ string, status object.ConditionStatus) {
	s.t.Helper()
	_, err := store.EditStatus(s.t.Context(), s.nodes, object.Key{Name: name}, func(n *machine.Node) error {
		n.Conditions = object.SetCondition(n.Conditions, object.Condition{Type: typ, Status: status})
		return nil
	})
	require.NoError(s.t, err)
}

func (s *site) cordon(name string, cordoned bool) {
	s.t.Helper()
	_, err := store.Edit(s.t.Context(), s.nodes, object.Key{Name: name}, func(n *machine.Node) error {
		n.Unschedulable = cordoned
		return nil
	})
	require.NoError(s.t, err)
}

// until runs rounds until this many tasks serve, and there are left tasks in all.
func (s *site) until(serving, left int) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		require.NoError(s.t, s.look(s.t.Context()))
		return s.Serving() == serving && s.Left() == left
	}, time.Minute, time.Millisecond, "%d serve, of %d", serving, left)
}

// activeOn returns how many active tasks are on a node.
func (s *site) activeOn(node string) (n int) {
	s.t.Helper()
	pods, complete, err := s.On(s.t.Context(), node)
	require.NoError(s.t, err)
	require.True(s.t, complete)
	for _, p := range pods {
		if p.GraceEnds.IsZero() {
			n++
		}
	}
	return n
}

func (s *site) evict(p *pod) drain.Result {
	s.t.Helper()
	answer, err := s.Evict(s.t.Context(), drain.Order{Pod: p.Key, UID: p.UID})
	require.NoError(s.t, err)
	return answer.Result
}

func TestTasksAreSpread(t *testing.T) {
	s := newSite(t, "a", "b", "c", "d")
	s.cordon("c", true)
	s.condition("d", machine.NodeReady, object.Unknown)
	s.Scale(4)
	s.until(4, 4)
	require.Equal(t, []int{2, 2, 0, 0}, []int{s.activeOn("a"), s.activeOn("b"), s.activeOn("c"), s.activeOn("d")})

	s.condition("a", machine.NodeTerminating, object.True)
	s.cordon("c", false)
	s.Scale(7)
	s.until(7, 7)
	require.Equal(t, []int{2, 3, 2}, []int{s.activeOn("a"), s.activeOn("b"), s.activeOn("c")}, "a is the last choice, because its machine is being deleted")
	s.cordon("b", true)
	s.cordon("c", true)
	s.Scale(8)
	s.until(8, 8)
	require.Equal(t, 3, s.activeOn("a"))
	s.Scale(0)
	s.until(0, 0)
}

func TestEvictionFollowsTheBudget(t *testing.T) {
	s := newSite(t, "a")
	s.Scale(4)
	require.NoError(t, s.look(t.Context()))
	require.Equal(t, drain.Refused, s.evict(s.pods[0]), "no task is healthy yet")
	s.until(4, 4)
	budgets, _, err := s.In(t.Context(), []string{Namespace})
	require.NoError(t, err)
	require.True(t, budgets[0].Selects(s.pods[0].Pod))
	require.EqualValues(t, 3, budgets[0].DesiredHealthy)

	one, two := s.pods[0], s.pods[1]
	before := one.Pod
	require.Equal(t, drain.Accepted, s.evict(one))
	require.Zero(t, before.GraceEnds, "a pod that was read earlier does not change")
	require.Equal(t, drain.Accepted, s.evict(one), "a second eviction of the same pod")
	require.Equal(t, drain.Refused, s.evict(two))
	s.condition("a", machine.NodeReady, object.Unknown)
	require.NoError(t, s.look(t.Context()))
	require.Zero(t, s.Serving(), "tasks on a node in state Unknown are not healthy")
	s.condition("a", machine.NodeReady, object.True)
	s.until(4, 4) // a new task serves, and the evicted one has ended
	require.Equal(t, drain.NotFound, s.evict(one))
	require.Equal(t, drain.Accepted, s.evict(two))
	answer, err := s.Delete(t.Context(), drain.Order{UID: s.pods[2].UID})
	require.NoError(t, err)
	require.Equal(t, drain.Accepted, answer.Result, "a deletion ignores the budget")
	s.until(4, 4)
}

// TestTaskIsKilledAfterItsGrace: a stopped process does not handle SIGTERM.
func TestTaskIsKilledAfterItsGrace(t *testing.T) {
	s := newSite(t, "a")
	s.Scale(4)
	s.until(4, 4)
	stopped := s.pods[0]
	require.NoError(t, stopped.process.Signal(syscall.SIGSTOP))
	require.Equal(t, drain.Accepted, s.evict(stopped))
	s.until(4, 4)
	now, err := roster.Read(stopped.process.Path)
	require.NoError(t, err)
	require.False(t, now.Alive)
	require.Equal(t, roster.Serving, now.State, "the task must not have ended by itself")
}

// TestTasksOfALostMachine: tasks end with their machine, and others are started elsewhere.
func TestTasksOfALostMachine(t *testing.T) {
	s := newSite(t, "a", "b")
	s.Scale(4)
	s.until(4, 4)
	running, err := s.options.Machines.Running()
	require.NoError(t, err)
	for _, e := range running {
		if e.Name == "a" {
			require.NoError(t, e.Signal(syscall.SIGKILL))
		}
	}
	require.NoError(t, s.nodes.Delete(t.Context(), object.Key{Name: "a"}, ""))
	require.Eventually(t, func() bool {
		require.NoError(t, s.look(t.Context()))
		return s.activeOn("b") == 4 && s.Serving() == 4
	}, time.Minute, time.Millisecond)
	require.Equal(t, 4, s.Left())
}

// TestTasksAreTakenOver: a new program takes over running tasks, and uses no name twice.
func TestTasksAreTakenOver(t *testing.T) {
	s := newSite(t, "a")
	s.Scale(4)
	s.until(4, 4)
	require.Equal(t, drain.Accepted, s.evict(s.pods[3])) // the program ends before it signals the process
	s.restart()
	require.NoError(t, s.look(t.Context()))
	require.Equal(t, 4, s.Left(), "before Scale no task is started or ended")
	s.Scale(4)
	require.NoError(t, s.look(t.Context()))
	require.Equal(t, 4, s.Serving())
	s.Scale(5)
	s.until(5, 5)
	names := map[string]bool{}
	entries, err := s.options.Tasks.Entries()
	require.NoError(t, err)
	for _, e := range entries {
		names[e.Name] = true
	}
	require.Len(t, names, 5)
}

func TestWatchYieldsChanges(t *testing.T) {
	s := newSite(t, "a")
	require.NoError(t, s.look(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	yielded := make(chan string)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for name := range s.Watch(ctx) {
			yielded <- name
		}
	}()
	require.Equal(t, "a", <-yielded)
	s.Scale(1)
	require.NoError(t, s.look(t.Context()))
	require.Equal(t, "a", <-yielded)
	cancel()
	for open := true; open; {
		select {
		case <-yielded:
		case <-ended:
			open = false
		}
	}
}

func TestIncompleteBeforeTheFirstRound(t *testing.T) {
	s := newSite(t, "a")
	_, complete, err := s.On(t.Context(), "a")
	require.NoError(t, err)
	require.False(t, complete)
	require.NoError(t, s.look(t.Context()))
	_, complete, err = s.On(t.Context(), "a")
	require.NoError(t, err)
	require.True(t, complete)
}
