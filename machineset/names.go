package machineset

import (
	"slices"
	"strconv"
	"strings"
)

// maxOrdinal is the highest ordinal that is ever given out: far out of reach,
// and far from overflowing.
const maxOrdinal = 1 << 62

// LongestName is how many bytes the name of a set may have for the names of its
// machines to fit into the 63 that host names and values of labels have (RFC
// 1123), up to the ten-millionth machine. Deployments name their sets so. Sets
// with longer names work, as far as the provider takes the names.
const LongestName = 63 - len("-") - hashLength - len("-9999999")

// alphabet has no vowels, so that no hash spells a word, and nothing that is
// easily mistaken for something else.
const alphabet = "bcdfghjklmnpqrstvwxz2456789"

// hashLength is how many letters of it tell sets of the same name apart: the
// set's UID is in the names of its machines, so that a set made again under an
// old name begins with names of its own.
const hashLength = 5

// The parameters of 64 bit FNV-1a.
const (
	offset64 = 14695981039346656037
	prime64  = 1099511628211
)

func fnv(h uint64, text string) uint64 {
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * prime64
	}
	return h
}

// uidHash is stable: the names of machines that exist depend on it.
func uidHash(uid string) string {
	h := fnv(offset64, uid)
	var letters [hashLength]byte
	for i := range letters {
		letters[i] = alphabet[h%uint64(len(alphabet))]
		h /= uint64(len(alphabet))
	}
	return string(letters[:])
}

// namePrefix is what the names of all machines made by a set begin with.
func (s *Set) namePrefix() string { return s.Name + "-" + uidHash(s.UID) + "-" }

// MachineName returns the name of the machine that a set creates as number ordinal,
// from 1: "<set>-<5 letters from its UID>-<ordinal>". No other set gives it out, and no
// set that is created later under the same name (except with a chance of one in 14
// million).
func (s *Set) MachineName(ordinal int64) string {
	return s.namePrefix() + strconv.FormatInt(ordinal, 10)
}

// Named reports whether the set has given out a name.
func (s *Set) Named(name string) bool {
	n := ordinalOf(s.namePrefix(), name)
	return n > 0 && n <= s.Instructions.Reservation.Reserved
}

// ordinalOf reads the ordinal out of a name that begins with prefix; zero if
// the name is none that a set gives out. A name is made of it and never
// written in any other way, so this parses an identifier, not prose.
func ordinalOf(prefix, name string) int64 {
	digits, ok := strings.CutPrefix(name, prefix)
	if !ok || digits == "" || digits[0] < '1' || digits[0] > '9' {
		return 0
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// openNames are the names of the open reservation, if there is one.
type openNames struct {
	prefix     string
	ordinals   []int64 // of machines with such names
	unanswered int64   // that nothing is known of
	parting    bool    // a machine with such a name is about to go
}

// note remembers that a machine exists under a name of the open
// reservation, and reports whether it has such a name.
func (r *openNames) note(d *situation, name string) bool {
	n := ordinalOf(r.prefix, name)
	if n > d.answeredUpTo() && n <= d.s.Instructions.Reservation.Reserved {
		r.ordinals = append(r.ordinals, n)
	}
	return n > d.s.Instructions.Reservation.Settled && n <= d.s.Instructions.Reservation.Reserved
}

// answeredUpTo is the highest ordinal of which it is known that it, and all
// below, are done with or were created.
func (d *situation) answeredUpTo() int64 {
	r := &d.s.Instructions.Reservation
	return min(max(d.o.Created, r.Settled), r.Reserved)
}

// count finds out how many names of the open reservation may still
// have to become machines, and whether one of those machines is about to go. A
// machine that lost its owner was created, too.
func (r *openNames) count(d *situation, leaving map[string]bool) {
	r.prefix = d.s.namePrefix()
	for _, m := range d.o.Machines {
		if m != nil && m.OwnedBy(d.s.UID) && r.note(d, m.Name) {
			r.parting = r.parting || m.Deleted() || leaving[m.Name]
		}
	}
	for _, m := range d.o.Orphans {
		if m != nil && r.note(d, m.Name) {
			r.parting = true
		}
	}
	slices.Sort(r.ordinals)
	r.ordinals = slices.Compact(r.ordinals)
	r.unanswered = d.s.Instructions.Reservation.Reserved - d.answeredUpTo() - int64(len(r.ordinals))
}

// missing returns the n lowest ordinals of the open reservation that are not
// known to have become machines. There are at least n.
func (r *openNames) missing(d *situation, n int) []int64 {
	out := make([]int64, 0, n)
	seen := r.ordinals
	for ordinal := d.answeredUpTo() + 1; len(out) < n; ordinal++ {
		if len(seen) > 0 && seen[0] == ordinal {
			seen = seen[1:]
			continue
		}
		out = append(out, ordinal)
	}
	return out
}
