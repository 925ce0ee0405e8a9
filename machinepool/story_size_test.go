package machinepool_test

import (
	"testing"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

// TestSizes has scenarios of pools that grow and shrink.
// Invariants: P31 P34 P60
func TestSizes(t *testing.T) {
	playScenario(t, "scale up", func(s *scenario) {
		s.running()
		s.w.scaleTo(5)
		s.look()
		s.w.supply()
		s.after(15 * time.Second)
		s.w.join()
		s.look()
	})
	playScenario(t, "scale up beyond the quota, and back", func(s *scenario) {
		s.running()
		s.w.scaleTo(50)
		s.fails("ScaleGroup", codes.ResourceExhausted, "quota of 10 reached")
		s.look()
		s.comment("wanted is what is there again")
		s.w.scaleTo(3)
		s.look()
	})
	playScenario(t, "scale down by the provider's choice", func(s *scenario) {
		s.w.choose = machinepool.Features{}
		s.running()
		s.w.scaleTo(1)
		s.look()
		s.w.supply()
		s.after(15 * time.Second)
		s.after(15 * time.Second)
	})
	playScenario(t, "scale down with drain", func(s *scenario) {
		s.w.slow = 40 * time.Second
		s.running()
		s.comment("one is not ready, so it goes first")
		s.w.ready(s.w.ids()[1], object.False)
		s.w.scaleTo(1)
		s.look()
		s.after(15 * time.Second)
		s.after(25 * time.Second)
		s.after(15 * time.Second)
		s.after(15 * time.Second)
	})
	playScenario(t, "scale down, and up again in the middle", func(s *scenario) {
		s.w.slow = time.Hour
		s.running()
		s.w.scaleTo(1)
		s.look()
		s.comment("one of the two may stay")
		s.w.scaleTo(2)
		s.after(15 * time.Second)
		s.comment("the other one too")
		s.w.scaleTo(3)
		s.after(15 * time.Second)
	})
	playScenario(t, "drain that takes too long", func(s *scenario) {
		s.w.slow = 10 * time.Hour
		s.running()
		s.w.scaleTo(2)
		s.look()
		s.after(2*time.Hour - time.Second)
		s.after(2 * time.Second)
		s.after(15 * time.Second)
		s.after(15 * time.Second)
	})
	playScenario(t, "scale down before all are there", func(s *scenario) {
		s.w.scaleTo(9)
		s.look()
		s.comment("two of nine are there")
		s.w.group.ready = true
		s.w.group.target = 2
		s.w.supply()
		s.w.group.target = 9
		s.after(15 * time.Second)
		s.w.scaleTo(1)
		s.look()
		s.after(15 * time.Second)
	})
	playScenario(t, "crash while an instance is drained", func(s *scenario) {
		s.w.slow = 30 * time.Second
		s.running()
		s.w.scaleTo(2)
		s.kill = func() bool { return len(s.w.drains) > 0 }
		s.look()
		s.kill = nil
		s.comment("another process goes on with the same one")
		s.after(10 * time.Second)
		s.after(20 * time.Second)
	})
	playScenario(t, "provider replaces what is removed", func(s *scenario) {
		s.running()
		s.w.repairs = true
		s.w.scaleTo(2)
		s.look()
		s.after(15 * time.Second)
		s.w.join()
		s.look()
		s.after(15 * time.Second)
		s.after(30 * time.Minute)
		s.comment("a person asks for another size")
		s.w.scaleTo(1)
		s.look()
		s.after(15 * time.Second)
		s.comment("the provider is mended")
		s.w.repairs = false
		s.after(time.Hour)
		s.after(15 * time.Second)
		s.after(15 * time.Second)
	})
	playScenario(t, "instances that are not listed for a moment, amid a scale down", func(s *scenario) {
		s.w.slow = 40 * time.Second
		s.running()
		s.lie = func(g *machinepool.Group) { g.Instances = nil }
		s.w.scaleTo(1)
		s.look()
		s.lie = nil
		s.after(15 * time.Second)
		s.comment("one that is being drained is not listed")
		s.lie = func(g *machinepool.Group) { g.Instances = g.Instances[1:] }
		s.after(15 * time.Second)
		s.lie = nil
		s.after(25 * time.Second)
		s.after(15 * time.Second)
		s.after(15 * time.Second)
	})
	playScenario(t, "size of an autoscaler", func(s *scenario) {
		s.w.edit(func(p *machinepool.Pool) { p.Annotations = map[string]string{"millwright-go/autoscaled": "true"} })
		s.running()
		s.comment("the provider's autoscaler wants five")
		s.w.group.target = 5
		s.w.supply()
		s.after(time.Minute)
		s.w.join()
		s.look()
		s.comment("a user wants two: that is not theirs to say")
		s.w.scaleTo(2)
		s.look()
		s.comment("the autoscaler is switched off: the size stays as it was")
		s.w.edit(func(p *machinepool.Pool) { p.Annotations = nil })
		s.look()
	})
	playScenario(t, "autoscaler switched on amid a scale down", func(s *scenario) {
		s.w.slow = time.Hour
		s.running()
		s.w.scaleTo(1)
		s.look()
		s.w.edit(func(p *machinepool.Pool) { p.Annotations = map[string]string{"millwright-go/autoscaled": "true"} })
		s.after(15 * time.Second)
	})
	playScenario(t, "node asks for another in its place", func(s *scenario) {
		s.running()
		id := s.w.ids()[1]
		n := s.w.nodes[id].Clone()
		n.Annotations = map[string]string{"millwright-go/replace": "true"}
		s.w.nodes[id] = n
		s.look()
		s.w.supply()
		s.after(15 * time.Second)
		s.w.join()
		s.look()
		s.after(15 * time.Second)
	})
	playScenario(t, "provider waits for a drain", func(s *scenario) {
		s.w.slow = 20 * time.Second
		s.running()
		s.w.group.instances[s.w.ids()[0]].AwaitsDrain = true
		s.after(time.Minute)
		s.after(20 * time.Second)
		s.w.supply()
		s.after(15 * time.Second)
		s.w.join()
		s.look()
		s.after(15 * time.Second)
	})
}

// TestRemoval has scenarios of pools that are deleted.
// Invariants: P35
func TestRemoval(t *testing.T) {
	playScenario(t, "deletion", func(s *scenario) {
		s.running()
		s.w.remove()
		s.look()
	})
	playScenario(t, "deletion that takes time", func(s *scenario) {
		s.running()
		s.w.remove()
		s.fails("DeleteGroup", codes.Aborted, "instances are being deleted")
		s.look()
		s.after(6 * time.Second)
	})
	playScenario(t, "deletion of a failed pool", func(s *scenario) {
		s.running()
		s.w.scaleTo(-3)
		s.look()
		s.w.remove()
		s.fails("RemoveBootstrap", codes.PermissionDenied, "may not delete secrets")
		s.look()
		s.after(10*time.Minute + time.Second)
	})
	playScenario(t, "deletion of a pool that has never had a group", func(s *scenario) {
		s.w.class = nil
		s.look()
		s.w.remove()
		s.look()
	})
	playScenario(t, "deletion with the class gone", func(s *scenario) {
		s.running()
		class := s.w.class
		s.w.class = nil
		s.w.remove()
		s.look()
		s.w.class = class
		s.look()
	})
	playScenario(t, "deletion without finalizer", func(s *scenario) {
		s.w.edit(func(p *machinepool.Pool) { p.Finalizers = []string{"another's"} })
		s.w.remove()
		s.look()
	})
	playScenario(t, "bootstrap data of a user's own stay", func(s *scenario) {
		s.w.edit(func(p *machinepool.Pool) { p.Spec.Template.Bootstrap.Config = "" })
		s.running()
		s.w.remove()
		s.look()
	})
	playScenario(t, "crash amid a deletion", func(s *scenario) {
		s.running()
		s.w.remove()
		s.kill = func() bool { return s.w.group == nil }
		s.look()
		s.kill = nil
		s.after(time.Second)
	})
}
