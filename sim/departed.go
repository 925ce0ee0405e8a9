package sim

import "github.com/millwright-go/millwright/machine"

// departs records a machine that is gone, if it served and somebody other than the manager deleted
// it.
func (l *ledger) departs(name string) {
	uid := l.uids[name]
	r, known := l.records[uid], l.lives[uid]
	if r != nil && known != nil && known.served && l.excused[uid] {
		l.departed = append(l.departed, r.last)
	}
}

// departed counts machines that are gone and that somebody other than the manager deleted, by the
// UID of their deployment. A machine counts as long as orders may be under way that rely on it.
// owners maps the UIDs of sets to those of their deployments.
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
