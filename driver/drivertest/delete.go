package drivertest

var deleteChecks = []check{
	{"of an absent VM is OK", deleteAbsent},
	{"removes the VM, and is idempotent", deleteRemoves},
	{"finds the VM by name when no ID was recorded", deleteByName},
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

// deleteByID deletes by the ID of one VM under the name of another's machine.
func deleteByID(r *trial) {
	const duty = "a provider ID says which VM to delete, whatever the name"
	a, b := r.created(r.machine()), r.created(r.machine())
	r.Settled()
	crossed := b.machine.Clone()
	crossed.Spec.ProviderID, crossed.Spec.NodeName = a.id, ""
	r.deleted(crossed)
	r.gone(a, duty)
	r.present(b, duty)
	r.total(1, duty)
}

// deleteStaleID repeats a deletion after the name has got another VM.
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
