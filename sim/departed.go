package sim

import "github.com/millwright-go/millwright/machine"

// departs notes a machine that is gone, if it served and somebody else deleted it.
func (l *ledger) departs(name string) {
	uid := l.uids[name]
	r, known := l.records[uid], l.lives[uid]
	if r != nil && known != nil && known.served && l.excused[uid] {
		l.departed = append(l.departed, r.last)
	}
}

// departed counts machines that somebody else deleted and that are gone, by the UID of their
// deployment, as long as orders may be under way that count on them. owners are the UIDs of
// deployments by those of their sets.
func (w *World) departed(owners map[string]string) map[string]int {
	counts := map[string]int{}
	var recent []*machine.Machine
	for _, m := range w.ledger.departed {
		if m.Deleted() && w.unknown(m.DeletedAt) {
			recent = append(recent, m)
			counts[owners[ownerUID(m)]]++
		}
	}
	w.ledger.departed = recent
	return counts
}
