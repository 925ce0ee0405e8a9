package machineset

import (
	"time"

	"github.com/millwright-go/millwright/decision"
)

// DeleteWithin is how long after a live read ended a set may delete, adopt or release machines
// because of it, or decide to create them. An order goes to a machine, and no write of the set
// guards it: the set may have another size by then. Writes and pushes that take longer end the live
// read, and the set reads live again. A set that gives out names compares and swaps, but those that
// its deployment or an earlier pass gave out are used without a write before.
const DeleteWithin = 10 * time.Second

// readFresh is readLive for what only a fresh live read allows, see DeleteWithin.
func (d *decider) readFresh(before string) (plan Plan, busy bool) {
	if d.live() && !d.fresh() {
		return Plan{ReadLive: true, Why: decision.Why{Reason: reasonReadLive, Detail: before}}, true
	}
	return d.readLive(before)
}

// fresh reports whether the live read ended no longer than DeleteWithin ago. A read that ended in
// the future says that the clock was set back: its age is not known.
func (d *decider) fresh() bool {
	ended := d.o.LiveEnded
	return ended.IsZero() || !ended.After(d.now) && d.now.Before(d.deleteUntil())
}

// deleteUntil is the moment from which on no deletion of this decision may be issued.
func (d *decider) deleteUntil() time.Time {
	ended := d.o.LiveEnded
	if ended.IsZero() {
		ended = d.now
	}
	return ended.Add(DeleteWithin)
}
