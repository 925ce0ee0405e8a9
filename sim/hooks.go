package sim

import (
	"context"
	"maps"
	"slices"

	"github.com/millwright-go/millwright/machine"
)

// hook puts hooks on machines, from the Nth on.
func (w *World) hook(s *Step, prefix string) {
	all := slices.DeleteFunc(w.machines.all(), (*machine.Machine).Deleted)
	for _, m := range all[min(s.N, len(all)):] {
		w.actions[s.Do]++
		w.hookers.waits[m.UID] = hookWait{prefix + hookName, s.For}
		annotated(w.machines, m, prefix+hookName, "held")
	}
}

// forceDeletion has a person force the Nth deletion that is under way.
func (w *World) forceDeletion(s *Step) {
	all := slices.DeleteFunc(w.machines.all(), func(m *machine.Machine) bool { return !m.Deleted() })
	if len(all) == 0 {
		return
	}
	w.actions[s.Do]++
	m := all[s.N%len(all)].Clone()
	m.Labels = withLabel(maps.Clone(m.Labels), w.machinePolicy().Keys.ForceDeletion, "true")
	_, _ = w.machines.Update(context.Background(), m) // read in the same instant: no conflict
}
