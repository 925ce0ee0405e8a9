package bolt_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/adapters/bolt"
	"github.com/millwright-go/millwright/object"
)

// window is a kind with times in its spec. A status write does not copy the spec, so the versions of an
// object share these times.
type window struct {
	object.Meta
	Times []time.Time
	Count int
}

func (w *window) Clone() *window {
	return &window{Meta: w.CloneMeta(), Times: slices.Clone(w.Times), Count: w.Count}
}
func (w *window) CopyStatus(from *window) { w.Count = from.Count }
func (w *window) SpecEqual(v *window) bool {
	return slices.EqualFunc(w.Times, v.Times, time.Time.Equal)
}

// TestSharedTimesAreLeftAlone: the store must not write to times that versions of an object share, because
// others may read them. The race detector would find such a write.
func TestSharedTimesAreLeftAlone(t *testing.T) {
	windows, err := bolt.OpenKind[*window](open(t, newPath(t)), "window", nil)
	require.NoError(t, err)
	o := &window{Meta: object.Meta{Key: object.Key{Name: "w"}}, Times: []time.Time{now().In(time.FixedZone("", 60))}}
	stored, err := windows.Create(noContext, o)
	require.NoError(t, err)
	require.Equal(t, now(), stored.Times[0])
	wait := start(func() error {
		for range 100 {
			if !stored.Times[0].Equal(now()) {
				break
			}
		}
		return nil
	})
	for next := stored; next.Count < 20; {
		c := next.Clone()
		c.Count++
		next, err = windows.UpdateStatus(noContext, c)
		require.NoError(t, err)
	}
	require.NoError(t, wait())
}
