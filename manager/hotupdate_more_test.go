package manager_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// TestAVMThatIsGoneHoldsNoTurn: the others are changed, and it is told of each.
func TestAVMThatIsGoneHoldsNoTurn(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), unexpected(t))
	w.provider.FailNext(codes.UpdateMachine, codes.New(codes.NotFound, "no such VM"))
	w.tag("small", "s", tags{"team": "b"})
	for range 10 {
		w.round(p)
		w.at = w.at.Add(15 * time.Second)
	}
	changed := 0
	for _, vm := range w.provider.VMs() {
		changed += len(vm.Tags)
	}
	require.Equal(t, 2, changed)
	require.Equal(t, 2, w.told(machine.ReasonVMUpdated))
	require.Equal(t, 3, count(w, codes.UpdateMachine))
}

// behindOn is a collection of classes whose cache does not show one yet.
type behindOn struct {
	store.Collection[*machine.Class]
	to string
}

func (b behindOn) Get(ctx context.Context, key object.Key) (*machine.Class, error) {
	if key.Name == b.to {
		return nil, store.ErrNotFound
	}
	return b.Collection.Get(ctx, key)
}

// TestAClassIsReadLiveBeforeARollout: that a cache does not show a new class yet
// costs no machine.
func TestAClassIsReadLiveBeforeARollout(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), unexpected(t))
	p.sync()
	w.classed = func(o *manager.Options, _ *testkit.Fuse) { o.Store.Classes = behindOn{o.Store.Classes, "small-b"} }
	p = w.start(&testkit.Fuse{}, false)
	w.tag("small-b", "s", tags{"team": "b"})
	w.change(func(d *deployment.Deployment) { d.Spec.Template.Spec.Class.Name = "small-b" })
	w.round(p)
	require.Len(t, keysOf(w.sets), 1)
	set, err := w.sets.Get(ctx, keysOf(w.sets)[0])
	require.NoError(t, err)
	require.Equal(t, "small-b", set.Spec.Template.Spec.Class.Name)
}
