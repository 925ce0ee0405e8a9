package cluster

import (
	"fmt"
	"slices"
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/object"
)

// persistentVolume is one of the cluster. A controller attaches it to one node at a time and asks
// nothing else.
type persistentVolume struct {
	*drain.Volume
	at    *drain.Attachment // nil if attached to no node; it is replaced, never changed
	since time.Time         // when it was last to be attached to a node
	stuck bool              // does not come off a node that runs
}

// on reports whether the volume is attached to a node, or about to be, or not quite detached.
func (v *persistentVolume) on(node string) bool { return v.at != nil && v.at.Node == node }

// Volume is a volume as an event shows it.
type Volume struct {
	Name  string
	At    *drain.Attachment // nil if attached to no node
	Since time.Time         // when it was last to be attached to a node
}

func (v *persistentVolume) state() Volume { return Volume{v.Name, v.at, v.since} }

// On reports whether the volume was attached to a node, or about to be, or not quite detached.
func (v Volume) On(node string) bool { return v.At != nil && v.At.Node == node }

// volumes are those of a world, in the order of their making.
type volumes struct {
	*workload
	all    []*persistentVolume
	number int // of attachments
}

// claim returns the volume of a claim, and makes it at the first call.
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

// statesOf returns where the volumes of a pod are.
func (s *volumes) statesOf(p *pod) (out []Volume) {
	for _, v := range s.of(p) {
		out = append(out, v.state())
	}
	return out
}

// look attaches what a pod waits for, and detaches what none does.
func (s *volumes) look() {
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

// used reports whether a pod on the volume's node needs it. A finished pod does not, even if its
// object is still there.
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

// detach takes a volume off its node. A stuck one is released with the VM.
func (s *volumes) detach(v *persistentVolume) {
	going := *v.at
	going.DeletedAt = s.world.Now().Truncate(time.Second)
	v.at = &going
	s.moved(v, going.Node)
	switch d := attachTime + s.world.UpTo(attachTime); {
	case s.world.Happens(s.world.Faults().StuckVolume):
		s.world.Count(VolumeStuck)
		v.stuck = true
	case s.world.Faults().SlowVolume > 0:
		s.world.Count(VolumeSlow)
		s.released(v, d+s.world.UpTo(s.world.Faults().SlowVolume))
	default:
		s.released(v, d)
	}
}

// released takes a volume off its node after a while.
func (s *volumes) released(v *persistentVolume, after time.Duration) {
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

// lost takes the volumes off a node whose VM is gone, stuck ones too.
func (s *volumes) lost(node string) {
	for _, v := range s.all {
		if v.on(node) && v.stuck {
			s.released(v, attachTime)
		}
	}
}

// stopFaults takes off everything that is stuck.
func (s *volumes) stopFaults() {
	for _, v := range s.all {
		if v.stuck {
			s.released(v, attachTime)
		}
	}
}

// moved reports a change of a volume at a node.
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

// VolumeMoved tells that a volume is attached or detached, or about to be.
type VolumeMoved struct{ Volume Volume }

// DetachOrdered tells that the manager has ordered to take a volume off its node.
type DetachOrdered struct{ Volume Volume }
