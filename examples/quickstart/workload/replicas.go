package workload

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// keep brings every app to its number of tasks. A task that was told to end, or has ended, no
// longer counts, but keeps its name, which a task with a volume has to wait for.
func (w *Workload) keep(now time.Time) {
	for _, app := range w.apps {
		have := w.of(app)
		staying := slices.DeleteFunc(slices.Clone(have), func(p *pod) bool { return !p.active() })
		for i := len(staying); i < app.Replicas; i++ {
			if name, free := w.name(app, have); free {
				have = append(have, w.add(app, name, now))
			}
		}
		w.dismiss(staying, len(staying)-app.Replicas, now)
	}
}

// of returns the pods of an app.
func (w *Workload) of(app *App) (pods []*pod) {
	for _, p := range w.pods {
		if p.app == app {
			pods = append(pods, p)
		}
	}
	return pods
}

// name returns one for a new task, or false if the task has to wait for one.
func (w *Workload) name(app *App, have []*pod) (string, bool) {
	if !app.Volume {
		return app.Name + "-" + strconv.Itoa(w.number+1), true
	}
	for i := range app.Replicas {
		name := app.Name + "-" + strconv.Itoa(i)
		if !slices.ContainsFunc(have, func(p *pod) bool { return p.Name == name }) {
			return name, true
		}
	}
	return "", false
}

func (w *Workload) add(app *App, name string, now time.Time) *pod {
	w.number++
	p := newPod(app, name, w.number, now)
	w.pods = append(w.pods, p)
	return p
}

func newPod(app *App, name string, number int, now time.Time) *pod {
	kind := "ReplicaSet"
	var claims []string
	if app.Volume {
		kind, claims = "StatefulSet", []string{claimOf(name)}
	}
	return &pod{app: app, number: number, Pod: &drain.Pod{
		Key: object.Key{Namespace: Namespace, Name: name}, UID: uidPrefix + strconv.Itoa(number),
		Owner:  &object.Owner{Kind: kind, Name: app.Name, UID: "app-" + app.Name},
		Labels: map[string]string{appLabel: app.Name}, CreatedAt: now.Truncate(time.Second),
		Grace: app.Grace, Claims: claims,
	}}
}

// dismiss ends n tasks: first those that do not serve, then those on the fullest nodes, the
// youngest first.
func (w *Workload) dismiss(staying []*pod, n int, now time.Time) {
	for ; n > 0; n-- {
		slices.SortFunc(staying, func(a, b *pod) int {
			return cmp.Or(numeral(w.healthy(a))-numeral(w.healthy(b)), w.load(b.node)-w.load(a.node), b.number-a.number)
		})
		_ = w.end(staying[0], staying[0].Grace, now) // tried again in the next round
		staying = staying[1:]
	}
}

func numeral(b bool) int {
	if b {
		return 1
	}
	return 0
}

// bind puts tasks on nodes: each on the one with the fewest, among those that accept any. A node
// that is about to be drained is a last resort, because a task would move twice.
func (w *Workload) bind() {
	for _, p := range w.pods {
		if p.node != "" || !p.active() {
			continue
		}
		if best := w.choose(); best != "" {
			p.node = best
			w.changed(best)
		}
	}
}

func (w *Workload) choose() (best string) {
	for name, n := range w.nodes {
		if !takes(n) {
			continue
		}
		if best == "" || cmp.Or(numeral(ends(n))-numeral(ends(w.nodes[best])), w.load(name)-w.load(best), cmp.Compare(name, best)) < 0 {
			best = name
		}
	}
	return best
}

// ends reports whether the node's machine is known to be deleted soon.
func ends(n *machine.Node) bool { return has(n, machine.NodeTerminating) }

func has(n *machine.Node, condition string) bool {
	c := object.FindCondition(n.Conditions, condition)
	return c != nil && c.Status == object.True
}

// load returns how many staying tasks there are on a node.
func (w *Workload) load(node string) (n int) {
	for _, p := range w.pods {
		if p.node == node && p.active() {
			n++
		}
	}
	return n
}

// takes reports whether a node takes new tasks.
func takes(n *machine.Node) bool {
	if n.Unschedulable || n.Deleted() || !ready(n) {
		return false
	}
	return !slices.ContainsFunc(n.Taints, func(t object.Taint) bool {
		return t.Effect == object.NoSchedule || t.Effect == object.NoExecute
	})
}

func ready(n *machine.Node) bool { return has(n, machine.NodeReady) }
