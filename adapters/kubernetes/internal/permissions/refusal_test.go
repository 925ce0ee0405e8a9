package permissions

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// byStream is the use of list permissions. The server of these tests needs none of them, because it
// sends existing objects as part of a watch.
const byStream = "lists from a server that can't send existing objects as part of a watch"

// rare are permissions that these tests do not use, and what uses them.
var rare = map[string]string{
	"target get core pods":                             "an eviction that conflicts, since the pod was replaced meanwhile: cluster.TestEvictions",
	"kube-system update core secrets":                  "a token that has to last longer: bootstrap.TestTokenIsFoundAgain",
	"control get millwright-go.github.io machinepools": "a drain of a pool's node that takes a while: controllers.TestPoolReplacesANode",
	"control list core secrets":                        byStream,
	"target list core nodes":                           byStream,
	"target list core pods":                            byStream,
	"target list core persistentvolumes":               byStream,
	"target list policy poddisruptionbudgets":          byStream,
	"target list storage.k8s.io volumeattachments":     byStream,
}

// harmless are permissions without which all steps still succeed.
var harmless = map[string]bool{
	"control create events.k8s.io events": true,
	"control create core events":          true,
}

// ending are permissions without which a manager can't stay the leader, so that it ends.
var ending = map[string]bool{"control update coordination.k8s.io leases millwright-manager": true}

// sampleStep: with -short every eighth permission is tested, because each takes seconds.
const sampleStep = 8

// TestRefusals: if any single permission is removed, the log names its verb and resource. Nothing else
// is refused, and the manager keeps running.
func TestRefusals(t *testing.T) {
	slots := make(chan bool, 6)
	for i, l := range allPermissions(t) {
		if rare[l.String()] != "" || testing.Short() && i%sampleStep != 0 {
			continue
		}
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			slots <- true
			defer func() { <-slots }()
			w := newWorld(t, l)
			began := time.Now()
			stop := w.manage()
			enough := w.refused
			if harmless[l.String()] { // all steps must succeed
				enough = func() bool { return false }
			}
			w.run(0, enough)
			t.Log(strings.Join(logged.with(w.namespace), ""))
			eventually(t, "the log to name the missing permission", w.refused)
			t.Log(time.Since(began))
			if !ending[l.String()] {
				require.Empty(t, w.ended)
			}
			stop()
			require.Empty(t, w.refusals())
		})
	}
}
