package manager_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
)

// TestSecretOfLivingMachinesIsHeld: a secret whose namespace is not allowed any more is held
// for as long as machines or pools of the class are there, which need it to be deleted.
func TestSecretOfLivingMachinesIsHeld(t *testing.T) {
	vault := object.Key{Namespace: "vault", Name: "cloud"}
	for _, used := range []string{"by a machine", "by a pool", "by nobody"} {
		w := newWorld(t, drivertest.MemoryOptions{})
		in := manager.InMemory(w.now)
		_, err := w.secrets.Create(ctx, &machine.Secret{Meta: object.Meta{Key: vault, Finalizers: []string{machine.SecretFinalizer}}})
		require.NoError(t, err)
		class, err := w.classes.Get(ctx, object.Key{Namespace: namespace, Name: "small"})
		require.NoError(t, err)
		class = class.Clone()
		class.CredentialsRef = &vault
		_, err = w.classes.Update(ctx, class)
		require.NoError(t, err)
		w.classed = func(o *manager.Options, _ *testkit.Fuse) {
			o.Classes.SecretNamespaces, o.Classes.Keep, o.Store.Pools = []string{}, true, in.Store.Pools
		}
		switch used {
		case "by a machine":
			w.lone()
		case "by a pool":
			_, err := in.Store.Pools.Create(ctx, &machinepool.Pool{
				Meta: object.Meta{Key: fleetKey}, Spec: machinepool.Spec{Template: machinepool.Template{Class: machine.ClassRef{Name: "small"}}},
			})
			require.NoError(t, err)
		}
		p := w.start(&testkit.Fuse{}, false)
		require.NoError(t, p.pass(manager.KindSecret, vault))
		secret, err := w.secrets.Get(ctx, vault)
		require.NoError(t, err)
		require.Equal(t, used != "by nobody", secret.HasFinalizer(machine.SecretFinalizer), used)
	}
}
