package machineset

import (
	"strconv"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// situation is what one call of Decide is given, and what all parts of the decision share.
type situation struct {
	o   *Observation
	p   *Policy
	s   *Set
	now time.Time
	// at and waiting are what the plan says if there is nothing to do.
	at      time.Time
	waiting decision.Why
}

// readLive plans a live read if what is known may be stale. busy: it has to be
// carried out before what is named.
func (d *situation) readLive(before string) (plan Plan, busy bool) {
	return d.readLiveSince(time.Time{}, before)
}

// readLiveSince is readLive where a read from before since is stale as well.
func (d *situation) readLiveSince(since time.Time, before string) (plan Plan, busy bool) {
	if d.o.Read.Covers(since) {
		return Plan{}, false
	}
	return Plan{ReadLive: true, Why: decision.Why{Reason: reasonReadLive, Detail: before}}, true
}

// minReady is how long a machine must be ready to count as available.
func (d *situation) minReady() time.Duration {
	if d.p.IgnoreMinReady {
		return 0
	}
	return d.s.Spec.MinReady
}

func (d *situation) live() bool { return d.o.Read.Live() }

// lookAgain makes the next look no later than t.
func (d *situation) lookAgain(t time.Time) {
	if t.Before(d.at) {
		d.at = t
	}
}

// stamp is now as stores keep it.
func (d *situation) stamp() time.Time { return d.now.Truncate(time.Second) }

// wanted is how many machines there should be.
func (d *situation) wanted() int {
	if d.s.Deleted() {
		return 0
	}
	return int(d.s.Spec.Replicas)
}

// owner is the mark of this set on its machines.
func (d *situation) owner() *object.Owner {
	return &object.Owner{Kind: OwnerKind, Name: d.s.Name, UID: d.s.UID}
}

// closed reports whether the deployment has closed the set to new machines.
func (d *situation) closed() bool { return d.s.Owner != nil && d.s.Instructions.Handover.Closed }

// handover is the names on their way as sets, empty where they are to be
// disregarded.
func (d *situation) handover() (arriving, leaving map[string]bool) {
	if d.s.Owner == nil || d.s.Deleted() {
		return nil, nil
	}
	return nameSet(d.s.Instructions.Handover.Arriving), nameSet(d.s.Instructions.Handover.Leaving)
}

// paused reports whether the set is to be left as it is. One that is being
// deleted without our finalizer is not even written.
func (d *situation) paused() bool {
	paused, _ := machine.Paused(&d.s.Meta, d.p.Keys.Paused)
	return paused && !(d.s.Deleted() && !d.s.HasFinalizer(Finalizer))
}

func (d *situation) scaleUpDisabled() bool {
	key := d.p.Keys.ScaleUpDisabled
	if key == "" {
		return false
	}
	disabled, err := strconv.ParseBool(d.s.Labels[key])
	return err == nil && disabled
}
