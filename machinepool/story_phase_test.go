package machinepool_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

// unset removes the name of the bootstrap data from the template.
func (s *stage) unset() {
	s.w.edit(func(p *machinepool.Pool) { p.Spec.Template.Bootstrap.DataSecret = nil })
}

// TestPhases tells about rare transitions between phases.
func TestPhases(t *testing.T) {
	story(t, "deletion before the pool was looked at", func(s *stage) {
		s.w.edit(func(p *machinepool.Pool) { p.Finalizers = []string{machinepool.Finalizer} })
		s.w.remove()
		s.look()
	})
	story(t, "deletion while bootstrap data are waited for", func(s *stage) {
		s.unset()
		s.look()
		s.w.remove()
		s.look()
	})
	story(t, "deletion before all have joined", func(s *stage) {
		s.look()
		s.w.supply()
		s.after(15 * time.Second)
		s.w.remove()
		s.look()
	})
	story(t, "spec that cannot be acted upon while bootstrap data are waited for", func(s *stage) {
		s.unset()
		s.look()
		s.w.scaleTo(-1)
		s.look()
		s.say("it is mended")
		s.w.scaleTo(3)
		s.look()
	})
	// An update before them would say that there is nothing to boot from.
	story(t, "group that is there before its bootstrap data", func(s *stage) {
		s.w.carry(machinepool.CreateGroup{Replicas: 3}, nil)
		s.w.supply()
		s.unset()
		s.look()
		s.say("the name is set, and the data are there")
		name := "boot"
		s.w.edit(func(p *machinepool.Pool) { p.Spec.Template.Bootstrap.DataSecret = &name })
		s.look()
	})
	// The driver adopts what the first create makes late, from a template that is no longer wanted.
	story(t, "template changed between two creates", func(s *stage) {
		s.fails("CreateGroup", codes.DeadlineExceeded, "no answer")
		s.look()
		s.say("the template is changed")
		s.w.edit(func(p *machinepool.Pool) { p.Spec.Template.NodeTemplate.Labels = map[string]string{"zone": "b"} })
		s.after(5 * time.Second)
		s.after(time.Second)
	})
	story(t, "other bootstrap data that come late", func(s *stage) {
		s.running()
		boot, other := s.w.boot, "boot-2"
		s.w.boot = &machinepool.BootstrapAnswer{}
		s.w.edit(func(p *machinepool.Pool) { p.Spec.Template.Bootstrap.DataSecret = &other })
		s.look()
		s.say("they are there; until then new machines booted from the old ones")
		s.w.boot = boot
		s.after(15 * time.Second)
	})
	story(t, "bootstrap data that go before the group is ready", func(s *stage) {
		s.look()
		s.say("somebody deletes the secret")
		s.w.boot = &machinepool.BootstrapAnswer{}
		s.after(15 * time.Second)
	})
	story(t, "group and bootstrap data that somebody deletes before all have joined", func(s *stage) {
		s.look()
		s.w.supply()
		s.after(15 * time.Second)
		s.say("group and secret are gone")
		s.w.group, s.w.boot = nil, &machinepool.BootstrapAnswer{}
		s.after(15 * time.Second)
		s.after(time.Minute)
	})
	story(t, "group and bootstrap data that somebody deletes", func(s *stage) {
		s.running()
		s.say("their nodes are still there")
		s.w.group, s.w.boot = nil, &machinepool.BootstrapAnswer{}
		s.after(time.Minute)
		s.after(time.Minute)
	})
	story(t, "failure that is over while a node is not ready", func(s *stage) {
		s.running()
		s.w.group.failure = "the image is gone"
		s.after(time.Minute)
		s.say("the provider is well again, and a node is not")
		s.w.group.failure = ""
		s.w.ready(s.w.ids()[0], object.False)
		s.after(15 * time.Second)
	})
}

var (
	toldMove  = regexp.MustCompile(`(?m)^\S+ +status (\w*) -> (\w+)(?: \(|:)`)
	toldPhase = regexp.MustCompile(`(?m)^\S+ +(?:-- )?= (\w+):`)
)

// TestEveryTransitionHasAStory: a change of the phase table, or of what leads through it, shows in
// a golden.
// Invariants: P32
func TestEveryTransitionHasAStory(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "stories", "*.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	moves, phases := map[[2]string]bool{}, map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range toldMove.FindAllStringSubmatch(string(text), -1) {
			moves[[2]string{m[1], m[2]}] = true
		}
		for _, m := range toldPhase.FindAllStringSubmatch(string(text), -1) {
			phases[m[1]] = true
		}
	}
	table := machinepool.PhaseTable()
	known := map[[2]string]bool{}
	for _, e := range table.Transitions() {
		known[[2]string{e.From, e.To}] = true
		assert.True(t, moves[[2]string{e.From, e.To}], "no story has %q -> %q", e.From, e.To)
	}
	for m := range moves {
		assert.True(t, known[m], "a story has %q -> %q, which the table has not", m[0], m[1])
	}
	for _, state := range table.States() {
		assert.True(t, state == "" || state == machine.Unrecognized || phases[state], "no story rests in phase %s", state)
	}
}
