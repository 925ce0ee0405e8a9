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
func (d *situation) readFresh(before string) (plan Plan, busy bool) {
	if d.live() && !d.o.Read.Within(DeleteWithin, d.now) {
		return Plan{ReadLive: true, Why: decision.Why{Reason: reasonReadLive, Detail: before}}, true
	}
	return d.readLive(before)
}
