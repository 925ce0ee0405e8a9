package rollout

// giveBack raises old sets that have yet to remove available machines, the youngest first, as long
// as fewer than the floor are available, because other machines have failed since the removal was
// ordered. It makes no set create a machine, and retire takes no other machine instead. If R + S
// machines are ordered already, unavailable old ones make room.
func (d *decision) giveBack() {
	if !d.hasNew {
		return
	}
	ordered, usable := d.totals()
	left, room := d.floor-usable, d.ceiling-ordered
	for i := len(d.old) - 1; i >= 0 && left > 0; i-- {
		m := &d.old[i]
		if m.paused || m.going {
			continue
		}
		k := max(0, min(left, m.available-m.spec))
		room += d.release(k - room)
		k = max(0, min(k, room))
		m.spec += k
		left -= k
		room -= k
	}
}

// release lowers old sets by up to n machines that are not available, the oldest first. It returns
// by how many.
func (d *decision) release(n int64) (released int64) {
	for i := range d.old {
		m := &d.old[i]
		if k := min(n-released, m.lacking()); k > 0 && !m.paused {
			m.spec -= k
			released += k
		}
	}
	return released
}
