package drivertest

import (
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/object"
)

var firstChecks = []check{{"answers what the VM is called", createAnswers}}

var createChecks = []check{
	{"is idempotent by name", createIsIdempotent},
	{"makes one VM a name", createMakesOneAName},
	{"refuses a VM that differs", createRefusesDifferent},
}

var noteChecks = []check{{"goes on with and without its note", createTakesItsNote}}

// createAnswers passes if ListMachines or GetMachineStatus shows the VM. Later checks find out whether
// both are right.
func createAnswers(r *trial) {
	const duty = "CreateMachine answered OK, so there is one VM"
	v := r.created(r.machine())
	r.Settled()
	var clear, shows bool // whether a call could tell, and whether one showed the VM
	var list *driver.ListMachinesResponse
	var listed, looked error
	r.Quiet(func() {
		list, listed = r.list(r.Ctx, r.setup.Class)
		_, looked = r.status(r.Ctx, v.machine)
	})
	if listed == nil && list != nil {
		clear = true
		for id, name := range list.Machines {
			shows = shows || object.Alike(id, v.id) || object.Alike(name, v.machine.Name)
		}
	}
	switch codes.Of(looked) {
	case codes.OK, codes.Uninitialized:
		shows = true
	case codes.NotFound:
		clear = true
	}
	if clear && !shows {
		r.Errorf("neither ListMachines nor GetMachineStatus shows VM %s of machine %s: %s", v.id, v.machine.Name, duty)
	}
	lacks := func(err error) bool { return codes.Of(err) == codes.Unimplemented }
	r.blind = r.blind || lacks(listed) && lacks(looked) && r.setup.Count == nil
	r.total(1, duty)
}

// createIsIdempotent creates as the library does when an answer was lost: with
// nothing recorded.
func createIsIdempotent(r *trial) {
	const duty = "creating a machine's VM again adopts the one that is there"
	m := r.machine()
	first := r.created(m)
	r.Settled()
	for range 2 {
		again := r.created(m)
		if again.id != first.id || again.node != first.node {
			r.Errorf("VM %q with node %q is answered at first, then %q with %q: %s",
				first.id, first.node, again.id, again.node, duty)
		}
	}
	r.only(m, duty, first)
	r.total(1, duty)
}

// createTakesItsNote creates again with the note of the first answer stored,
// then looks up and deletes with the note lost.
func createTakesItsNote(r *trial) {
	const duty = "LastKnownState is handed back, and may have been lost"
	m := r.machine()
	first := r.created(m)
	r.Settled()
	noted := m.Clone()
	noted.Status.LastKnown = first.machine.Status.LastKnown
	if again := r.created(noted); again.id != first.id {
		r.Errorf("VM %q is answered at first, then %q: %s", first.id, again.id, duty)
	}
	unnoted := first
	unnoted.machine = first.machine.Clone()
	unnoted.machine.Status.LastKnown = ""
	r.only(unnoted.machine, duty, first)
	r.total(1, duty)
	r.deleted(unnoted.machine)
	r.gone(first, duty)
}

func createMakesOneAName(r *trial) {
	const duty = "each machine has a VM of its own"
	a, b := r.created(r.machine()), r.created(r.machine())
	if a.id == b.id {
		r.Errorf("machines %s and %s were answered the same VM %q: %s", a.machine.Name, b.machine.Name, a.id, duty)
	}
	if a.node == b.node && a.node != "" {
		r.Errorf("machines %s and %s were answered the same node name %q: %s", a.machine.Name, b.machine.Name, a.node, duty)
	}
	r.only(a.machine, duty, a)
	r.only(b.machine, duty, b)
	r.total(2, duty)
}

func createRefusesDifferent(r *trial) {
	const duty = "a VM that differs is neither adopted nor touched"
	if r.setup.Different == nil {
		r.NotRun("Setup has no Different")
	}
	m := r.machine()
	v := r.created(m)
	r.Settled()
	if _, err := r.createOf(r.Ctx, m, r.setup.Different); codes.Of(err) != codes.AlreadyExists {
		r.Errorf("CreateMachine answers %s for a name whose VM differs, not %s (%v)",
			codes.Of(err), codes.AlreadyExists, err)
	}
	r.only(m, duty, v)
	r.total(1, duty)
}
