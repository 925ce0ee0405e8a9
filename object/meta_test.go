package object_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/object"
)

func TestKeyString(t *testing.T) {
	assert.Equal(t, "fleet/a", object.Key{Namespace: "fleet", Name: "a"}.String())
	assert.Equal(t, "a", object.Key{Name: "a"}.String())
	assert.Equal(t, "", object.Key{}.String())
}

// Finalizers are a set in order: adding twice adds once, removing takes all.
func TestFinalizers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"a", "b", ""})
		m := object.Meta{Finalizers: rapid.SliceOfN(name, 0, 4).Draw(t, "finalizers")}
		before, f := slices.Clone(m.Finalizers), name.Draw(t, "name")
		m.AddFinalizer(f)
		require.True(t, m.HasFinalizer(f))
		if slices.Contains(before, f) {
			require.Equal(t, before, m.Finalizers)
		} else {
			require.Equal(t, append(before, f), m.Finalizers)
		}
		m.RemoveFinalizer(f)
		require.False(t, m.HasFinalizer(f))
		for _, other := range before {
			require.Equal(t, other != f, m.HasFinalizer(other))
		}
		m.RemoveFinalizer(f)
	})
}

func TestDeleted(t *testing.T) {
	m := object.Meta{}
	assert.False(t, m.Deleted())
	m.DeletedAt = time.Unix(0, 0)
	assert.True(t, m.Deleted())
}

// P17: an empty UID owns nothing, not even an object whose owner has no UID.
func TestOwnedBy(t *testing.T) {
	for _, c := range []struct {
		owner *object.Owner
		uid   string
		want  bool
	}{
		{nil, "u", false},
		{nil, "", false},
		{&object.Owner{UID: "u", Name: "old"}, "u", true},
		{&object.Owner{UID: "u"}, "v", false},
		{&object.Owner{Name: "u"}, "", false},
	} {
		m := object.Meta{Owner: c.owner}
		assert.Equal(t, c.want, m.OwnedBy(c.uid), "%+v", c)
	}
}

func TestCloneMetaSharesNothing(t *testing.T) {
	m := object.Meta{
		Key: object.Key{Namespace: "fleet", Name: "a"}, UID: "u", Version: "3", Generation: 2,
		CreatedAt: time.Unix(1, 0), DeletedAt: time.Unix(2, 0),
		Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"},
		Finalizers: []string{"f"}, Owner: &object.Owner{Kind: "Set", Name: "s", UID: "v"},
	}
	c := m.CloneMeta()
	require.Equal(t, m, c)
	c.Labels["l"], c.Annotations["a"], c.Finalizers[0], c.Owner.Name = "2", "2", "g", "other"
	assert.Equal(t, object.Meta{
		Key: m.Key, UID: "u", Version: "3", Generation: 2, CreatedAt: time.Unix(1, 0), DeletedAt: time.Unix(2, 0),
		Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"},
		Finalizers: []string{"f"}, Owner: &object.Owner{Kind: "Set", Name: "s", UID: "v"},
	}, m)
	assert.Same(t, &m, m.ObjectMeta())
}

// A copy that shares the slice of finalizers gets its own slice when one is
// added or removed.
func TestFinalizersAreReplaced(t *testing.T) {
	m := object.Meta{Finalizers: append(make([]string, 0, 8), "a", "b", "c")}
	one, other, without := m, m, m
	one.AddFinalizer("x")
	other.AddFinalizer("y")
	without.RemoveFinalizer("a")
	assert.Equal(t, []string{"a", "b", "c"}, m.Finalizers)
	assert.Equal(t, []string{"a", "b", "c", "x"}, one.Finalizers)
	assert.Equal(t, []string{"a", "b", "c", "y"}, other.Finalizers)
	assert.Equal(t, []string{"b", "c"}, without.Finalizers)
}

// Removing a finalizer from a copy leaves the original's slice as it was.
func TestCloneMetaFinalizersAreItsOwn(t *testing.T) {
	m := object.Meta{Finalizers: []string{"a", "b", "c"}}
	c := m.CloneMeta()
	c.RemoveFinalizer("a")
	c.AddFinalizer("d")
	assert.Equal(t, []string{"a", "b", "c"}, m.Finalizers)
	assert.Equal(t, []string{"b", "c", "d"}, c.Finalizers)
}
