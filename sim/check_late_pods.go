package sim

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/internal/cluster"
)

// p49: if pods of an app are bound to a node in spite of its cordon, one drain of the node evicts them
// in at most maxRounds rounds (P49).
type p49 struct {
	*World
	told map[comeback]map[time.Time]bool // creation times, in whole seconds, of the late pods that were evicted
	size map[string]int                  // the largest number of replicas of each app
}

// comeback identifies the late pods that are counted together: those of one app in one drain of a node.
type comeback struct {
	node, app string
	since     time.Time
}

// maxRounds is how often a drain evicts late pods of an app: each time at most as many as its replicas.
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
