package drivertest

import "github.com/millwright-go/millwright/codes"

var quotaChecks = []check{
	{"that is used up is ResourceExhausted", quotaUsedUp},
	{"that is raised makes one VM, and leaves nothing behind", quotaRaised},
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

func quotaUsedUp(r *trial) {
	m := r.machine()
	r.exhausted()
	r.refused(attempts[0], m, r.setup.Class, codes.ResourceExhausted)
	r.only(m, "CreateMachine answered an error")
	r.total(0, "CreateMachine answered an error")
}

// quotaRaised repeats a create that was refused: a driver may have created a part of it.
func quotaRaised(r *trial) {
	const duty = "a create that was refused is repeated, and takes up what it made"
	m := r.machine()
	raise := r.exhausted()
	for range 2 {
		if _, err := r.create(r.Ctx, m); err == nil {
			r.NotRun("Setup.Exhaust does not make CreateMachine fail")
		}
	}
	raise()
	r.Settled()
	v := r.created(m)
	r.only(m, duty, v)
	r.total(1, duty)
	r.deleted(v.machine)
	r.gone(v, duty)
	r.total(0, duty)
	r.nothingLeft(duty)
}
