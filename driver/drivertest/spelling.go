package drivertest

import (
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

var spellingChecks = []check{
	{"of IDs and names is one in create and list", listSpelling},
	{"of IDs and names is one in create and status", statusSpelling},
}

// listSpelling compares the spelling of IDs and names in two calls about one VM. If the calls differ in
// more than that, or fail, other checks report it.
func listSpelling(r *trial) {
	v := r.created(r.machine())
	r.Settled()
	var list *driver.ListMachinesResponse
	var err error
	r.Quiet(func() { list, err = r.list(r.Ctx, r.setup.Class) })
	r.supports(codes.ListMachines, err)
	if list == nil {
		return
	}
	for id, name := range list.Machines {
		r.spelled("ListMachines", "the ID", id, v.id)
		r.spelled("ListMachines", "the machine name", name, v.machine.Name)
	}
}

// statusSpelling asks by ID and by name.
func statusSpelling(r *trial) {
	v := r.created(r.machine())
	r.Settled()
	unrecorded := v.machine.Clone()
	unrecorded.Spec.ProviderID, unrecorded.Spec.NodeName = "", ""
	for _, m := range []*machine.Machine{v.machine, unrecorded} {
		var a *driver.GetMachineStatusResponse
		var err error
		r.Quiet(func() { a, err = r.status(r.Ctx, m) })
		r.supports(codes.GetMachineStatus, err)
		if a != nil {
			r.spelled("GetMachineStatus", "the ID", a.ProviderID, v.id)
			r.spelled("GetMachineStatus", "the node name", a.NodeName, v.node)
		}
	}
}

// spelled requires that a call spells something as CreateMachine did, if it is the same thing.
func (r *trial) spelled(call, what, got, want string) {
	r.Helper()
	if got != want && object.Alike(got, want) {
		r.Errorf("%s gives %s %q, and it is %q since CreateMachine: one spelling in all calls, in case, prefix and slashes. "+
			"The library can't tell such a VM from another one: it leaves it alone, and no orphan of its class is found", call, what, got, want)
	}
}
