package drivertest

import (
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
)

var secretChecks = []check{
	{"a missing secret ends no process", missingSecret},
	{"without its secret no VM is gone", lostSecret},
	{"wrong credentials are not shown", wrongCredentials},
}

// missingSecret makes calls without a secret. Any code is accepted.
func missingSecret(r *trial) {
	r.setup.Secret = nil
	m := r.machine()
	r.anyAnswer(m)
}

// lostSecret asks about a VM, and deletes it, without the secret that it was created with. A driver
// that needs none answers as before. Another driver must not answer that the VM is gone while it
// exists.
func lostSecret(r *trial) {
	const duty = "without the secret a driver answers what it knows, or UNAUTHENTICATED"
	v := r.created(r.machine())
	r.Settled()
	right := r.setup.Secret
	r.setup.Secret = nil
	_, looked := r.status(r.Ctx, v.machine)
	list, listed := r.list(r.Ctx, r.setup.Class)
	_, deleted := r.delete(r.Ctx, v.machine)
	r.setup.Secret = right
	if codes.Of(looked) == codes.NotFound {
		r.Errorf("GetMachineStatus answers %v for VM %s: %s", looked, v.id, duty)
	}
	if listed == nil && list != nil && list.Machines[v.id] == "" {
		r.Errorf("ListMachines answers OK and leaves VM %s out: %s", v.id, duty)
	}
	switch codes.Of(deleted) {
	case codes.OK:
		r.gone(v, "DeleteMachine answered OK")
	case codes.NotFound:
		r.Errorf("DeleteMachine answers %v for VM %s: %s", deleted, v.id, duty)
	default:
		r.present(v, "DeleteMachine answered an error")
	}
}

// wrongCredentials replaces each value of the secret, or makes a secret up. Any answer is accepted that
// does not contain the values.
func wrongCredentials(r *trial) {
	wrong := &machine.Secret{Data: map[string][]byte{"token": nil, "password": nil, machine.UserData: nil}}
	if r.setup.Secret != nil {
		wrong = r.setup.Secret.Clone()
	}
	for key := range wrong.Data {
		wrong.Data[key] = []byte("wrong-" + key + "-of-" + r.Names)
	}
	r.ForbidInAnswers(wrong, r.setup.Class) // from here on, no answer may contain these values
	right := r.setup.Secret
	r.setup.Secret = wrong
	r.anyAnswer(r.machine())
	r.setup.Secret = right
}

// anyAnswer makes each call that takes a secret, so that conformance.Call inspects the answers.
func (r *trial) anyAnswer(m *machine.Machine) {
	_, _ = r.create(r.Ctx, m)
	_, _ = r.status(r.Ctx, m)
	_, _ = r.initialize(r.Ctx, m)
	_, _ = r.update(r.Ctx, m, r.setup.Class.ProviderSpec, r.setup.Class.ProviderSpec)
	_, _ = r.list(r.Ctx, r.setup.Class)
	_, _ = r.delete(r.Ctx, m)
}
