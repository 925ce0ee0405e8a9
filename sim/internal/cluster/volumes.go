package cluster

import (
	"fmt"
	"slices"
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/object"
)

// persistentVolume is a volume of the cluster. A controller attaches it to at most one node at a time.
type persistentVolume struct {
	*drain.Volume
	at    *drain.Attachment // nil if attached to no node; it is replaced, never changed
	since time.Time         // when its last attachment began
	stuck bool              // it can't be detached from a running node
}

// on reports whether the volume is attached to a node, or is being attached or detached.
func (v *persistentVolume) on(node string) bool { return v.at != nil && v.at.Node == node }

// Volume is the state of a volume in an event.
type Volume struct {
	Name  string
	At    *drain.Attachment // nil if attached to no node
	Since time.Time         // when its last attachment began
}

func (v *persistentVolume) state() Volume { return Volume{v.Name, v.at, v.since} }

// On reports whether the volume was attached to a node, or was being attached or detached.
func (v Volume) On(node string) bool { return v.At != nil && v.At.Node == node }

// volumes holds all volumes, in the order of their creation.
type volumes struct {
	*workload
	all    []*persistentVolume
	number int // of attachments so far
}

// claim returns the volume of a claim. It creates the volume at the first call.
func (s *volumes) claim(name string) *persistentVolume {
	for _, v := range s.all {
		if v.Claim.Name == name {
			return v
		}
	}
	v := &persistentVolume{Volume: &drain.Volume{
		Name: "pv-" + name, Claim: object.Key{Namespace: "apps", Name: name}, Driver: "volumes.simulated", Handle: "handle-" + name,
	}}
	s.all = append(s.all, v)
	return v
}

// of returns the volumes of a pod.
func (s *volumes) of(p *pod) (out []*persistentVolume) {
	for _, name := range p.Claims {
		out = append(out, s.claim(name))
	}
	return out
}

// statesOf returns the states of the volumes of a pod.
func (s *volumes) statesOf(p *pod) (out []Volume) {
	for _, v := range s.of(p) {
		out = append(out, v.state())
	}
	return out
}

// attachAndDetach attaches the volumes that pods wait for, and detaches those that no pod uses.
func (s *volumes) attachAndDetach() {
	for _, p := range s.pods {
		if p.node == "" {
			continue
		}
		for _, v := range s.of(p) {
			if v.at == nil && p.active() {
				s.attach(v, p.node)
			}
		}
	}
	for _, v := range s.all {
		if v.at != nil && v.at.DeletedAt.IsZero() && !s.used(v) {
			s.detach(v)
		}
	}
}

// used reports whether a pod on the volume's node uses it. A finished pod does not, even if its object
// still exists.
func (s *volumes) used(v *persistentVolume) bool {
	return slices.ContainsFunc(s.pods, func(p *pod) bool {
		return p.node == v.at.Node && !p.Finished && slices.Contains(p.Claims, v.Claim.Name)
	})
}

func (s *volumes) attach(v *persistentVolume, node string) {
	s.number++
	v.at = &drain.Attachment{Name: fmt.Sprint("attachment-", s.number), Volume: v.Name, Node: node}
	v.since = s.world.Now()
	name := v.at.Name
	s.moved(v, node)
	s.world.After(attachTime+s.world.UpTo(attachTime), func() {
		if v.at == nil || v.at.Name != name || !v.at.DeletedAt.IsZero() {
			return
		}
		done := *v.at
		done.Attached = true
		v.at = &done
		s.moved(v, node)
		s.Soon()
	})
}

// attachTime is the shortest time in which a volume is attached or detached.
const attachTime = 4 * time.Second

// detach begins to detach a volume. A stuck volume stays until the VM of its node is gone, or faults stop.
func (s *volumes) detach(v *persistentVolume) {
	detaching := *v.at
	detaching.DeletedAt = s.world.Now().Truncate(time.Second)
	v.at = &detaching
	s.moved(v, detaching.Node)
	switch d := attachTime + s.world.UpTo(attachTime); {
	case s.world.Happens(s.world.Faults().StuckVolume):
		s.world.Count(VolumeStuck)
		v.stuck = true
	case s.world.Faults().SlowVolume > 0:
		s.world.Count(VolumeSlow)
		s.releaseAfter(v, d+s.world.UpTo(s.world.Faults().SlowVolume))
	default:
		s.releaseAfter(v, d)
	}
}

// releaseAfter ends a volume's attachment after a while.
func (s *volumes) releaseAfter(v *persistentVolume, after time.Duration) {
	name := v.at.Name
	s.world.After(after, func() {
		if v.at == nil || v.at.Name != name {
			return
		}
		node := v.at.Node
		v.at, v.stuck = nil, false
		s.moved(v, node)
		s.Soon()
	})
}

// lost detaches the stuck volumes of a node whose VM is gone.
func (s *volumes) lost(node string) {
	for _, v := range s.all {
		if v.on(node) && v.stuck {
			s.releaseAfter(v, attachTime)
		}
	}
}

// stopFaults detaches all stuck volumes.
func (s *volumes) stopFaults() {
	for _, v := range s.all {
		if v.stuck {
			s.releaseAfter(v, attachTime)
		}
	}
}

// moved reports that a volume's attachment to a node has changed.
func (s *volumes) moved(v *persistentVolume, node string) {
	s.world.Emit(VolumeMoved{v.state()})
	s.changed(node)
}

// mounted reports whether a pod has all its volumes.
func (s *volumes) mounted(p *pod) bool {
	for _, v := range s.of(p) {
		if !v.on(p.node) || !v.at.Attached || !v.at.DeletedAt.IsZero() {
			return false
		}
	}
	return true
}

// VolumeMoved is the event that a volume was attached or detached, or that this has begun.
type VolumeMoved struct{ Volume Volume }

// DetachOrdered is the event that the manager has ordered the detachment of a volume.
type DetachOrdered struct{ Volume Volume }
