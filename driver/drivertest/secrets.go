package drivertest

import "github.com/millwright-go/millwright/machine"

var secretChecks = []check{
	{"a missing secret ends no process", missingSecret},
	{"wrong credentials are not shown", wrongCredentials},
}

// missingSecret makes calls without a secret. Any code is accepted.
func missingSecret(r *trial) {
	r.setup.Secret = nil
	m := r.machine()
	r.anyAnswer(m)
}

// wrongCredentials replaces each value of the secret. A driver that ignores it succeeds. Other
// drivers answer an error, which must not contain the values.
func wrongCredentials(r *trial) {
	wrong := &machine.Secret{Data: map[string][]byte{"token": nil, "password": nil, machine.UserData: nil}}
	if r.setup.Secret != nil {
		wrong = r.setup.Secret.Clone()
	}
	for key := range wrong.Data {
		wrong.Data[key] = []byte("wrong-" + key + "-of-" + r.Names)
	}
	r.Hide(wrong, r.setup.Class)
	right := r.setup.Secret
	r.setup.Secret = wrong
	r.anyAnswer(r.machine())
	r.setup.Secret = right
}

// anyAnswer makes each call that takes a secret, so that watch sees the answers.
func (r *trial) anyAnswer(m *machine.Machine) {
	_, _ = r.create(r.Ctx, m)
	_, _ = r.status(r.Ctx, m)
	_, _ = r.initialize(r.Ctx, m)
	_, _ = r.update(r.Ctx, m, r.setup.Class.ProviderSpec, r.setup.Class.ProviderSpec)
	_, _ = r.list(r.Ctx, r.setup.Class)
	_, _ = r.delete(r.Ctx, m)
}
