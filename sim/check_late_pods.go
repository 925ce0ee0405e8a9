package sim

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/internal/cluster"
)

// p49: in one drain, the pods of an app that came in spite of the cordon are told to terminate in a
// few rounds at most (P49).
type p49 struct {
	*World
	told map[comeback]map[time.Time]bool // when the late pods were created that were told to terminate, whole seconds as a drain knows them
	size map[string]int                  // the largest of each app
}

// comeback is what late pods are counted by: one drain of a node, and their app.
type comeback struct {
	node, app string
	since     time.Time
}

// maxRounds is how many rounds a drain makes.
const maxRounds = 3

func newP49(w *World) *p49 { return &p49{w, map[comeback]map[time.Time]bool{}, map[string]int{}} }

func (w *p49) see(e event) {
	if e, ok := e.(cluster.PodEvicted); ok {
		app := e.Pod.Labels["app"]
		w.size[app] = max(w.size[app], w.apps.Replicas(app))
		w.checkRounds(e.Pod, app)
	}
}

func (w *p49) checkRounds(p cluster.Pod, app string) {
	n, err := w.nodes.Get(context.Background(), object.Key{Name: p.Node})
	created := p.CreatedAt.Truncate(time.Second)
	if err != nil || n.Drain == nil || w.belated || !created.After(n.Drain.Youngest) {
		return
	}
	key := comeback{n.UID, app, n.Drain.Since}
	if w.told[key] == nil {
		w.told[key] = map[time.Time]bool{}
	}
	w.told[key][created] = true
	if times := len(w.told[key]); times > maxRounds*w.size[app] {
		w.violate("P49", "pods of %s were evicted from node %s %d times after its drain had begun", app, p.Node, times)
	}
}
