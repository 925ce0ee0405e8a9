// Package workload runs an app on the cluster of the quickstart. The app has a number of tasks, which
// are bound to nodes, and a disruption budget. To a drain they are pods and a budget.
//
// The package does what a cluster's API server, controllers and kubelets would do. It keeps its state in
// memory, and starts and ends the processes of tasks.
package workload

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// Namespace is the namespace of the app.
const Namespace = "apps"

const (
	boot     = 100 * time.Millisecond  // until a task serves
	linger   = 400 * time.Millisecond  // until a task that was told to end has ended; long enough to start another
	grace    = 1500 * time.Millisecond // until a task that was told to end is killed
	interval = 25 * time.Millisecond   // between two rounds of the controllers
)

// Options of a Workload. The program's main function must first call agent.Main.
type Options struct {
	Machines *roster.Roster // the processes of machines
	Tasks    *roster.Roster // the processes of tasks
	Nodes    store.Reader[*machine.Node]

	App string // the name of the app, and the prefix of its tasks' names
	// MaxUnavailable is how many tasks may be unavailable at a time because of evictions.
	MaxUnavailable int
}

// Workload is the app of a cluster. New makes it. It is safe for concurrent use.
type Workload struct {
	options Options

	mu       sync.Mutex
	replicas int // negative until the first Scale
	pods     []*pod
	number   int // the highest number in the name of a pod so far
	nodes    map[string]*machine.Node
	news     chan struct{} // closed when something has changed
}

// pod is a task as the cluster knows it. The embedded Pod is shared with drains, so it is replaced,
// never changed.
type pod struct {
	*drain.Pod
	node    string       // empty until the pod is bound
	process roster.Entry // as last read; zero until it was started
}

// active reports whether the pod was not told to end.
func (p *pod) active() bool { return p.GraceEnds.IsZero() }

// New returns a workload. It takes over the tasks that an earlier program has left running.
func New(o Options) (*Workload, error) {
	w := &Workload{options: o, replicas: -1, news: make(chan struct{})}
	left, err := o.Tasks.Entries()
	if err != nil {
		return nil, err
	}
	for _, e := range left {
		n, _ := strconv.Atoi(e.Name[strings.LastIndexByte(e.Name, '-')+1:])
		w.number = max(w.number, n)
		var t agent.Task
		if err := json.Unmarshal(e.About, &t); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Path, err)
		}
		if !e.Alive {
			continue
		}
		p := w.add(e.Name)
		p.node, p.process = t.Node, e
		if e.State == roster.Leaving {
			p.GraceEnds = time.Now().Add(grace)
		}
	}
	return w, nil
}

// add adds a pod.
func (w *Workload) add(name string) *pod {
	p := &pod{Pod: &drain.Pod{
		Key: object.Key{Namespace: Namespace, Name: name}, UID: name,
		Owner: &object.Owner{Kind: "ReplicaSet", Name: w.options.App, UID: w.options.App},
		Grace: grace, CreatedAt: time.Now().Truncate(time.Second),
	}}
	w.pods = append(w.pods, p)
	return p
}

// Scale sets the number of tasks. Before the first call, tasks are neither started nor ended.
func (w *Workload) Scale(replicas int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.replicas = replicas
}

// Run runs the controllers until ctx ends or a round fails, and returns the error.
func (w *Workload) Run(ctx context.Context) error { return roster.Every(ctx, interval, w.look) }

// look is one round of all controllers.
func (w *Workload) look(ctx context.Context) error {
	nodes, err := w.options.Nodes.List(ctx, store.Query{})
	if err != nil {
		return err
	}
	tasks, err := w.options.Tasks.Entries()
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(nodes) != len(w.nodes) {
		w.changed() // if a node is gone, the drain of another one may begin
	}
	w.nodes = make(map[string]*machine.Node, len(nodes))
	for _, n := range nodes {
		w.nodes[n.Name] = n
	}
	now := time.Now()
	w.updatePods(tasks, now)
	w.scalePods(now)
	return w.bind()
}

// updatePods reads the states of the processes, removes pods whose processes have ended, and signals
// the processes that are to end.
func (w *Workload) updatePods(tasks []roster.Entry, now time.Time) {
	processes := make(map[string]roster.Entry, len(tasks))
	for _, e := range tasks {
		processes[e.Name] = e
	}
	w.pods = slices.DeleteFunc(w.pods, func(p *pod) bool {
		e, started := processes[p.Name]
		if e.State != p.process.State || e.Alive != p.process.Alive {
			w.changed()
		}
		p.process = e
		switch {
		case started && !e.Alive, !started && !p.active():
			return true
		case !p.active() && now.After(p.GraceEnds):
			_ = e.Signal(syscall.SIGKILL) // an error: it has ended, or the next round tries again
		case !p.active() && e.State != roster.Leaving:
			_ = e.Signal(syscall.SIGTERM)
		}
		return false
	})
}

// scalePods adds pods, or marks the youngest to be ended, until the number of active pods is as wanted.
func (w *Workload) scalePods(now time.Time) {
	active := slices.DeleteFunc(slices.Clone(w.pods), func(p *pod) bool { return !p.active() })
	for n := len(active); n < w.replicas; n++ {
		w.number++
		w.add(w.options.App + "-" + strconv.Itoa(w.number))
	}
	for n := len(active); w.replicas >= 0 && n > w.replicas; n-- {
		w.end(active[n-1], now)
	}
}

// bind puts each new task on the schedulable node with the fewest tasks. A node whose machine is being
// deleted is the last choice, because the task would have to move again.
func (w *Workload) bind() error {
	load := make(map[string]int) // active tasks, by node
	for _, p := range w.pods {
		if p.active() {
			load[p.node]++
		}
	}
	for _, p := range w.pods {
		if p.node != "" || !p.active() {
			continue
		}
		best, least := "", 0
		for name, n := range w.nodes {
			if n.Unschedulable || n.Deleted() || !is(n, machine.NodeReady) {
				continue // a drain cordons its node: see Unschedulable
			}
			rank := load[name]
			if is(n, machine.NodeTerminating) {
				rank += len(w.pods)
			}
			if best == "" || cmp.Or(rank-least, cmp.Compare(name, best)) < 0 {
				best, least = name, rank
			}
		}
		if best == "" {
			return nil // no node is schedulable
		}
		load[best]++
		if err := w.start(p, best); err != nil {
			return err
		}
	}
	return nil
}

// start starts the process of a task, as the kubelet of its node would. If the machine has ended, start
// does nothing: the node will be gone soon, and the task will be bound to another one.
func (w *Workload) start(p *pod, node string) error {
	machines, err := w.options.Machines.Running()
	i := slices.IndexFunc(machines, func(e roster.Entry) bool { return e.Name == node })
	if err != nil || i < 0 {
		return err
	}
	about, err := json.Marshal(agent.Task{
		Machine: machines[i].Path, Node: node, Boot: boot, Linger: linger,
	})
	if err != nil {
		return err
	}
	p.node = node
	w.changed()
	return w.options.Tasks.Start("", agent.TaskRole, roster.Entry{
		Name: p.Name, Instance: roster.NewInstance(), About: about,
	})
}

// is reports whether a condition of a node is true.
func is(n *machine.Node, condition string) bool {
	c := object.FindCondition(n.Conditions, condition)
	return c != nil && c.Status == object.True
}

// Serving returns how many tasks are healthy.
func (w *Workload) Serving() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return int(w.budget().CurrentHealthy)
}

// Left returns how many tasks there are, also those that were told to end.
func (w *Workload) Left() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pods)
}
