package machineset

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// No machine is created twice. A cache may be stale, and a create may still be in flight when its process
// dies. So a set numbers its machines, and before it creates any, it stores up to which number names are given
// out. If a process finds no machine for a number that is given out and not settled, it creates the same name
// again: "already exists" then means "created". When a create under a name can't be in flight any more, a live
// read made after that time settles the number without a machine.

// scale creates missing machines. Names of an open reservation are used before new ones.
func (d *state) scale() (Plan, bool) {
	short := d.withinQuota(d.withinBackoff(d.short()))
	if d.s.Instructions.Reservation.Reserved > d.s.Instructions.Reservation.Settled {
		return d.finishReservation(short)
	}
	return d.reserve(short)
}

// withinQuota returns how many of the missing machines may be created. Under a strict
// quota they wait until terminating machines are gone.
func (d *state) withinQuota(short int) int {
	room := d.wanted() + d.extra() - d.summary.owned - d.summary.arriving
	if !d.p.StrictQuota || short <= max(0, room) {
		return short
	}
	d.waiting = d.tally(reasonQuota)
	d.waiting.Count = int64(d.summary.owned - d.summary.active)
	return max(0, room)
}

// finishReservation continues an open reservation. If all its names became machines, it is settled. Otherwise
// the other names are used while a create under them is allowed, and given up when no create can be in flight
// any more. In between the set only waits: a machine under a new name could be one too many.
func (d *state) finishReservation(short int) (Plan, bool) {
	unanswered := d.summary.names.unanswered
	if unanswered == 0 {
		return d.finishCreated(short)
	}
	if !d.inFlight() {
		if plan, found := d.readLiveSince(d.reservationOver(), "giving up a reservation"); found {
			return plan, true
		}
		return d.settle(short, decision.Why{
			Reason: reasonSettleLost, Count: unanswered, Number: d.s.Instructions.Reservation.Reserved, For: d.reservedFor(),
		})
	}
	if short > 0 && d.now.Before(d.createUntil()) && d.mayCreate() {
		if plan, found := d.readFresh("creating machines"); found {
			return plan, true
		}
		return d.createMissing(short), true
	}
	d.lookAgain(d.reservationOver())
	if short <= 0 || d.mayCreate() {
		d.waiting = d.tally(reasonUnanswered)
		d.waiting.Count, d.waiting.Number = unanswered, d.s.Instructions.Reservation.Reserved
		d.waiting.For = d.reservationOver().Sub(d.now)
	}
	return Plan{}, false
}

// finishCreated continues a reservation whose names all became machines. If this process knows that, and
// machines are missing, the cache may be behind: it reads live.
func (d *state) finishCreated(short int) (Plan, bool) {
	if short <= 0 && d.mayStayOpen() {
		return Plan{}, false
	}
	if short > 0 && d.remembered() && d.mayCreate() {
		if plan, found := d.readLive("creating machines"); found {
			return plan, true
		}
	}
	return d.settle(short, decision.Why{Reason: reasonSettle, Number: d.s.Instructions.Reservation.Reserved})
}

// remembered reports whether this process knows, without looking at the machines,
// that all names of the open reservation became machines.
func (d *state) remembered() bool { return d.o.Created >= d.s.Instructions.Reservation.Reserved }

// mayStayOpen reports whether a reservation whose names all became machines may stay open until another write
// of the set settles it. This process must know of all its machines, and none may be about to disappear:
// another process would create once more a machine that is gone.
func (d *state) mayStayOpen() bool {
	until := d.s.Instructions.Reservation.At.Add(d.p.SettleWithin)
	if !d.remembered() || d.summary.names.disappearing || !d.inFlight() || !d.now.Before(until) {
		return false
	}
	d.lookAgain(until)
	return true
}

// settleFirst settles a reservation before machines with its names are deleted or released.
func (d *state) settleFirst(plan Plan) Plan {
	if len(plan.Delete)+len(plan.Release) == 0 || !d.allCreated() {
		return plan
	}
	return d.settleOnly()
}

// allCreated reports whether a reservation is open whose names all became machines.
func (d *state) allCreated() bool {
	return d.s.Instructions.Reservation.Reserved > d.s.Instructions.Reservation.Settled && d.summary.names.unanswered == 0
}

// settleOnly settles a reservation whose names all became machines, and opens no other.
func (d *state) settleOnly() Plan {
	plan, _ := d.settle(0, decision.Why{Reason: reasonSettle, Number: d.s.Instructions.Reservation.Reserved})
	return plan
}

// settle settles the open reservation. If more machines are needed, it opens the next one in the same write. It
// needs no live read: machines that a cache shows were created, and a live read might not show them any more.
func (d *state) settle(short int, why decision.Why) (Plan, bool) {
	if short > 0 && d.live() && d.mayCreate() {
		return d.reserve(short)
	}
	changed := d.s.Clone()
	changed.Instructions.Reservation = changed.Instructions.Reservation.Next(0, time.Time{})
	return Plan{Write: &Update{changed}, Why: why}, true
}

// reserve gives out names for missing machines, when all earlier names are settled.
func (d *state) reserve(short int) (Plan, bool) {
	if short <= 0 || !d.mayCreate() {
		return Plan{}, false
	}
	if plan, found := d.readLive("creating machines"); found {
		return plan, true
	}
	n := int64(min(short, d.burst()))
	changed := d.s.Clone()
	changed.Instructions.Reservation = changed.Instructions.Reservation.Next(n, d.stamp())
	why := d.tally(reasonReserve)
	why.Count, why.Number = n, changed.Instructions.Reservation.Reserved
	return Plan{Write: &Update{changed}, Why: why}, true
}

// createMissing orders machines under the lowest names that have no machine yet, and no more than are
// missing: if the set was scaled down meanwhile, the other names stay unused.
func (d *state) createMissing(short int) Plan {
	n := int(min(int64(short), int64(d.burst()), d.summary.names.unanswered))
	why := d.tally(reasonCreate)
	why.Count, why.For = int64(n), d.reservedFor()
	orders := make([]Order, n)
	for i, ordinal := range d.summary.names.missing(d, n) {
		name := d.summary.names.prefix + strconv.FormatInt(ordinal, 10)
		orders[i] = Order{Machine: d.newMachine(name), Ordinal: ordinal, Why: why}
	}
	return Plan{Create: orders, Until: d.createUntil(), Why: why}
}

// createUntil returns until when creates under names of the last reservation are issued.
func (d *state) createUntil() time.Time {
	return d.s.Instructions.Reservation.At.Add(d.p.RequestTimeout)
}

// reservationOver returns the time from which on no create under a name of the last reservation can take
// effect: RequestTimeout after createUntil, and a second more because At is in whole seconds. A reservation
// further in the future than clocks may differ is over.
func (d *state) reservationOver() time.Time {
	at := d.s.Instructions.Reservation.At
	if at.After(d.now.Add(d.p.RequestTimeout)) {
		return time.Time{}
	}
	return at.Add(2*d.p.RequestTimeout + time.Second)
}

// inFlight reports whether a create under a name of the last reservation may
// still take effect.
func (d *state) inFlight() bool { return d.now.Before(d.reservationOver()) }

// reservedFor returns the age of the last reservation.
func (d *state) reservedFor() time.Duration {
	return max(0, d.now.Sub(d.s.Instructions.Reservation.At))
}

// newMachine returns the machine that a set creates under a name.
func (d *state) newMachine(name string) *machine.Machine {
	t := d.s.Spec.Template.Clone()
	return &machine.Machine{
		Meta: object.Meta{
			Key:         object.Key{Namespace: d.s.Namespace, Name: name},
			Labels:      t.Labels,
			Annotations: t.Annotations,
			Finalizers:  []string{machine.Finalizer},
			Owner:       d.owner(),
		},
		Spec: t.Spec,
	}
}

// maxOrdinal is the highest valid ordinal. No set reaches it, and sums of ordinals below it do not overflow.
const maxOrdinal = 1 << 62

// LongestName is how many bytes the name of a set may have so that the names of its
// first ten million machines fit into the 63 bytes of host names and label values (RFC
// 1123). Deployments give their sets names that are short enough. A set with a longer
// name works if the provider accepts the names of its machines.
const LongestName = 63 - len("-") - hashLength - len("-9999999")

// alphabet has no vowels, so that no hash spells a word, and no characters that look alike.
const alphabet = "bcdfghjklmnpqrstvwxz2456789"

// hashLength is how many letters of the alphabet the hash of a set's UID has. The hash is part of machine
// names, so that a set that is created again under an old name gives its machines new names.
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

// namePrefix returns the prefix of the names of all machines that a set creates.
func (s *Set) namePrefix() string { return s.Name + "-" + uidHash(s.UID) + "-" }

// MachineName returns the name of the machine that a set creates as number ordinal,
// from 1: "<set>-<5 letters from its UID>-<ordinal>". No other set gives it out, and no
// set that is created later under the same name (except with a chance of one in 14
// million).
func (s *Set) MachineName(ordinal int64) string {
	return s.namePrefix() + strconv.FormatInt(ordinal, 10)
}

// Named reports whether the set has given out this machine name.
func (s *Set) Named(name string) bool {
	n := ordinalOf(s.namePrefix(), name)
	return n > 0 && n <= s.Instructions.Reservation.Reserved
}

// ordinalOf returns the ordinal in a machine name that begins with prefix. Zero: the set never gives out such a
// name.
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
	prefix       string
	ordinals     []int64 // of machines that exist under such names
	unanswered   int64   // how many names are not known to have become machines
	disappearing bool    // a machine with such a name is being deleted, leaves the set, or has lost its owner
}

// note records the ordinal of a machine with a name of the open reservation. It reports whether the machine has
// such a name.
func (r *openNames) note(d *state, name string) bool {
	n := ordinalOf(r.prefix, name)
	if n > d.answeredUpTo() && n <= d.s.Instructions.Reservation.Reserved {
		r.ordinals = append(r.ordinals, n)
	}
	return n > d.s.Instructions.Reservation.Settled && n <= d.s.Instructions.Reservation.Reserved
}

// answeredUpTo returns the highest ordinal up to which all names are settled or known to have become machines.
func (d *state) answeredUpTo() int64 {
	r := &d.s.Instructions.Reservation
	return min(max(d.o.Created, r.Settled), r.Reserved)
}

// count counts the names of the open reservation that are not known to have become machines, and reports
// whether one of these machines is disappearing. A machine that lost its owner was created, too.
func (r *openNames) count(d *state, leaving map[string]bool) {
	r.prefix = d.s.namePrefix()
	for _, m := range d.o.Machines {
		if m != nil && m.OwnedBy(d.s.UID) && r.note(d, m.Name) {
			r.disappearing = r.disappearing || m.Deleted() || leaving[m.Name]
		}
	}
	for _, m := range d.o.Orphans {
		if m != nil && r.note(d, m.Name) {
			r.disappearing = true
		}
	}
	slices.Sort(r.ordinals)
	r.ordinals = slices.Compact(r.ordinals)
	r.unanswered = d.s.Instructions.Reservation.Reserved - d.answeredUpTo() - int64(len(r.ordinals))
}

// missing returns the n lowest ordinals of the open reservation that are not
// known to have become machines. There are at least n.
func (r *openNames) missing(d *state, n int) []int64 {
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
