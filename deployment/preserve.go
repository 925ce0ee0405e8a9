package deployment

import (
	"github.com/millwright-go/millwright/deployment/rollout"
)

// Machines that are kept for inspection count towards a fleet's size and are not available. Sets
// delete them last, while a rollout's arithmetic assumes that a set first deletes what is not
// available. So they are set aside: the arithmetic sees a fleet without them, smaller by as many,
// and each set that has them is ordered to have as many more. No more are set aside than are
// wanted. If a fleet shrinks further, they go too.
//
// A rollout therefore leaves them where they are, is complete without them, and replaces them when
// they are not kept any more. Recreate sets aside only those of the new set, because no machine of
// an old template may exist beside it. While paused, Recreate counts those too, because no old set
// may grow beside them.

// setAside computes how many machines of each set the arithmetic must not see: those of the new set
// first, then of the newest.
func (d *summary) setAside() {
	left := max(d.deployment.Spec.Replicas, 0)
	take := func(f *family) {
		f.aside = max(0, min(f.preserved, f.size(), left))
		left -= f.aside
	}
	recreate := d.deployment.Spec.Strategy.Kind == Recreate
	if d.current != nil && !(recreate && d.deployment.Spec.Paused) {
		take(d.current)
	}
	if recreate {
		return
	}
	for i := len(d.sets) - 1; i >= 0; i-- {
		if f := &d.sets[i]; f != d.current {
			take(f)
		}
	}
}

// asideAll returns how many machines are set aside.
func (d *summary) asideAll() (n int32) {
	for i := range d.sets {
		n += d.sets[i].aside
	}
	return n
}

// addAside adds the machines set aside to orders.
func (d *summary) addAside(steps []rollout.Scale) {
	for i := range steps {
		if f := d.resizable(steps[i].Name); f != nil {
			steps[i].From += f.aside
			steps[i].To += f.aside
		}
	}
}

// asideOld returns how many of them are in old sets.
func (d *summary) asideOld() int32 {
	n := d.asideAll()
	if d.current != nil {
		n -= d.current.aside
	}
	return n
}
