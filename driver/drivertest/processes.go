package drivertest

import (
	"context"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/conformance"
	"github.com/millwright-go/millwright/machine"
)

// These checks use one provider from two processes, as a second manager does, or the next one after a
// restart.

var processChecks = []check{
	{"a second one adopts and deletes what the first made", secondTakesOver},
	{"creates of one name from two make one VM", secondRaces},
}

func (r *trial) second() driver.Driver {
	r.Helper()
	if r.setup.Again == nil {
		r.NotRun("Setup has no Again")
	}
	return r.setup.Again()
}

func secondTakesOver(r *trial) {
	const duty = "a driver knows of VMs what the provider tells, and nothing that another process could not know"
	second := r.second()
	m := r.machine()
	v := r.created(m)
	r.Settled()
	r.setup.Driver = second
	if again := r.created(m); again.id != v.id {
		r.Errorf("one driver answers VM %q for a machine, a second one then %q: %s", v.id, again.id, duty)
	}
	r.only(m, duty, v)
	r.total(1, duty)
	r.deleted(v.machine)
	r.gone(v, duty)
	r.total(0, duty)
}

const oneVM = "a machine has one VM, also when two processes create it at once; a lock in one of them is none"

// secondRaces lets a second driver create a machine's VM just before a request of the first driver's
// create, for each of its requests in turn. Without Faults, both create at the same time.
func secondRaces(r *trial) {
	second := r.second()
	made := 0
	race := func(do func(m *machine.Machine) bool) bool {
		m := r.machine()
		more := do(m)
		r.Settled()
		made++
		r.only(m, oneVM, r.created(m))
		r.total(made, oneVM)
		return more && !r.Failed()
	}
	if r.setup.Faults == nil {
		for range 4 {
			race(func(m *machine.Machine) bool { r.crowded(m, second); return true })
		}
		return
	}
	at := 0
	for at < mostRequests && race(func(m *machine.Machine) bool { return r.overtaken(m, second, at) }) {
		at++
	}
	if !r.Failed() {
		r.reached(codes.CreateMachine, at)
	}
}

// crowded creates one machine's VM with both drivers at once.
func (r *trial) crowded(m *machine.Machine, second driver.Driver) {
	r.Helper()
	var errs [conformance.Crowd]error
	conformance.Together(func(i int) {
		d := r.setup.Driver
		if i%2 == 1 {
			d = second
		}
		_, errs[i] = r.createBy(r.Ctx, d, m, r.setup.Class)
	})
	for _, err := range errs {
		r.oneOfSeveral(err)
	}
}

// overtaken creates with one driver, and with the second one just before request number at of the
// first. It reports whether the first made that request.
func (r *trial) overtaken(m *machine.Machine, second driver.Driver, at int) bool {
	r.Helper()
	f := r.setup.Faults.arm(held, at)
	defer r.setup.Faults.disarm(f)
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, err = r.create(r.Ctx, m)
	}()
	select {
	case <-f.met:
		// A driver that waits for the other one's request waits in vain, until its context ends.
		ctx, cancel := context.WithTimeout(r.Ctx, r.Patience/4)
		_, err := r.createBy(ctx, second, m, r.setup.Class)
		cancel()
		if codes.Of(err) != codes.DeadlineExceeded {
			r.oneOfSeveral(err)
		}
	case <-ended:
	}
	f.letGo()
	<-ended
	r.oneOfSeveral(err)
	return f.wasMet()
}

// oneOfSeveral requires that one of several concurrent creates succeeded, or left it to another one.
func (r *trial) oneOfSeveral(err error) {
	r.Helper()
	if code := codes.Of(err); code != codes.OK && code != codes.Aborted {
		r.Errorf("CreateMachine answers %s to one of several calls, neither %s nor %s (%v)", code, codes.OK, codes.Aborted, err)
	}
}
