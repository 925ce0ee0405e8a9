package sim_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/store"
)

// TestNarratives plays each file of testdata in a world without delays, and writes down what happens,
// with the bounds at each step.
func TestNarratives(t *testing.T) {
	for _, f := range rolloutFiles(t) {
		t.Run(f.name, func(t *testing.T) {
			got := tell(t, f)
			if testkit.Update() {
				text := f.text + outcomeFollows + got
				require.NoError(t, os.WriteFile(filepath.Join("testdata", f.name+".txt"), []byte(text), 0o644))
				f.outcome = got
			}
			require.Equal(t, f.outcome, got, "run with -update to write it, then read it")
		})
	}
}

// narrator writes down what a deployment decides, and how its sets stand.
type narrator struct {
	r    *run
	text strings.Builder
	last string // the last line written
	held string // what stands now, until time passes or something is decided
	at   string
}

func tell(t *testing.T, f *rolloutFile) string {
	n := &narrator{r: &run{t: t}}
	n.r.say = func(what string) { n.flush(); fmt.Fprintf(&n.text, "\n-- %s\n", what) }
	fmt.Fprintf(&n.text, "%d machines, %s, %s more and %s less allowed\n\n", f.replicas,
		f.strategy.Kind, f.strategy.MaxSurge, f.strategy.MaxUnavailable)
	n.r.start(1, f.with(sim.Faults{}), fleet(f.replicas, f.strategy), manager.Hooks{Event: n.event})
	n.r.w.Watch(n.look)
	f.play(n.r)
	n.flush()
	fmt.Fprintf(&n.text, "\nmachines made in all: %d\n", n.r.w.Made())
	n.r.w.Close()
	return n.text.String()
}

func (n *narrator) event(kind manager.Kind, _ object.Key, _ manager.EventType, reason, why string) {
	if kind != manager.KindDeployment {
		return
	}
	n.flush()
	fmt.Fprintf(&n.text, "%s  %s: %s\n", n.r.w.Now().Format("15:04:05"), reason, why)
}

// look writes down how the sets stand when that has changed.
func (n *narrator) look() {
	d, err := n.r.w.Deployments().Get(ctx, web)
	if err != nil {
		return
	}
	if at := n.r.w.Now().Format("15:04:05"); at != n.at {
		n.flush()
		n.at = at
	}
	n.held = n.standing(d)
}

// flush writes down how the sets stood last.
func (n *narrator) flush() {
	if n.held != n.last {
		fmt.Fprintf(&n.text, "%s    %s\n", n.at, n.held)
		n.last = n.held
	}
}

// standing is one line: each set by class with machines wanted/there/available, then the sums
// beside their bounds.
func (n *narrator) standing(d *deployment.Deployment) string {
	sets, err := n.r.w.Sets().List(ctx, store.Query{})
	require.NoError(n.r.t, err)
	machines, err := n.r.w.Machines().List(ctx, store.Query{})
	require.NoError(n.r.t, err)
	slices.SortFunc(sets, func(a, b *machineset.Set) int { return strings.Compare(a.UID, b.UID) })
	var line strings.Builder
	var total, available int
	for _, s := range sets {
		there, ready := 0, 0
		for _, m := range machines {
			if m.OwnedBy(s.UID) && !m.Deleted() {
				there++
				if m.Ready() {
					ready++
				}
			}
		}
		total, available = total+there, available+ready
		if there > 0 || s.Spec.Replicas > 0 {
			fmt.Fprintf(&line, "[%s %d/%d/%d] ", s.Spec.Template.Spec.Class.Name, s.Spec.Replicas, there, ready)
		}
	}
	going := 0
	for _, m := range machines {
		if m.Deleted() {
			going++
		}
	}
	r := d.Spec.Replicas
	b := rollout.Fenceposts(d.Spec.Strategy.MaxSurge, d.Spec.Strategy.MaxUnavailable, r)
	fmt.Fprintf(&line, " %d of at most %d, %d available of at least %d", total, r+b.Surge, available, r-b.Unavailable)
	if going > 0 {
		fmt.Fprintf(&line, ", %d going", going)
	}
	if n := failing(machines); n > 0 {
		fmt.Fprintf(&line, ", %d failed", n)
	}
	return line.String()
}

func failing(machines []*machine.Machine) (n int) {
	for _, m := range machines {
		if m.Status.Phase == machine.PhaseFailed && !m.Deleted() {
			n++
		}
	}
	return n
}

// strategies are those that every file is played with, not only with its own.
var strategies = []deployment.Strategy{
	{MaxSurge: rollout.IntOrPercent{Value: 1}},
	{MaxUnavailable: rollout.IntOrPercent{Value: 1}},
	{MaxSurge: rollout.IntOrPercent{Value: 25, Percent: true}},
	{MaxUnavailable: rollout.IntOrPercent{Value: 50, Percent: true}},
	{MaxSurge: rollout.IntOrPercent{Value: 2}, MaxUnavailable: rollout.IntOrPercent{Value: 1}},
	{MaxSurge: rollout.IntOrPercent{Value: 100, Percent: true}},
	{Kind: deployment.Recreate},
	{Kind: deployment.InPlaceUpdate, MaxSurge: rollout.IntOrPercent{Value: 1}},
	{Kind: deployment.InPlaceUpdate, MaxUnavailable: rollout.IntOrPercent{Value: 1}},
	{Kind: deployment.InPlaceUpdate, MaxSurge: rollout.IntOrPercent{Value: 25, Percent: true}},
	{Kind: deployment.InPlaceUpdate, MaxUnavailable: rollout.IntOrPercent{Value: 50, Percent: true}},
}

// TestInterleavings plays each file with each strategy again and again, with calls and caches that
// lag, passes that overlap, and the faults of the file. The world checks the bounds after every
// effect (P5, P7, P13, P14). Files that differ in their strategy alone are one here.
// Invariants: P5 P7
func TestInterleavings(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 3
	}
	played := map[string]bool{}
	for _, f := range rolloutFiles(t) {
		if played[f.course()] {
			continue
		}
		played[f.course()] = true
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(rounds * len(strategies)) {
				r := &run{t: t}
				t.Logf("seed %d", seed)
				r.start(seed, f.with(busy()), fleet(f.replicas, strategies[seed%uint64(len(strategies))]), manager.Hooks{})
				f.play(r)
				r.w.Close()
			}
		})
	}
}
