package sim

import (
	"time"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/history"
)

// Spells are faults that begin and end again. The zero value has none.
type Spells struct {
	// Every is about how long there is between two. Zero means that there are none.
	Every time.Duration
	// For is the longest that one lasts.
	For time.Duration
}

// faultWindows begins all faults that begin and end by themselves.
func (w *World) faultWindows() {
	w.spell(func(f *Faults) Spells { return f.ControlOutages }, w.StopControl)
	w.spell(func(f *Faults) Spells { return f.TargetOutages }, w.StopTarget)
	w.spell(func(f *Faults) Spells { return f.ZoneOutages }, func(d time.Duration) { w.StopZone(w.chance(max(len(w.zones), 1)), d) })
	w.spell(func(f *Faults) Spells { return f.ClockJumps }, func(d time.Duration) {
		w.JumpClock(d - w.upTo(2*d))
	})
}

// spell starts a fault again and again, as long as there are faults.
func (w *World) spell(of func(*Faults) Spells, begin func(time.Duration)) {
	every := of(&w.o.Faults).Every
	if every <= 0 {
		return
	}
	w.clock.after(w.upTo(2*every), func() {
		if s := of(&w.o.Faults); s.Every > 0 && !w.faultsStopped {
			begin(w.upTo(s.For))
			w.spell(of, begin)
		}
	})
}

// StopControl makes the control plane's API refuse every call for a while, and report no change.
func (w *World) StopControl(d time.Duration) {
	w.count(ControlOutage)
	w.clock.after(d, w.Span(history.Outage, "the control plane"))
	w.stop(control, d)
}

// StopTarget does the same to the target cluster's API. If it comes back after more than the 40 s
// that clusters wait, all nodes are silent at first.
func (w *World) StopTarget(d time.Duration) {
	w.count(TargetOutage)
	w.clock.after(d, w.Span(history.Outage, "the target cluster"))
	w.stop(target, d)
	if d <= nodeGrace {
		return
	}
	w.clock.after(d, func() {
		for _, n := range w.nodes.all() {
			w.waver(n.Name, n.ProviderID, w.upTo(20*time.Second))
		}
	})
}

// nodeGrace is how long a node may be silent before its cluster records it.
const nodeGrace = 40 * time.Second

// waver makes a node that is ready silent for a while.
func (w *World) waver(name, id string, d time.Duration) {
	if !w.ready(name, id, object.Unknown) {
		return
	}
	w.clock.after(d, func() { w.recover(name, id) })
}

// StopZone makes the nodes of a zone silent for a while, and the provider creates no VM there. Each
// class is in a zone of its own; n counts the zones in their order, modulo their number.
func (w *World) StopZone(n int, d time.Duration) {
	if len(w.zones) == 0 {
		return
	}
	zone := w.zones[n%len(w.zones)]
	w.count(ZoneOutage)
	w.clock.after(d, w.Span(history.Outage, "zone "+zone))
	if end := w.clock.now.Add(d); end.After(w.dark[zone]) {
		w.dark[zone] = end
	}
	if d <= nodeGrace {
		return
	}
	w.clock.after(nodeGrace, func() { w.eachIn(zone, func(name, id string) { w.ready(name, id, object.Unknown) }) })
	w.clock.after(d, func() { w.eachIn(zone, w.recover) })
}

// isDark reports whether a zone is out.
func (w *World) isDark(zone string) bool { return w.clock.now.Before(w.dark[zone]) }

func (w *World) eachIn(zone string, do func(name, id string)) {
	for _, vm := range w.provider.VMs() {
		if vm.Size == zone {
			do(vm.Name, vm.ID)
		}
	}
}

// recover makes a node ready again, unless something prevents it.
func (w *World) recover(name, id string) {
	if w.lostNodes[id] || w.isDark(w.zoneOf[id]) {
		return
	}
	w.ready(name, id, object.True)
}
