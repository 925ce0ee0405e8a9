package drivertest

import "github.com/millwright-go/millwright/codes"

var healthChecks = []check{
	{"of a VM that works is not bad", healthyVM},
	{"of a VM that fails is told by list and status", unhealthyVM},
}

// healthyVM checks every driver: one that can't tell must not call a VM unhealthy.
func healthyVM(r *trial) {
	v := r.created(r.machine())
	r.Settled()
	r.health(v, false)
}

// unhealthyVM makes one of two VMs unhealthy. It must still be found: for the library, NOT_FOUND means
// gone.
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
	r.health(sick, true)
	r.health(well, false)
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

// health requires that list and status say whether a VM is unhealthy. If the driver has neither call,
// the check is not run.
func (r *trial) health(v vm, unhealthy bool) {
	r.Helper()
	lists, answers := r.listHealth(v, unhealthy), r.statusHealth(v, unhealthy)
	if !lists && !answers {
		r.NotRun("the driver has neither %s nor %s", codes.GetMachineStatus, codes.ListMachines)
	}
}

// listHealth requires that ListMachines is right about a VM's health. It returns false if the driver does
// not have the call.
func (r *trial) listHealth(v vm, unhealthy bool) bool {
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

// statusHealth requires that GetMachineStatus is right about a VM's health, twice with the same text. It
// returns false if the driver does not have the call.
func (r *trial) statusHealth(v vm, unhealthy bool) bool {
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
