package manager_test

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// touches change what a refused call is made with, or what stands beside it.
var touches = map[string]func(w *world, value string){
	"machine label": func(w *world, value string) {
		for _, key := range keysOf(w.machines) {
			label(w, w.machines, key, value)
		}
	},
	"machine status": func(w *world, value string) {
		for _, key := range keysOf(w.machines) {
			m, err := w.machines.Get(ctx, key)
			require.NoError(w.t, err)
			m = m.Clone()
			m.Status.LastKnown = value
			_, err = w.machines.UpdateStatus(ctx, m)
			require.NoError(w.t, err)
		}
	},
	"class label":  func(w *world, value string) { label(w, w.classes, smallKey, value) },
	"secret label": func(w *world, value string) { label(w, w.secrets, bootKey, value) },
	"secret made again": func(w *world, _ string) {
		secret, err := w.secrets.Get(ctx, bootKey)
		require.NoError(w.t, err)
		require.NoError(w.t, w.secrets.Delete(ctx, bootKey, secret.UID))
		again := secret.Clone()
		again.UID, again.Version = "", ""
		_, err = w.secrets.Create(ctx, again)
		require.NoError(w.t, err)
	},
}

func label[T object.Object[T]](w *world, c store.Collection[T], key object.Key, value string) {
	o, err := c.Get(ctx, key)
	require.NoError(w.t, err)
	o = o.Clone()
	meta := o.ObjectMeta()
	meta.Labels, meta.Annotations = maps.Clone(meta.Labels), map[string]string{"touched": value}
	if meta.Labels == nil {
		meta.Labels = map[string]string{}
	}
	meta.Labels["touched"] = value
	_, err = c.Update(ctx, o)
	require.NoError(w.t, err)
}

// refusedFor returns how often a call is made in 20 minutes in which it is refused, and what it is
// made with is touched every 10 s.
func refusedFor(t *testing.T, call codes.Call, code codes.Code, touch func(*world, string)) int {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	p := w.start(&testkit.Fuse{}, false)
	if call == codes.DeleteMachine {
		p = w.until(p, w.settled(3), unexpected(t))
		for _, key := range keysOf(w.machines) {
			require.NoError(t, w.machines.Delete(ctx, key, ""))
		}
	}
	w.refuse = func(c driver.CallInfo) error {
		if c.Method == call {
			return codes.New(code, "refused")
		}
		return nil
	}
	begun := w.at
	for n := 0; w.at.Sub(begun) < 19*time.Minute; n++ {
		w.round(p)
		w.at = w.at.Add(10 * time.Second)
		if touch != nil {
			touch(w, w.at.Format("150405"))
		}
	}
	return w.calls[call]
}

// TestP55OnlyAChangeEndsAWait: a refused call waits as long as the table says, though much changes that
// it is not made with. A new value in a secret ends the wait.
func TestP55OnlyAChangeEndsAWait(t *testing.T) {
	for call, code := range map[codes.Call]codes.Code{
		codes.CreateMachine: codes.PreconditionFailed, codes.DeleteMachine: codes.PermissionDenied,
	} {
		calls := refusedFor(t, call, code, nil)
		require.Positive(t, calls)
		for name, touch := range touches {
			require.Equal(t, calls, refusedFor(t, call, code, touch), "%s, with each touched: %s", call, name)
		}
		changed := refusedFor(t, call, code, func(w *world, value string) {
			secret, err := w.secrets.Get(ctx, bootKey)
			require.NoError(t, err)
			secret = secret.Clone()
			secret.Data[machine.UserData] = []byte(value)
			_, err = w.secrets.Update(ctx, secret)
			require.NoError(t, err)
		})
		require.Greater(t, changed, 10*calls, "%s, with each change of the secret", call)
	}
}
