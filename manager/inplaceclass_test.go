package manager_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// TestInPlaceWaitsForItsClass: nothing is updated in place to a class from which no machine could be
// created. The deployment says why, and the rollout goes on when that is put right.
func TestInPlaceWaitsForItsClass(t *testing.T) {
	secret := func(name string) *machine.Secret {
		return &machine.Secret{Meta: object.Meta{Key: object.Key{Namespace: namespace, Name: name}}}
	}
	foreign := object.Key{Namespace: "theirs", Name: "boot"}
	for name, c := range map[string]struct {
		class *machine.Class // nil: there is none
		made  *machine.Secret
		why   string
	}{
		"missing":         {why: "class large does not exist"},
		"invalid":         {class: &machine.Class{SecretRef: &object.Key{}}, why: "secretRef.name must not be empty"},
		"secret missing":  {class: &machine.Class{SecretRef: &object.Key{Name: "absent"}}, why: "secret fleet/absent, which does not exist"},
		"secret of other": {class: &machine.Class{SecretRef: &foreign}, why: "classes may not take secrets from namespace theirs"},
		"no user data":    {class: &machine.Class{SecretRef: &object.Key{Name: "empty"}}, made: secret("empty"), why: "hold no userData"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, drivertest.MemoryOptions{})
			w.classed = func(o *manager.Options, _ *testkit.Fuse) { o.Classes.SecretNamespaces = []string{} }
			w.inPlaceFleet()
			p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), unexpected(t))
			good, err := w.classes.Get(ctx, object.Key{Namespace: namespace, Name: "small"})
			require.NoError(t, err)
			large := object.Key{Namespace: namespace, Name: "large"}
			if c.made != nil {
				_, err := w.secrets.Create(ctx, c.made)
				require.NoError(t, err)
			}
			if c.class != nil {
				class := good.Clone()
				class.Meta, class.SecretRef = object.Meta{Key: large}, c.class.SecretRef
				_, err := w.classes.Create(ctx, class)
				require.NoError(t, err)
			}
			w.change(func(d *deployment.Deployment) { d.Spec.Template.Spec.Class.Name = large.Name })
			end := w.at.Add(time.Hour)
			w.until(p, func() bool {
				machines, err := w.machines.List(ctx, store.Query{})
				require.NoError(t, err)
				for _, m := range machines {
					require.Equal(t, "small", m.Spec.Class.Name)
					require.Empty(t, m.Spec.InPlace)
				}
				return !w.at.Before(end)
			}, unexpected(t))
			d, err := w.deployments.Get(ctx, fleetKey)
			require.NoError(t, err)
			require.Contains(t, deployment.Missing(d), c.why)
			require.Contains(t, w.warned[len(w.warned)-1], c.why)

			if err := w.classes.Delete(ctx, large, ""); err != nil {
				require.ErrorIs(t, err, store.ErrNotFound)
			}
			class := good.Clone()
			class.Meta = object.Meta{Key: large}
			_, err = w.classes.Create(ctx, class)
			require.NoError(t, err)
			w.until(p, w.settled(3), unexpected(t))
			require.Len(t, w.made, 3, "no machine was replaced")
			require.Nil(t, w.condition(fleetKey.Name, deployment.ConditionClassInvalid))
		})
	}
}
