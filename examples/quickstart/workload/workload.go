package workload

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/examples/quickstart/task"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/drains"
	"github.com/millwright-go/millwright/store"
)

// interval is the time between two looks of the controllers at the agents' reports.
const interval = 25 * time.Millisecond

// Options of a Workload. All but Tell are required.
type Options struct {
	// Desks is the directory of the nodes' desks; Volumes is where volumes
	// are, on the same file system.
	Desks, Volumes string
	// Ledger is the path of the ledger that tasks are entered in.
	Ledger string
	Nodes  store.Reader[*machine.Node]
	// Tell receives what happens to volumes, and refused evictions. It may be nil.
	Tell func(text string)
}

// Workload is the apps of a cluster. New makes it. It is safe for concurrent use.
type Workload struct {
	options Options

	mu      sync.Mutex
	apps    []*App
	pods    []*pod // in the order of their creation
	number  int    // of pods there have been
	nodes   map[string]*machine.Node
	looked  bool          // the nodes were read once
	volumes []*attachment // in the order of their creation
	found   []leftover    // of apps that were not applied yet
	told    []string      // to be told once the lock is free

	watchers map[*watcher]bool
}

var (
	_ drains.Pods    = (*Workload)(nil)
	_ drains.Budgets = (*Workload)(nil)
	_ drains.Volumes = (*Workload)(nil)
)

// pod is a task as the cluster knows it. What others see of it is replaced, never
// changed.
type pod struct {
	*drain.Pod
	app     *App
	number  int       // of its creation
	node    string    // empty if not bound yet
	given   bool      // its order lies on the node's desk
	serving bool      // says the node's agent
	goes    time.Time // when its finished object is deleted
}

// going reports whether the pod was told to end.
func (p *pod) going() bool { return !p.GraceEnds.IsZero() }

// active reports whether the pod counts for its app: it was not told to end, and has not.
func (p *pod) active() bool { return !p.going() && !p.Finished }

// New returns a workload without apps. The leftovers of an earlier program on the desks belong to
// the apps of their names, once these are applied.
func New(o Options) (*Workload, error) {
	if o.Desks == "" || o.Volumes == "" || o.Ledger == "" || o.Nodes == nil {
		return nil, errors.New("workload: Options need Desks, Volumes, a Ledger and Nodes")
	}
	if err := os.MkdirAll(o.Volumes, 0o700); err != nil {
		return nil, err
	}
	w := &Workload{options: o, nodes: make(map[string]*machine.Node), watchers: make(map[*watcher]bool)}
	return w, w.recall()
}

// Apply adds an app, or updates the one of its name.
func (w *Workload) Apply(a App) error {
	if a.Name == "" || a.Replicas < 0 || a.MaxUnavailable < 0 {
		return errors.New("an app needs a name, and numbers that are not negative")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, app := range w.apps {
		if app.Name == a.Name {
			*app = a
			return nil
		}
	}
	w.apps = append(w.apps, &a)
	w.adopt(&a, time.Now())
	return nil
}

// Run runs the controllers again and again until ctx ends. It returns what ended it.
func (w *Workload) Run(ctx context.Context) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := w.look(ctx, time.Now()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// look is one round of all controllers.
func (w *Workload) look(ctx context.Context, now time.Time) error {
	nodes, err := w.options.Nodes.List(ctx, store.Query{})
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer func() {
		told := w.told
		w.told = nil
		w.mu.Unlock()
		w.tell(told)
	}()
	w.know(nodes)
	if err := w.hear(now); err != nil {
		return err
	}
	w.keep(now)
	w.bind()
	if err := w.moveVolumes(now); err != nil {
		return err
	}
	return w.give()
}

// know reads which nodes exist. The end of a node makes room for the drain of another one, which
// none of the other one's own pods shows.
func (w *Workload) know(nodes []*machine.Node) {
	gone := len(w.nodes)
	now := make(map[string]*machine.Node, len(nodes))
	for _, n := range nodes {
		if w.nodes[n.Name] != nil {
			gone--
		}
		now[n.Name] = n
	}
	w.nodes, w.looked = now, true
	if gone == 0 {
		return
	}
	for name := range w.nodes {
		w.changed(name)
	}
}

// hear reads the agents' reports, finishes the pods whose processes have ended, and removes the
// pods of nodes that are gone: their machines' processes have ended, and their tasks with them.
func (w *Workload) hear(now time.Time) error {
	desks := make(map[string]map[string]task.Report)
	for _, p := range slices.Clone(w.pods) {
		switch {
		case p.node == "":
			continue
		case w.nodes[p.node] == nil:
			if err := w.remove(p); err != nil {
				return err
			}
			continue
		case desks[p.node] == nil:
			reports, err := w.desk(p.node).Reports()
			if err != nil {
				return err
			}
			desks[p.node] = reports
		}
		switch desks[p.node][p.UID].State {
		case task.Serving:
			if !p.serving && !p.Finished {
				p.serving = true
				w.changed(p.node)
			}
		case task.Ended:
			if err := w.finish(p, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish marks a pod whose process has ended as finished, and removes it in its time.
func (w *Workload) finish(p *pod, now time.Time) error {
	if !p.Finished {
		over := *p.Pod
		over.Finished = true
		p.Pod, p.serving, p.goes = &over, false, now.Add(p.app.Report)
		w.changed(p.node)
	}
	if now.Before(p.goes) {
		return nil
	}
	return w.remove(p)
}

// remove forgets a pod whose process has ended.
func (w *Workload) remove(p *pod) error {
	w.pods = slices.DeleteFunc(w.pods, func(q *pod) bool { return q == p })
	w.changed(p.node)
	if p.node == "" {
		return nil
	}
	return w.desk(p.node).Drop(p.UID)
}

// give puts orders on desks. A task with a volume waits for it to be attached.
func (w *Workload) give() error {
	for _, p := range w.pods {
		if p.given || p.node == "" || p.app.Volume && !w.mounted(p) {
			continue
		}
		if err := w.desk(p.node).Give(w.letter(p)); err != nil {
			return err
		}
		p.given = true
	}
	return nil
}

func (w *Workload) letter(p *pod) task.Letter {
	o := task.Order{
		Name: p.Name, UID: p.UID, Ledger: w.options.Ledger, Boot: p.app.Boot, Linger: p.app.Linger,
	}
	if p.app.Volume {
		o.Volume = w.desk(p.node).Mount(volumeOf(p.Name))
	}
	return task.Letter{Order: o}
}

func (w *Workload) desk(node string) *task.Desk { return task.At(filepath.Join(w.options.Desks, node)) }

// say reports something once the lock is free.
func (w *Workload) say(format string, args ...any) {
	w.told = append(w.told, fmt.Sprintf(format, args...))
}

func (w *Workload) tell(texts []string) {
	if w.options.Tell == nil {
		return
	}
	for _, text := range texts {
		w.options.Tell(text)
	}
}

// Serving returns how many tasks of an app serve, as agents report.
func (w *Workload) Serving(app string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pods {
		if p.app.Name == app && w.healthy(p) {
			n++
		}
	}
	return n
}

// Tasks returns the names of the tasks on a node that were not told to end and have not ended, in
// the order of their creation.
func (w *Workload) Tasks(node string) (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pods {
		if p.node == node && p.active() {
			names = append(names, p.Name)
		}
	}
	return names
}

// Where returns the node that a task is bound to, or nothing.
func (w *Workload) Where(name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pods {
		if p.Name == name && p.active() {
			return p.node
		}
	}
	return ""
}

// Left returns how many tasks there are, in any state.
func (w *Workload) Left() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pods)
}
