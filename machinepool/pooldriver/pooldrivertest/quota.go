package pooldrivertest

import (
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
)

// Checks with a provider whose quota is used up, and with a second process.

var quotaChecks = []check{
	{"that is used up is ResourceExhausted, or a failure of the group", quotaUsedUp},
	{"that is raised brings the group to its size", quotaRaised},
}

var processChecks = []check{
	{"a second one finds, resizes, adopts and deletes what the first made", secondTakesOver},
}

// exhausted uses up the provider's quota, and returns a function that raises it.
func (r *trial) exhausted() (raise func()) {
	r.Helper()
	if r.setup.Exhaust == nil {
		r.NotRun("Setup has no Exhaust")
	}
	restore := r.setup.Exhaust(r.Ctx)
	done := false
	raise = func() {
		if !done && restore != nil {
			done = true
			restore()
		}
	}
	r.Cleanup(raise)
	return raise
}

// quotaUsedUp passes if ScalePool is refused, or if the provider accepts the size and then reports a
// failure in the status.
func quotaUsedUp(r *trial) {
	p := r.created(r.pool(), 1)
	r.exhausted()
	if _, err := r.scaleOf(r.Ctx, p, r.setup.Class, 3); err != nil {
		if got := codes.Of(err); got != codes.ResourceExhausted {
			r.Errorf("ScalePool answers %s, not %s (%v)", got, codes.ResourceExhausted, err)
		}
		r.has(p, 1, "ScalePool answered an error")
		return
	}
	r.Settled()
	a, err := r.statusOf(r.Ctx, p, r.setup.Class)
	switch {
	case err != nil || a == nil:
		r.Errorf("GetPoolStatus of a group that can't grow: %v", err)
	case len(a.Instances) > 1:
		r.NotRun("Setup.Exhaust does not keep a group from growing")
	case a.Failure == "":
		r.Errorf("a group of 3 has %d instances for lack of quota, and neither ScalePool nor the status says so", len(a.Instances))
	}
}

func quotaRaised(r *trial) {
	const duty = "a size that was refused is asked for again"
	p := r.created(r.pool(), 1)
	raise := r.exhausted()
	for range 2 {
		_, _ = r.scaleOf(r.Ctx, p, r.setup.Class, 3)
	}
	raise()
	r.Settled()
	_, err := r.scaleOf(r.Ctx, p, r.setup.Class, 3)
	r.fine(machinepool.ScalePool, err)
	r.has(p, 3, duty)
	r.account(3, duty)
}

func (r *trial) second() pooldriver.Driver {
	r.Helper()
	if r.setup.Again == nil {
		r.NotRun("Setup has no Again")
	}
	return r.setup.Again()
}

func secondTakesOver(r *trial) {
	const duty = "a driver knows of groups what the provider tells, and nothing that another process could not know"
	p := r.pool()
	made := r.created(p, 2)
	r.driver = r.second()
	r.has(made, 2, duty)
	_, err := r.scaleOf(r.Ctx, made, r.setup.Class, 1)
	r.fine(machinepool.ScalePool, err)
	r.has(made, 1, duty)
	if again := r.created(p, 2); again.Status.GroupID != made.Status.GroupID {
		r.Errorf("one driver answers group %q for a pool, a second one then %q: %s", made.Status.GroupID, again.Status.GroupID, duty)
	}
	r.driver = r.second()
	_, err = r.deleteOf(r.Ctx, made, r.setup.Class)
	r.fine(machinepool.DeletePool, err)
	r.account(0, duty)
}
