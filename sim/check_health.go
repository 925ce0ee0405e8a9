package sim

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// p61: a machine is marked failed for its health only if its node was unhealthy for the whole health
// timeout. The timeout starts again after a healthy time that is long enough for a manager to notice.
type p61 struct {
	*World
	nodes map[string]*readinessHistory // by name
}

// readinessHistory is how ready a node was recently.
type readinessHistory struct {
	ill     time.Time // when it became unhealthy, ignoring healthy times too short to notice; zero: never
	healthy time.Time // when it became healthy; zero: it is unhealthy
}

func newP61(w *World) *p61 { return &p61{w, map[string]*readinessHistory{}} }

func (w *p61) see(e event) {
	switch e := e.(type) {
	case stored[*machine.Node]:
		w.record(e.key.Name, e.now != nil && w.isHealthy(e.now))
	case machineFailed:
		w.checkHealth(e.machine)
	}
}

// isHealthy reports whether a node is Ready, and no other condition of the policy is set.
func (w *p61) isHealthy(n *machine.Node) bool {
	ready := object.FindCondition(n.Conditions, machine.NodeReady)
	if ready == nil || ready.Status != object.True {
		return false
	}
	return !slices.ContainsFunc(n.Conditions, func(c object.Condition) bool {
		return c.Status != object.False && slices.Contains(w.machinePolicy().NodeConditions, c.Type)
	})
}

// record records whether a node is healthy now.
func (w *p61) record(node string, healthy bool) {
	s := w.nodes[node]
	if s == nil {
		s = &readinessHistory{}
		w.nodes[node] = s
	}
	if !healthy && (s.ill.IsZero() || w.noticed(s.healthy)) {
		s.ill = w.Now()
	}
	trackSince(&s.healthy, w.Now(), healthy)
}

// noticed reports whether a manager had the time to notice a state that holds since the time then.
func (w *p61) noticed(then time.Time) bool {
	return !then.IsZero() && w.Now().Sub(then) > inFlight+w.hangTime() && !w.unknown(then.Add(w.hangTime()))
}

func (w *p61) checkHealth(m *machine.Machine) {
	s := w.nodes[m.Name]
	if s == nil || w.lives[m.UID].phase != machine.PhaseUnknown || w.belated || w.faults[ClockJump] > 0 || w.pausedSince(m.Name, s.ill) {
		return
	}
	timeout := w.machinePolicy().HealthTimeout
	if own := m.Spec.Config.HealthTimeout; own > 0 {
		timeout = own
	}
	switch ill := w.Now().Sub(s.ill); {
	case w.noticed(s.healthy):
		w.violate("P61", "machine %s was marked failed, but its node has been healthy for %s", m.Name, w.Now().Sub(s.healthy))
	case ill < timeout-time.Second: // times are stored in whole seconds
		w.violate("P61", "machine %s was marked failed when its node had been unhealthy for %s; the health timeout is %s", m.Name, ill, timeout)
	}
}
