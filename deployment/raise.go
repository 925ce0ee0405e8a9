package deployment

import (
	"fmt"
	"math"

	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machineset"
)

// A set that has to delete machines reads its size, chooses, and then deletes one after the other.
// If its size is raised meanwhile, it still acts on the smaller one. So a raise of a set that has
// more machines than ordered, or may get more, is noted on the set: the size until then, and the
// generation that the raise makes. Until the set has observed that generation, its machines count
// as if it still had the smaller size.
//
// An old set that gets machines back may have deleted some of them since they were counted. It must
// not create others of the old template. So the raise closes the set. The gate opens it at what it
// has, once it has observed the raise.

// noteRaise notes on a set that is about to get another size the smaller one that it may still act
// on.
func (f *family) noteRaise(changed *machineset.Set, key string) {
	if key == "" {
		return
	}
	actsOn := f.actsOn(key)
	switch {
	case changed.Spec.Replicas > f.size() && (f.most() > int64(f.size()) || actsOn < f.size()):
		changed.Annotations = withEntry(changed.Annotations, key, fmt.Sprintf("%d %d", actsOn, f.set.Generation+1))
	case actsOn >= f.size():
		delete(changed.Annotations, key)
	}
}

// actsOn returns the smallest size by which a set may still delete machines. A note that can't be
// read may mean 0.
func (f *family) actsOn(key string) int32 {
	note := f.set.Annotations[key]
	if note == "" || key == "" {
		return f.size()
	}
	var size int32
	var generation int64
	if _, err := fmt.Sscanf(note, "%d %d", &size, &generation); err != nil {
		size, generation = 0, math.MaxInt64
	}
	if f.set.Status.ObservedGeneration >= min(generation, f.set.Generation) {
		return f.size()
	}
	return max(0, min(size, f.size()))
}

// keepOnly closes a set that a step raises to keep machines: it creates none.
func keepOnly(changed *machineset.Set, step *rollout.Scale) {
	if step.Why.Reason == rollout.ReasonGivenBack {
		changed.Instructions.Handover.Closed = true
	}
}
