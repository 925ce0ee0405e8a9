package drivertest

import "github.com/millwright-go/millwright/machine"

var deleteChecks = []check{
	{"of an absent VM is OK", deleteAbsent},
	{"removes the VM, and is idempotent", deleteRemoves},
	{"removes what was made with the VM", deleteRemovesAll},
	{"finds the VM by name when no ID was recorded", deleteByName},
	{"finds the VM of a machine made again under its name", deleteMadeAgain},
	{"that comes late spares a machine made again under its name", deleteLate},
	{"with a provider ID deletes exactly that VM", deleteByID},
	{"with the ID of a VM that is gone spares its namesake", deleteStaleID},
}

func deleteAbsent(r *trial) {
	for range 2 {
		r.deleted(r.machine())
	}
	r.total(0, "there was nothing")
}

func deleteRemoves(r *trial) {
	const duty = "DeleteMachine answered OK"
	other := r.created(r.machine())
	v := r.created(r.machine())
	r.Settled()
	for range 3 {
		r.deleted(v.machine)
		r.gone(v, duty)
	}
	r.present(other, "the other machine's VM was deleted")
	r.total(1, duty)
}

// deleteRemovesAll deletes one VM by its ID and one by its name.
func deleteRemovesAll(r *trial) {
	const duty = "DeleteMachine answered OK, so the VM and all that was made with it is gone"
	if r.setup.Leftovers == nil {
		r.NotRun("Setup has no Leftovers")
	}
	m := r.machine()
	r.created(m)
	v := r.created(r.machine())
	r.Settled()
	r.deleted(m)
	r.deleted(v.machine)
	r.nothingLeft(duty)
}

func deleteByName(r *trial) {
	const duty = "without an ID, DeleteMachine deletes by the machine's name"
	other := r.created(r.machine())
	m := r.machine()
	v := r.created(m)
	r.Settled()
	for range 2 {
		r.deleted(m)
		r.gone(v, duty)
	}
	r.present(other, duty)
	r.total(1, duty)
}

// recreated returns a machine that was created again under the name of m. It gives each a UID.
func (r *trial) recreated(m *machine.Machine) *machine.Machine {
	m.UID = m.Name + "-first"
	again := m.Clone()
	again.UID = m.Name + "-second"
	r.deleteAtEnd(again, r.setup.Class)
	return again
}

// deleteMadeAgain creates a VM for one machine, and then for the next machine of the same name, as
// happens if the first create takes effect late.
func deleteMadeAgain(r *trial) {
	const duty = "CreateMachine adopts a VM of the machine's name, so it is this machine's to delete"
	m := r.machine()
	again := r.recreated(m)
	first := r.created(m)
	r.Settled()
	second := r.created(again)
	if second.id != first.id {
		r.Errorf("VM %q is answered to one machine, then %q to the next of its name: %s", first.id, second.id, duty)
	}
	r.only(again, duty, first)
	r.total(1, duty)
	r.deleted(again)
	r.gone(first, duty)
	r.total(0, duty)
}

// deleteLate repeats a deletion by name after the machine was created again. A driver that does not
// mark VMs with a UID can't tell the two apart: the check is then skipped.
func deleteLate(r *trial) {
	const duty = "a VM that is marked with the UID of another machine is not this one's"
	m := r.machine()
	again := r.recreated(m)
	r.created(m)
	r.Settled()
	r.deleted(m)
	r.Settled()
	v := r.created(again)
	r.Settled()
	r.deleted(m)
	if there, known := r.there(v, r.setup.Class); known && !there {
		r.NotRun("the driver does not mark VMs with their machine's UID: a late delete hits a machine made again under its name")
	}
	r.present(v, duty)
	r.total(1, duty)
}

// deleteByID deletes with the ID of one VM and the name of another VM's machine.
func deleteByID(r *trial) {
	const duty = "a provider ID says which VM to delete, regardless of the name"
	a, b := r.created(r.machine()), r.created(r.machine())
	r.Settled()
	crossed := b.machine.Clone()
	crossed.Spec.ProviderID, crossed.Spec.NodeName = a.id, ""
	r.deleted(crossed)
	r.gone(a, duty)
	r.present(b, duty)
	r.total(1, duty)
}

// deleteStaleID repeats a deletion by ID after another VM was created for the name.
func deleteStaleID(r *trial) {
	const duty = "a provider ID says which VM to delete; that one was gone"
	m := r.machine()
	first := r.created(m)
	r.Settled()
	r.deleted(first.machine)
	r.Settled()
	second := r.created(m)
	if second.id == first.id {
		r.NotRun("the provider gives the ID %q twice", first.id)
	}
	r.Settled()
	r.deleted(first.machine)
	r.present(second, duty)
	r.total(1, duty)
}
