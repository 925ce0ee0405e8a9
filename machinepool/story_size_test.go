package machinepool_test

import (
	"testing"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

// TestSizes tells how pools grow and shrink.
// Invariants: P31 P34 P60
func TestSizes(t *testing.T) {
	story(t, "scale up", func(s *stage) {
		s.running()
		s.w.scaleTo(5)
		s.look()
		s.w.supply()
		s.after(15 * time.Second)
		s.w.join()
		s.look()
	})
	story(t, "scale up beyond the quota, and back", func(s *stage) {
		s.running()
		s.w.scaleTo(50)
		s.fails("ScaleGroup", codes.ResourceExhausted, "quota of 10 reached")
		s.look()
		s.say("wanted is what is there again")
		s.w.scaleTo(3)
		s.look()
	})
	story(t, "scale down by the provider's choice", func(s *stage) {
		s.w.choose = machinepool.Features{}
		s.running()
		s.w.scaleTo(1)
		s.look()
		s.w.supply()
		s.after(15 * time.Second)
		s.after(15 * time.Second)
	})
	story(t, "scale down with drain", func(s *stage) {
		s.w.slow = 40 * time.Second
		s.running()
		s.say("one is not ready, so it goes first")
		s.w.ready(s.w.ids()[1], object.False)
		s.w.scaleTo(1)
		s.look()
		s.after(15 * time.Second)
		s.after(25 * time.Second)
		s.after(15 * time.Second)
		s.after(15 * time.Second)
	})
	story(t, "scale down, and up again in the middle", func(s *stage) {
		s.w.slow = time.Hour
		s.running()
		s.w.scaleTo(1)
		s.look()
		s.say("one of the two may stay")
		s.w.scaleTo(2)
		s.after(15 * time.Second)
		s.say("the other one too")
		s.w.scaleTo(3)
		s.after(15 * time.Second)
	})
	story(t, "drain that takes too long", func(s *stage) {
		s.w.slow = 10 * time.Hour
		s.running()
		s.w.scaleTo(2)
		s.look()
		s.after(2*time.Hour - time.Second)
		s.after(2 * time.Second)
		s.after(15 * time.Second)
		s.after(15 * time.Second)
	})
	story(t, "scale down before all are there", func(s *stage) {
		s.w.scaleTo(9)
		s.look()
		s.say("two of nine are there")
		s.w.group.ready = true
		s.w.group.target = 2
		s.w.supply()
		s.w.group.target = 9
		s.after(15 * time.Second)
		s.w.scaleTo(1)
		s.look()
		s.after(15 * time.Second)
	})
	story(t, "crash while an instance is drained", func(s *stage) {
		s.w.slow = 30 * time.Second
		s.running()
		s.w.scaleTo(2)
		s.kill = func() bool { return len(s.w.drains) > 0 }
		s.look()
		s.kill = nil
		s.say("another process goes on with the same one")
		s.after(10 * time.Second)
		s.after(20 * time.Second)
	})
	story(t, "provider replaces what is removed", func(s *stage) {
		s.running()
		s.w.repairs = true
		s.w.scaleTo(2)
		s.look()
		s.after(15 * time.Second)
		s.w.join()
		s.look()
		s.after(15 * time.Second)
		s.after(30 * time.Minute)
		s.say("a person asks for another size")
		s.w.scaleTo(1)
		s.look()
		s.after(15 * time.Second)
		s.say("the provider is mended")
		s.w.repairs = false
		s.after(time.Hour)
		s.after(15 * time.Second)
		s.after(15 * time.Second)
	})
	story(t, "instances that are not listed for a moment, amid a scale down", func(s *stage) {
		s.w.slow = 40 * time.Second
		s.running()
		s.lie = func(g *machinepool.Group) { g.Instances = nil }
		s.w.scaleTo(1)
		s.look()
		s.lie = nil
		s.after(15 * time.Second)
		s.say("one that is being drained is not listed")
		s.lie = func(g *machinepool.Group) { g.Instances = g.Instances[1:] }
		s.after(15 * time.Second)
		s.lie = nil
		s.after(25 * time.Second)
		s.after(15 * time.Second)
		s.after(15 * time.Second)
	})
	story(t, "size of an autoscaler", func(s *stage) {
		s.w.edit(func(p *machinepool.Pool) { p.Annotations = map[string]string{"millwright-go/autoscaled": "true"} })
		s.running()
		s.say("the provider's autoscaler wants five")
		s.w.group.target = 5
		s.w.supply()
		s.after(time.Minute)
		s.w.join()
		s.look()
		s.say("a user wants two: that is not theirs to say")
		s.w.scaleTo(2)
		s.look()
		s.say("the autoscaler is switched off: the size stays as it was")
		s.w.edit(func(p *machinepool.Pool) { p.Annotations = nil })
		s.look()
	})
	story(t, "autoscaler switched on amid a scale down", func(s *stage) {
		s.w.slow = time.Hour
		s.running()
		s.w.scaleTo(1)
		s.look()
		s.w.edit(func(p *machinepool.Pool) { p.Annotations = map[string]string{"millwright-go/autoscaled": "true"} })
		s.after(15 * time.Second)
	})
	story(t, "node asks for another in its place", func(s *stage) {
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
	story(t, "provider waits for a drain", func(s *stage) {
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

// TestRemoval tells how pools go.
// Invariants: P35
func TestRemoval(t *testing.T) {
	story(t, "deletion", func(s *stage) {
		s.running()
		s.w.remove()
		s.look()
	})
	story(t, "deletion that takes time", func(s *stage) {
		s.running()
		s.w.remove()
		s.fails("DeleteGroup", codes.Aborted, "instances are being deleted")
		s.look()
		s.after(6 * time.Second)
	})
	story(t, "deletion of a failed pool", func(s *stage) {
		s.running()
		s.w.scaleTo(-3)
		s.look()
		s.w.remove()
		s.fails("RemoveBootstrap", codes.PermissionDenied, "may not delete secrets")
		s.look()
		s.after(10*time.Minute + time.Second)
	})
	story(t, "deletion of a pool that has never had a group", func(s *stage) {
		s.w.class = nil
		s.look()
		s.w.remove()
		s.look()
	})
	story(t, "deletion with the class gone", func(s *stage) {
		s.running()
		class := s.w.class
		s.w.class = nil
		s.w.remove()
		s.look()
		s.w.class = class
		s.look()
	})
	story(t, "deletion without finalizer", func(s *stage) {
		s.w.edit(func(p *machinepool.Pool) { p.Finalizers = []string{"another's"} })
		s.w.remove()
		s.look()
	})
	story(t, "bootstrap data of a user's own stay", func(s *stage) {
		s.w.edit(func(p *machinepool.Pool) { p.Spec.Template.Bootstrap.Config = "" })
		s.running()
		s.w.remove()
		s.look()
	})
	story(t, "crash amid a deletion", func(s *stage) {
		s.running()
		s.w.remove()
		s.kill = func() bool { return s.w.group == nil }
		s.look()
		s.kill = nil
		s.after(time.Second)
	})
}
