package bolt_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/adapters/bolt"
	"github.com/millwright-go/millwright/object"
)

// window is a kind whose spec shares its times between the versions of an object, because a status
// write leaves the spec alone.
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

// The store must not write to what a stored object shares with its successor, because readers read
// it. The race detector finds such a write.
func TestSharedTimesAreLeftAlone(t *testing.T) {
	windows, err := bolt.OpenKind[*window](open(t, newPath(t)), "window", nil)
	require.NoError(t, err)
	o := &window{Meta: object.Meta{Key: object.Key{Name: "w"}}, Times: []time.Time{now().In(time.FixedZone("", 60))}}
	stored, err := windows.Create(noContext, o)
	require.NoError(t, err)
	require.Equal(t, now(), stored.Times[0])
	wait := begun(func() error {
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
