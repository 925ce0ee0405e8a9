// Package workload is what runs on the cluster of the quickstart: an app whose tasks are kept at
// their number, bound to nodes, and counted against a disruption budget. A drain knows them as pods
// and a budget.
//
// It keeps what it knows in memory, as a cluster's API server and controllers would in theirs, and
// starts and ends the processes of tasks.
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

// Namespace is where the app is.
const Namespace = "apps"

// boot is how long a task takes until it serves. linger is how long one takes to end, without
// serving. Another one usually serves in its place then; otherwise the budget holds back the next
// eviction. After its grace it is killed. interval is the time between two rounds of the
// controllers.
const (
	boot     = 100 * time.Millisecond
	linger   = 400 * time.Millisecond
	grace    = 1500 * time.Millisecond
	interval = 25 * time.Millisecond
)

// Options of a Workload. The program calls agent.Main first of all.
type Options struct {
	Machines *roster.Roster // the processes of the machines behind the nodes
	Tasks    *roster.Roster // those of tasks
	Nodes    store.Reader[*machine.Node]

	App string // the name of the app; its tasks' names begin with it
	// MaxUnavailable is how many tasks evictions may disrupt at a time.
	MaxUnavailable int
}

// Workload is the app of a cluster. New makes it. It is safe for concurrent use.
type Workload struct {
	options Options

	mu       sync.Mutex
	replicas int // negative until the first Scale
	pods     []*pod
	number   int // of pods there have been
	nodes    map[string]*machine.Node
	news     chan struct{} // closed when something has changed
}

// pod is a task as the cluster knows it. What others see of it is replaced, never
// changed.
type pod struct {
	*drain.Pod
	node    string       // empty if not bound yet
	process roster.Entry // as it was seen last; zero if it was not started yet
}

// active reports whether the pod counts for its app: it was not told to end.
func (p *pod) active() bool { return p.GraceEnds.IsZero() }

// New returns a workload with the tasks that an earlier program has left running.
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

// add adds a pod. No other one ever has its name.
func (w *Workload) add(name string) *pod {
	p := &pod{Pod: &drain.Pod{
		Key: object.Key{Namespace: Namespace, Name: name}, UID: name,
		Owner: &object.Owner{Kind: "ReplicaSet", Name: w.options.App, UID: w.options.App},
		Grace: grace, CreatedAt: time.Now().Truncate(time.Second),
	}}
	w.pods = append(w.pods, p)
	return p
}

// Scale sets the number of tasks. Before that, tasks are neither started nor ended.
func (w *Workload) Scale(replicas int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.replicas = replicas
}

// Run runs the controllers again and again until ctx ends. It returns what ended it.
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
		w.changed() // the end of a node makes room for the drain of another one
	}
	w.nodes = make(map[string]*machine.Node, len(nodes))
	for _, n := range nodes {
		w.nodes[n.Name] = n
	}
	now := time.Now()
	w.hear(tasks, now)
	w.keep(now)
	return w.bind()
}

// hear reads what processes say of themselves, forgets the pods whose processes have ended, and
// tells those to end that are to.
func (w *Workload) hear(tasks []roster.Entry, now time.Time) {
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
			_ = e.Signal(syscall.SIGKILL) // it may have ended, or is killed in the next round
		case !p.active() && e.State != roster.Leaving:
			_ = e.Signal(syscall.SIGTERM)
		}
		return false
	})
}

// keep brings the app to its number of tasks. A task that was told to end no longer counts. The
// youngest are ended first.
func (w *Workload) keep(now time.Time) {
	active := slices.DeleteFunc(slices.Clone(w.pods), func(p *pod) bool { return !p.active() })
	for n := len(active); n < w.replicas; n++ {
		w.number++
		w.add(w.options.App + "-" + strconv.Itoa(w.number))
	}
	for n := len(active); w.replicas >= 0 && n > w.replicas; n-- {
		w.end(active[n-1], now)
	}
}

// bind puts tasks on nodes: each on the one with the fewest, among those that accept any. A node
// whose machine is being deleted is a last resort, because a task would move twice.
func (w *Workload) bind() error {
	load := make(map[string]int) // of nodes, with staying tasks
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
				continue // a drain cordons a node first
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
			return nil // all wait for a node
		}
		load[best]++
		if err := w.start(p, best); err != nil {
			return err
		}
	}
	return nil
}

// start starts the process of a task, as the agent of its node would. If the machine is gone, its
// node will be soon, and the task waits.
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

func is(n *machine.Node, condition string) bool {
	c := object.FindCondition(n.Conditions, condition)
	return c != nil && c.Status == object.True
}

// Serving returns how many tasks serve and stay.
func (w *Workload) Serving() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return int(w.budget().CurrentHealthy)
}

// Left returns how many tasks there are, in any state.
func (w *Workload) Left() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pods)
}
