package sim

import (
	"time"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/history"
)

// disturbances are the faults that begin and end again: outages and jumps of the clock.
type disturbances struct {
	*managerClock
	*region
	kubelets *kubelets
}

// begin begins all faults that begin and end by themselves.
func (s *disturbances) begin() {
	if s.hazards.Skew != 0 {
		s.count(ClockSkewed)
	}
	s.spell(func(f *Faults) Spells { return f.ControlOutages }, s.StopControl)
	s.spell(func(f *Faults) Spells { return f.TargetOutages }, s.StopTarget)
	s.spell(func(f *Faults) Spells { return f.ZoneOutages }, func(d time.Duration) { s.StopZone(s.chance(max(len(s.zones), 1)), d) })
	s.spell(func(f *Faults) Spells { return f.ClockJumps }, func(d time.Duration) {
		s.JumpClock(d - s.upTo(2*d))
	})
}

// spell starts a fault again and again, as long as there are faults.
func (s *disturbances) spell(of func(*Faults) Spells, begin func(time.Duration)) {
	every := of(s.hazards).Every
	if every <= 0 {
		return
	}
	s.After(s.upTo(2*every), func() {
		if now := of(s.hazards); now.Every > 0 && !s.faultsStopped {
			begin(s.upTo(now.For))
			s.spell(of, begin)
		}
	})
}

// StopControl makes the control plane's API refuse every call for a while, and report no change.
func (s *disturbances) StopControl(d time.Duration) {
	s.count(ControlOutage)
	s.After(d, s.Span(history.Outage, "the control plane"))
	s.stop(controlAPI, d)
}

// StopTarget does the same to the target cluster's API. If it comes back after more than the 40 s
// that clusters wait, all nodes are silent at first.
func (s *disturbances) StopTarget(d time.Duration) {
	s.count(TargetOutage)
	s.After(d, s.Span(history.Outage, "the target cluster"))
	s.stop(targetAPI, d)
	if d <= nodeGrace {
		return
	}
	s.After(d, func() {
		for _, n := range s.kubelets.nodes.all() {
			s.kubelets.waver(n.Name, s.kubelets.vmOf(n), s.upTo(20*time.Second))
		}
	})
}

// nodeGrace is how long a node may be silent before its cluster records it.
const nodeGrace = 40 * time.Second

// StopZone makes the nodes of a zone silent for a while, and the provider creates no VM there. Each
// class is in a zone of its own; n counts the zones in their order, modulo their number.
func (s *disturbances) StopZone(n int, d time.Duration) {
	if len(s.zones) == 0 {
		return
	}
	zone := s.zones[n%len(s.zones)]
	s.count(ZoneOutage)
	s.After(d, s.Span(history.Outage, "zone "+zone))
	if end := s.Now().Add(d); end.After(s.dark[zone]) {
		s.dark[zone] = end
	}
	if d <= nodeGrace {
		return
	}
	s.After(nodeGrace, func() {
		s.eachIn(zone, func(name, id string) { s.kubelets.ready(name, id, object.Unknown) })
	})
	s.After(d, func() { s.eachIn(zone, s.kubelets.recover) })
}

// end ends the faults that are under way.
func (s *disturbances) end() {
	s.setClock(s.hazards.Skew)
	s.outages, s.dark = [apiCount]downtime{}, map[string]time.Time{}
}
