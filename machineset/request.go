package machineset

import (
	"strconv"

	"github.com/millwright-go/millwright/machine"
)

// A machine whose annotation asks for it (Keys.Replace) is replaced: another is
// created first, where the surge allowance has room for it, and it is deleted once
// availability permits. Nothing is remembered: while such machines are there, the
// set wants as many more as may exist besides. As soon as the set can do without
// one of them, it deletes that one.

// surgeAllowance is what holds for the set.
func (d *situation) surgeAllowance() SurgeAllowance {
	s := d.s.Instructions.SurgeAllowance
	if s == (SurgeAllowance{}) && d.s.Owner == nil {
		return SurgeAllowance{Surge: 1}
	}
	return SurgeAllowance{max(0, s.Surge), max(0, s.Unavailable)}
}

// Requested reports whether an annotation of the key asks for the machine to be
// replaced.
func Requested(m *machine.Machine, key string) bool {
	text, ok := m.Annotations[key]
	if !ok || key == "" {
		return false
	}
	yes, err := strconv.ParseBool(text)
	return err == nil && yes
}

// requests are the machines that are to be replaced.
type requests struct {
	available, others lowest // each in the deletion order
	count, ready      int    // of all, and of those available
}

func (r *requests) limit(n int) { r.available.limit, r.others.limit = n, n }

// toReplace reports whether an active machine is to be replaced on request. A template
// that asks for it would never come to an end, and is not listened to.
func (d *situation) toReplace(m *machine.Machine) bool {
	key := d.p.Keys.Replace
	return Requested(m, key) && !d.explicit(m) && d.s.Spec.Template.Annotations[key] == "" && d.surgeAllowance() != (SurgeAllowance{})
}

func (r *requests) add(m ranked, available bool) {
	r.count++
	list := &r.others
	if available {
		r.ready++
		list = &r.available
	}
	list.offer(m)
}
