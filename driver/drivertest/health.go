package drivertest

import "github.com/millwright-go/millwright/codes"

var healthChecks = []check{
	{"of a VM that works is not bad", healthyVM},
	{"of a VM that fails is told by list and status", unhealthyVM},
}

// healthyVM holds for every driver: one that can't tell says nothing.
func healthyVM(r *trial) {
	v := r.created(r.machine())
	r.Settled()
	r.told(v, false)
}

// unhealthyVM has one of two VMs fail. A VM that is stopped is there: the library takes NOT_FOUND for gone.
func unhealthyVM(r *trial) {
	if r.setup.Sicken == nil {
		r.NotRun("Setup has no Sicken")
	}
	sick, well := r.created(r.machine()), r.created(r.machine())
	if r.setup.NeedsInitialization {
		r.initialized(sick)
		r.initialized(well)
	}
	r.Settled()
	r.setup.Sicken(r.Ctx, sick.id)
	r.Settled()
	r.told(sick, true)
	r.told(well, false)
	r.deleted(sick.machine)
	r.Settled()
	list, err := r.list(r.Ctx, r.setup.Class)
	if codes.Of(err) == codes.Unimplemented {
		return
	}
	if err != nil || list == nil {
		r.Fatalf("ListMachines: %v", err)
	}
	for id := range list.Unhealthy {
		if _, listed := list.Machines[id]; !listed {
			r.Errorf("ListMachines says that VM %s is unhealthy, which it does not list", id)
		}
	}
}

// told requires that list and status say, twice, whether a VM is unhealthy. A call that the driver does
// not have says nothing.
func (r *trial) told(v vm, unhealthy bool) {
	r.Helper()
	lists, answers := r.listTells(v, unhealthy), r.statusTells(v, unhealthy)
	if !lists && !answers {
		r.NotRun("the driver has neither %s nor %s", codes.GetMachineStatus, codes.ListMachines)
	}
}

// listTells reports whether the driver has a list, which must be right.
func (r *trial) listTells(v vm, unhealthy bool) bool {
	r.Helper()
	list, err := r.list(r.Ctx, r.setup.Class)
	if codes.Of(err) == codes.Unimplemented {
		return false
	}
	if err != nil || list == nil {
		r.Fatalf("ListMachines: %v", err)
	}
	if list.Unhealthy[v.id] != unhealthy {
		r.Errorf("ListMachines says of VM %s that it is unhealthy: %t, which is wrong", v.id, !unhealthy)
	}
	return true
}

// statusTells reports whether the driver has a status, which must be right, and the same again.
func (r *trial) statusTells(v vm, unhealthy bool) bool {
	r.Helper()
	said := ""
	for range 2 {
		status, err := r.status(r.Ctx, v.machine)
		switch code := codes.Of(err); {
		case code == codes.Unimplemented:
			return false
		case code != codes.OK && code != codes.Uninitialized || status == nil:
			r.Fatalf("GetMachineStatus of a VM that exists: %v", err)
		case (status.Unhealthy != "") != unhealthy:
			r.Errorf("GetMachineStatus says of VM %s that it is unhealthy: %q, which is wrong", v.id, status.Unhealthy)
		case said != "" && status.Unhealthy != said:
			r.Errorf("GetMachineStatus says %q of an unhealthy VM, then %q: it changes only with the VM", said, status.Unhealthy)
		}
		said = status.Unhealthy
	}
	return true
}
