package workload

import (
	"context"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/examples/quickstart/registry"
	"github.com/millwright-go/millwright/examples/quickstart/task"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// TestWhateverHappens: nodes join, leave, fall silent and are cordoned, agents report late or
// never, tasks crash and are evicted. No eviction breaks the budget, no volume is in two places, no
// name is taken twice. Once all that has stopped, every task serves.
func TestWhateverHappens(t *testing.T) {
	root := t.TempDir()
	number := 0
	rapid.Check(t, func(r *rapid.T) {
		number++
		dir := root + "/" + strconv.Itoa(number)
		defer func() { _ = os.RemoveAll(dir) }()
		w := &wild{site: newSite(r, dir, "n0", "n1"), r: r, joined: 2, holds: map[string]*registry.Lock{}}
		defer w.releaseAll()
		report := time.Duration(rapid.IntRange(0, 3).Draw(r, "report")) * time.Second
		w.apply(App{Name: "front", Replicas: 3, MaxUnavailable: rapid.IntRange(0, 2).Draw(r, "maxUnavailable"), Report: report})
		data := withVolume
		data.Report = report
		w.apply(data)
		for range rapid.IntRange(5, 40).Draw(r, "steps") {
			rapid.SampledFrom([]func(){w.joins, w.leaves, w.cordons, w.blinks, w.evictsOne, w.agentsWork, w.crashes, w.looks}).Draw(r, "step")()
			w.check()
		}
		w.calm()
	})
}

// wild is a site with chance. holds are the locks of tasks that run and have a
// volume, by UID.
type wild struct {
	*site
	r      *rapid.T
	joined int
	holds  map[string]*registry.Lock
}

func (w *wild) releaseAll() {
	for _, lock := range w.holds {
		lock.Release()
	}
}

func (w *wild) some() *machine.Node {
	all, err := w.site.nodes.List(context.Background(), store.Query{})
	require.NoError(w.t, err)
	if len(all) == 0 {
		return nil
	}
	return all[rapid.IntRange(0, len(all)-1).Draw(w.r, "node")]
}

// looks runs the controllers, a second after the last time.
func (w *wild) looks() {
	w.past += time.Second
	w.site.looks()
}

func (w *wild) joins() {
	w.join("n" + strconv.Itoa(w.joined))
	w.joined++
}

// leaves removes a node, and with its machine all that ran there.
func (w *wild) leaves() {
	n := w.some()
	if n == nil {
		return
	}
	for _, p := range w.pods {
		if p.node == n.Name {
			w.releases(p)
		}
	}
	w.leave(n.Name)
}

func (w *wild) releases(p *pod) {
	if lock := w.holds[p.UID]; lock != nil {
		lock.Release()
		delete(w.holds, p.UID)
	}
}

func (w *wild) cordons() {
	if n := w.some(); n != nil {
		w.change(n.Name, func(n *machine.Node) { n.Unschedulable = !n.Unschedulable })
	}
}

func (w *wild) blinks() {
	if n := w.some(); n != nil {
		status := rapid.SampledFrom([]object.ConditionStatus{object.True, object.Unknown}).Draw(w.r, "ready")
		w.condition(n.Name, machine.NodeReady, status)
		w.looks()
	}
}

// evictsOne asks for an eviction and checks the answer against the budget, by counts of its own.
func (w *wild) evictsOne() {
	if len(w.pods) == 0 {
		return
	}
	p := w.pods[rapid.IntRange(0, len(w.pods)-1).Draw(w.r, "pod")]
	before, was, going := w.Serving(p.app.Name), w.healthy(p), p.going()
	floor := p.app.Replicas - p.app.MaxUnavailable
	switch result := w.evicts(p); {
	case result == drain.Refused:
		require.LessOrEqual(w.t, before, floor, "refused without need")
		require.False(w.t, going)
	case was && !going:
		require.GreaterOrEqual(w.t, w.Serving(p.app.Name), floor, "the budget is broken")
	}
}

// agentLives reports whether a task's node exists, regardless of what the workload knows.
func (w *wild) agentLives(p *pod) bool {
	_, err := w.site.nodes.Get(context.Background(), object.Key{Name: p.node})
	return err == nil
}

// agentsWork makes agents do what they were told, one task each.
func (w *wild) agentsWork() {
	for _, p := range slices.Clone(w.pods) {
		if !p.given || p.Finished || !w.agentLives(p) || !rapid.Bool().Draw(w.r, "works") {
			continue
		}
		if p.going() {
			w.releases(p)
			w.report(p, task.Ended)
			continue
		}
		if p.app.Volume && w.holds[p.UID] == nil {
			lock, err := registry.Try(w.desk(p.node).Mount(volumeOf(p.Name)))
			require.NoError(w.t, err, "the volume is attached, and nobody has it")
			w.holds[p.UID] = lock
		}
		w.report(p, task.Serving)
	}
	w.looks()
}

func (w *wild) crashes() {
	for _, p := range slices.Clone(w.pods) {
		if p.given && !p.Finished && w.agentLives(p) && rapid.IntRange(0, 9).Draw(w.r, "crashes") == 0 {
			w.releases(p)
			w.report(p, task.Ended)
		}
	}
}

func (w *wild) check() {
	names, at := map[string]bool{}, map[string]bool{}
	for _, p := range w.pods {
		require.False(w.t, names[p.Name], "%s twice", p.Name)
		names[p.Name] = true
	}
	for _, a := range w.volumes {
		require.False(w.t, at[a.Volume], "%s is in two places", a.Volume)
		at[a.Volume] = true
	}
	links := 0
	for i := range w.joined {
		if _, err := os.Stat(w.desk("n" + strconv.Itoa(i)).Mount("volume-db-0")); err == nil {
			links++
		}
	}
	require.LessOrEqual(w.t, links, 1, "the volume can be reached from %d nodes", links)
}

// calm stops all trouble. Then everything must recover.
func (w *wild) calm() {
	w.joins()
	all, err := w.site.nodes.List(context.Background(), store.Query{})
	require.NoError(w.t, err)
	for _, n := range all {
		w.condition(n.Name, machine.NodeReady, object.True)
		w.change(n.Name, func(n *machine.Node) { n.Unschedulable = false })
	}
	for range 12 {
		w.looks()
		for _, p := range slices.Clone(w.pods) {
			switch {
			case p.Finished:
			case p.given && p.going():
				w.releases(p)
				w.report(p, task.Ended)
			case p.given:
				w.report(p, task.Serving)
			}
		}
	}
	w.looks()
	require.Equal(w.t, 3, w.Serving("front"))
	require.Equal(w.t, 1, w.Serving("db"))
	require.Equal(w.t, 4, w.Left())
}
