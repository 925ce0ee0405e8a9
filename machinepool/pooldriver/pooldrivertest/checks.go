package pooldrivertest

import (
	"slices"

	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machinepool"
)

var firstChecks = []check{{"makes the group, and its instances come", createMakes}}

var createChecks = []check{
	{"is idempotent by name", createIsIdempotent},
	{"adopts a group of any size", createAdopts},
	{"makes one group a pool", createMakesOneAPool},
	{"of no instances is a group all the same", createEmpty},
}

func createMakes(r *trial) {
	p := r.created(r.pool(), 3)
	r.has(p, 3, "three were asked for")
	r.account(3, "three were asked for")
}

// createIsIdempotent creates as the library does when an answer was lost: with nothing recorded.
func createIsIdempotent(r *trial) {
	const duty = "creating a pool's group again adopts the one that is there"
	p := r.pool()
	first := r.created(p, 2)
	for range 2 {
		if again := r.created(p, 2); again.Status.GroupID != first.Status.GroupID {
			r.Errorf("group %q is answered at first, then %q: %s", first.Status.GroupID, again.Status.GroupID, duty)
		}
	}
	ids := r.has(first, 2, duty)
	if unnoted := r.has(p, 2, duty); !slices.Equal(ids, unnoted) {
		r.Errorf("the instances are %q, and without ID and note %q: %s", ids, unnoted, duty)
	}
	r.account(2, duty)
}

func createAdopts(r *trial) {
	const duty = "a create resizes nothing: the size may be an autoscaler's"
	p := r.pool()
	r.created(p, 1)
	r.created(p, 4)
	r.has(p, 1, duty)
	r.account(1, duty)
}

func createMakesOneAPool(r *trial) {
	const duty = "each pool has a group of its own"
	a, b := r.created(r.pool(), 1), r.created(r.pool(), 1)
	if a.Status.GroupID == b.Status.GroupID {
		r.Errorf("pools %s and %s were answered the same group %q: %s", a.Name, b.Name, a.Status.GroupID, duty)
	}
	if slices.Equal(r.has(a, 1, duty), r.has(b, 1, duty)) {
		r.Errorf("pools %s and %s share an instance: %s", a.Name, b.Name, duty)
	}
	r.account(2, duty)
}

func createEmpty(r *trial) {
	const duty = "a group of no instances is one"
	p := r.created(r.pool(), 0)
	r.has(p, 0, duty)
	r.account(0, duty)
}

var statusChecks = []check{
	{"of an absent group is NotFound", func(r *trial) {
		_, err := r.statusOf(r.Ctx, r.pool(), r.setup.Class)
		r.missing(machinepool.GetPoolStatus, err, "there is no group")
	}},
	{"changes nothing, and is the same again", func(r *trial) {
		p := r.created(r.pool(), 2)
		first := r.has(p, 2, "nothing has changed")
		for range 2 {
			if again := r.has(p, 2, "nothing has changed"); !slices.Equal(first, again) {
				r.Errorf("the instances are %q at first, then %q", first, again)
			}
		}
		r.account(2, "GetPoolStatus changes nothing")
	}},
}

var scaleChecks = []check{
	{"brings the group to its size, and is idempotent", scales},
	{"to nothing and back", func(r *trial) {
		p := r.created(r.pool(), 2)
		for _, n := range []int32{0, 1} {
			_, err := r.scaleOf(r.Ctx, p, r.setup.Class, n)
			r.fine(machinepool.ScalePool, err)
			r.has(p, n, "that size was asked for")
			r.account(int(n), "that size was asked for")
		}
	}},
	{"leaves other groups alone", func(r *trial) {
		a, b := r.created(r.pool(), 2), r.created(r.pool(), 2)
		_, err := r.scaleOf(r.Ctx, a, r.setup.Class, 1)
		r.fine(machinepool.ScalePool, err)
		r.has(a, 1, "one was asked for")
		r.has(b, 2, "the other pool was scaled")
	}},
	{"of an absent group is NotFound", func(r *trial) {
		_, err := r.scaleOf(r.Ctx, r.pool(), r.setup.Class, 2)
		r.missing(machinepool.ScalePool, err, "there is no group")
		r.account(0, "there is no group")
	}},
}

func scales(r *trial) {
	const duty = "a size is a number of instances: repeated, it changes nothing"
	p := r.created(r.pool(), 2)
	before := r.has(p, 2, "two were asked for")
	for _, n := range []int32{4, 4, 1, 1} {
		_, err := r.scaleOf(r.Ctx, p, r.setup.Class, n)
		r.fine(machinepool.ScalePool, err)
		ids := r.has(p, n, duty)
		r.account(int(n), duty)
		if n == 4 && (!slices.Contains(ids, before[0]) || !slices.Contains(ids, before[1])) {
			r.Errorf("of the instances %q are left %q: growing takes none away", before, ids)
		}
	}
}

var updateChecks = []check{
	{"keeps the size, and is idempotent", updates},
	{"to other bounds of updates replaces nothing", changesBounds},
	{"of an absent group is NotFound", func(r *trial) {
		_, err := r.updateOf(r.Ctx, r.pool(), r.setup.Class)
		r.missing(machinepool.UpdatePool, err, "there is no group")
		r.account(0, "there is no group")
	}},
}

// updates updates to another class if there is one, else to the same class.
func updates(r *trial) {
	const duty = "an update leaves the size alone"
	class := r.setup.Class
	if r.setup.Changed != nil {
		class = r.setup.Changed
	}
	p := r.created(r.pool(), 2)
	for range 2 {
		_, err := r.updateOf(r.Ctx, p, class)
		r.fine(machinepool.UpdatePool, err)
		r.hasOf(p, class, 2, duty)
	}
	r.account(2, duty)
	_, err := r.scaleOf(r.Ctx, p, class, 3)
	r.fine(machinepool.ScalePool, err)
	r.hasOf(p, class, 3, "a group that was updated can grow")
}

func changesBounds(r *trial) {
	const duty = "bounds of an update say nothing about what instances are made from"
	r.declared("RollingUpdate", canRoll)
	p := r.created(r.pool(), 2)
	ids := r.has(p, 2, "two were asked for")
	for _, bounds := range []*machinepool.RollingUpdate{
		{MaxSurge: rollout.IntOrPercent{Value: 1}},
		{MaxUnavailable: rollout.IntOrPercent{Value: 50, Percent: true}},
		nil,
	} {
		p.Spec.RollingUpdate = bounds
		_, err := r.updateOf(r.Ctx, p, r.setup.Class)
		r.fine(machinepool.UpdatePool, err)
		if left := r.has(p, 2, duty); !slices.Equal(left, ids) {
			r.Errorf("the instances were %q and are %q: %s", ids, left, duty)
		}
	}
	r.account(2, duty)
}

var deleteChecks = []check{
	{"of an absent group is OK", func(r *trial) {
		p := r.pool()
		for range 2 {
			_, err := r.deleteOf(r.Ctx, p, r.setup.Class)
			r.fine(machinepool.DeletePool, err)
		}
		r.account(0, "there was nothing")
	}},
	{"removes group and instances, and is idempotent", deletes},
	{"finds the group when no ID was recorded", func(r *trial) {
		p := r.pool()
		r.created(p, 2)
		_, err := r.deleteOf(r.Ctx, p, r.setup.Class)
		r.fine(machinepool.DeletePool, err)
		_, err = r.statusOf(r.Ctx, p, r.setup.Class)
		r.missing(machinepool.GetPoolStatus, err, "DeletePool answered OK")
		r.account(0, "DeletePool answered OK")
	}},
	{"removes what was made with the group", deletesAll},
}

func deletes(r *trial) {
	const duty = "DeletePool answered OK"
	other, p := r.created(r.pool(), 1), r.created(r.pool(), 3)
	for range 2 {
		_, err := r.deleteOf(r.Ctx, p, r.setup.Class)
		r.fine(machinepool.DeletePool, err)
		_, err = r.statusOf(r.Ctx, p, r.setup.Class)
		r.missing(machinepool.GetPoolStatus, err, duty)
		r.account(1, duty)
	}
	r.has(other, 1, "the other pool was deleted")
}

// deletesAll deletes a group that was updated and scaled: what each step has created must be gone, too.
func deletesAll(r *trial) {
	const duty = "a group goes with everything that was made with it"
	if r.setup.Leftovers == nil {
		r.NotRun("Setup has no Leftovers")
	}
	class := r.setup.Class
	if r.setup.Changed != nil {
		class = r.setup.Changed
	}
	p := r.created(r.pool(), 2)
	_, err := r.updateOf(r.Ctx, p, class)
	r.fine(machinepool.UpdatePool, err)
	_, err = r.scaleOf(r.Ctx, p, class, 1)
	r.fine(machinepool.ScalePool, err)
	r.Settled()
	_, err = r.deleteOf(r.Ctx, p, class)
	r.fine(machinepool.DeletePool, err)
	r.nothingLeft(duty)
}
