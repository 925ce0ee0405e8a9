package drivertest

import (
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
)

var faultChecks = []check{
	{"of a create: the next one adopts, and nothing is left behind", faultyCreates},
	{"of a delete: OK means that the VM is gone", faultyDeletes},
	{"of a status: no VM is taken for gone", faultyStatus},
	{"of a list: no VM is left out", faultyLists},
}

// mostRequests bounds how many requests of one call are made to fail. A call that polls a VM has no
// fixed number of them.
const mostRequests = 12

// eachFault runs the function do again and again. Each time another request of the call fails: first each is
// refused, then each loses its answer. do makes the call once, in a function that it passes to during, and returns
// what during returns: whether the call made the request that was to fail.
func (r *trial) eachFault(call codes.Call, do func(during func(func()) bool) bool) {
	r.Helper()
	if r.setup.Faults == nil {
		r.NotRun("Setup has no Faults")
	}
	for _, kind := range []faultKind{refused, lost} {
		for at := range mostRequests {
			var request string
			met := do(func(attempt func()) bool {
				f := r.setup.Faults.arm(kind, at)
				defer r.setup.Faults.disarm(f)
				attempt()
				request = f.request
				return f.wasMet()
			})
			if r.Failed() {
				r.Logf("request %d of %s, %s, %s", at+1, call, request, kind)
				return
			}
			if !met {
				r.reached(call, at)
				break
			}
		}
	}
}

// reached ends a check in which no request of a call could be made to fail.
func (r *trial) reached(call codes.Call, requests int) {
	r.Helper()
	if requests == 0 {
		r.NotRun("no request of %s goes through Setup.Faults", call)
	}
}

func faultyCreates(r *trial) {
	const duty = "after a create that failed half-way, the next create adopts what the first one made"
	r.eachFault(codes.CreateMachine, func(during func(func()) bool) bool {
		m := r.machine()
		met := during(func() { _, _ = r.create(r.Ctx, m) })
		r.Settled()
		v := r.created(m)
		r.only(m, duty, v)
		r.total(1, duty)
		r.deleted(v.machine)
		r.total(0, duty)
		r.nothingLeft(duty)
		return met
	})
}

// faultyDeletes deletes by ID and by name.
func faultyDeletes(r *trial) {
	const duty = "DeleteMachine answers an error unless it knows that the VM is gone"
	for _, byName := range []bool{false, true} {
		r.eachFault(codes.DeleteMachine, func(during func(func()) bool) bool {
			m := r.machine()
			v := r.created(m)
			if !byName {
				m = v.machine
			}
			r.Settled()
			var err error
			met := during(func() { _, err = r.delete(r.Ctx, m) })
			if err == nil {
				r.gone(v, duty)
				r.total(0, duty)
				r.nothingLeft(duty)
			}
			r.deleted(m)
			r.gone(v, duty)
			r.total(0, duty)
			r.nothingLeft(duty)
			return met
		})
	}
}

// faultyStatus asks by ID and by name.
func faultyStatus(r *trial) {
	m := r.machine()
	v := r.created(m)
	r.Settled()
	_, err := r.status(r.Ctx, m)
	r.supports(codes.GetMachineStatus, err)
	for _, m := range []*machine.Machine{v.machine, m} {
		r.eachFault(codes.GetMachineStatus, func(during func(func()) bool) bool {
			var err error
			met := during(func() { _, err = r.status(r.Ctx, m) })
			if codes.Of(err) == codes.NotFound {
				r.Errorf("GetMachineStatus answers %v for VM %s: a look-up that failed says nothing of the VM", err, v.id)
			}
			return met
		})
	}
}

// faultyLists lists several pages, if Setup says how long one is.
func faultyLists(r *trial) {
	var all []vm
	for range r.setup.PageSize + 1 {
		all = append(all, r.created(r.machine()))
	}
	r.Settled()
	_, err := r.list(r.Ctx, r.setup.Class)
	r.supports(codes.ListMachines, err)
	r.eachFault(codes.ListMachines, func(during func(func()) bool) bool {
		var list *driver.ListMachinesResponse
		var err error
		met := during(func() { list, err = r.list(r.Ctx, r.setup.Class) })
		for _, v := range all {
			if err == nil && list != nil && list.Machines[v.id] == "" {
				r.Errorf("ListMachines answers OK and leaves VM %s out: a list is complete, or an error", v.id)
				break
			}
		}
		return met
	})
}
