package manager_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// TestReachabilityIsAskedForWhereLeaveIs: who may read one namespace asks there,
// and is not frozen by a refusal to tell of another. Without a namespace that of
// a class is asked about, and without a class one that there always is.
func TestReachabilityIsAskedForWhereLeaveIs(t *testing.T) {
	for _, c := range []struct {
		namespace string
		class     string
		asked     string
	}{
		{"mine", "", "mine"}, {"mine", "other", "mine"}, {"", "other", "other"}, {"", "", "default"},
	} {
		machines := &spied{Collection: store.NewMemory[*machine.Machine](nil, manager.MachineIndexes())}
		classes := store.NewMemory[*machine.Class](nil, manager.ClassIndexes())
		if c.class != "" {
			_, err := classes.Create(ctx, &machine.Class{Meta: object.Meta{Key: object.Key{Namespace: c.class, Name: "c"}}})
			require.NoError(t, err)
		}
		m, err := manager.New(manager.Options{
			Store:    manager.Store{Namespace: c.namespace, Machines: machines, Classes: classes},
			Driver:   drivertest.NewMemory(drivertest.MemoryOptions{}),
			Policies: manager.Policies{Safety: safety.DefaultPolicy()},
		})
		require.NoError(t, err)
		for _, r := range m.Reconcilers() {
			if r.Kind() == manager.KindReachability {
				_, err := r.Reconcile(ctx, manager.Fleet)
				require.NoError(t, err)
			}
		}
		require.Contains(t, machines.asked, c.asked)
		require.Len(t, machines.asked, 1)
	}
}

// spied notes the namespaces of what is read live by its name.
type spied struct {
	store.Collection[*machine.Machine]
	asked []string
}

// Live implements store.Collection.
func (s *spied) Live() store.Reader[*machine.Machine] { return spiedLive{s.Collection.Live(), s} }

type spiedLive struct {
	store.Reader[*machine.Machine]
	of *spied
}

// Get implements store.Reader.
func (l spiedLive) Get(ctx context.Context, k object.Key) (*machine.Machine, error) {
	l.of.asked = append(l.of.asked, k.Namespace)
	return l.Reader.Get(ctx, k)
}
