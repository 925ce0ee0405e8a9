package pooldrivertest

import (
	"slices"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
)

var instanceChecks = []check{
	{"what is declared is there, and nothing else", declares},
	{"deleted are those that were named", removesNamed},
	{"deleting again takes no others", removesOnce},
	{"another group's are not deleted", removesOwn},
	{"replaced is the one that was named, once", replaces},
	{"goes when the provider is told that it is empty", drained},
	{"telling of others changes nothing", drainedOthers},
}

// declared skips the check if the driver does not declare a feature.
func (r *trial) declared(what string, has func(machinepool.Features) bool) {
	r.Helper()
	if !has(pooldriver.FeaturesOf(r.driver)) {
		r.NotRun("the driver does not declare %s", what)
	}
}

func canDelete(f machinepool.Features) bool  { return f.DeleteInstances }
func canReplace(f machinepool.Features) bool { return f.ReplaceInstance }
func canRoll(f machinepool.Features) bool    { return f.RollingUpdate }

func declares(r *trial) {
	p := r.created(r.pool(), 1)
	declared := pooldriver.FeaturesOf(r.driver)
	_, removed := r.removeOf(r.Ctx, p, r.setup.Class, "no-such-instance")
	_, replaced := r.replaceOf(r.Ctx, p, r.setup.Class, "no-such-instance")
	for _, c := range []struct {
		call machinepool.Call
		has  bool
		err  error
	}{
		{machinepool.DeleteInstances, declared.DeleteInstances, removed},
		{machinepool.ReplaceInstance, declared.ReplaceInstance, replaced},
	} {
		if there := codes.Of(c.err) != codes.Unimplemented; there != c.has {
			r.Errorf("%s is declared: %t; it answers %s (%v)", c.call, c.has, codes.Of(c.err), c.err)
		}
	}
	r.has(p, 1, "the group has no such instance")
}

func removesNamed(r *trial) {
	const duty = "the target is lowered by as many as were named"
	r.declared("DeleteInstances", canDelete)
	p := r.created(r.pool(), 4)
	ids := r.has(p, 4, "four were asked for")
	_, err := r.removeOf(r.Ctx, p, r.setup.Class, ids[0], ids[2])
	r.fine(machinepool.DeleteInstances, err)
	if left := r.has(p, 2, duty); !slices.Equal(left, []string{ids[1], ids[3]}) {
		r.Errorf("of the instances %q, %q and %q were to go; left are %q", ids, ids[0], ids[2], left)
	}
	r.account(2, duty)
}

func removesOnce(r *trial) {
	const duty = "instances that are gone already lower no target"
	r.declared("DeleteInstances", canDelete)
	p := r.created(r.pool(), 3)
	ids := r.has(p, 3, "three were asked for")
	for range 3 {
		_, err := r.removeOf(r.Ctx, p, r.setup.Class, ids[1], ids[1])
		r.fine(machinepool.DeleteInstances, err)
	}
	r.has(p, 2, duty)
	r.account(2, duty)
}

func removesOwn(r *trial) {
	const duty = "the instance is another group's"
	r.declared("DeleteInstances", canDelete)
	a, b := r.created(r.pool(), 2), r.created(r.pool(), 2)
	theirs := r.has(b, 2, "two were asked for")
	_, _ = r.removeOf(r.Ctx, a, r.setup.Class, theirs[0])
	r.has(a, 2, duty)
	if left := r.has(b, 2, duty); !slices.Equal(left, theirs) {
		r.Errorf("the instances of another pool were %q and are %q: %s", theirs, left, duty)
	}
}

func replaces(r *trial) {
	const duty = "another instance comes in the place of the one that was named"
	r.declared("ReplaceInstance", canReplace)
	p := r.created(r.pool(), 2)
	ids := r.has(p, 2, "two were asked for")
	var first []string
	for range 2 {
		_, err := r.replaceOf(r.Ctx, p, r.setup.Class, ids[0])
		r.fine(machinepool.ReplaceInstance, err)
		left := r.has(p, 2, duty)
		if slices.Contains(left, ids[0]) || !slices.Contains(left, ids[1]) {
			r.Errorf("of the instances %q, %q was to go; there are %q", ids, ids[0], left)
		}
		if first != nil && !slices.Equal(first, left) {
			r.Errorf("replacing %q again leads from %q to %q: it was gone", ids[0], first, left)
		}
		first = left
	}
	r.account(2, duty)
}

func drained(r *trial) {
	if r.setup.AskDrain == nil {
		r.NotRun("Setup has no AskDrain")
	}
	p := r.created(r.pool(), 2)
	ids := r.has(p, 2, "two were asked for")
	r.setup.AskDrain(ids[0])
	if awaiting := r.awaiting(p); !slices.Equal(awaiting, ids[:1]) {
		r.Errorf("GetPoolStatus says that %q await a drain, not %q", awaiting, ids[:1])
	}
	for range 2 {
		_, err := r.drainedOf(r.Ctx, p, r.setup.Class, ids[0])
		r.fine(machinepool.InstancesDrained, err)
		r.Settled()
		if awaiting := r.awaiting(p); len(awaiting) > 0 {
			r.Errorf("%q still await a drain, though the provider was told that they are empty", awaiting)
		}
	}
}

func (r *trial) awaiting(p *machinepool.Pool) []string {
	r.Helper()
	a, err := r.statusOf(r.Ctx, p, r.setup.Class)
	if err != nil || a == nil {
		r.Fatalf("GetPoolStatus: %v", err)
	}
	var ids []string
	for _, i := range a.Instances {
		if i.AwaitsDrain && !i.Terminating {
			ids = append(ids, i.ProviderID)
		}
	}
	return ids
}

func drainedOthers(r *trial) {
	p := r.created(r.pool(), 2)
	ids := r.has(p, 2, "two were asked for")
	_, err := r.drainedOf(r.Ctx, p, r.setup.Class, ids[0])
	if codes.Of(err) == codes.Unimplemented {
		r.NotRun("the driver has no InstancesDrained")
	}
	r.fine(machinepool.InstancesDrained, err)
	if left := r.has(p, 2, "nobody wanted to remove it"); !slices.Equal(left, ids) {
		r.Errorf("the instances were %q and are %q: nobody wanted to remove any", ids, left)
	}
}
