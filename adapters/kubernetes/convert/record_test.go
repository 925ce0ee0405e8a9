package convert_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// What a process that ends between the two writes of a status leaves says of each part what was said
// before, or what was to be said; a generation that it claims to have seen, it has seen.
func TestHalfWrittenStatuses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { sets.torn(t, func(s *machineset.Set) *int64 { return &s.Status.ObservedGeneration }) })
	rapid.Check(t, func(t *rapid.T) {
		deployments.torn(t, func(d *deployment.Deployment) *int64 { return &d.Status.ObservedGeneration })
	})
}

func (k *tested[W, C]) torn(t *rapid.T, observed func(C) *int64) {
	seen := int64(0)
	draw := func(label string) C {
		c := k.blank()
		fill(t, reflect.ValueOf(c).Elem(), label)
		copyStored(c.ObjectMeta(), &object.Meta{})
		k.tame(c)
		seen += rapid.Int64Range(0, 2).Draw(t, label+" generations")
		*observed(c) = seen
		return c
	}
	generation := rapid.Int64Range(0, 3).Draw(t, "generation")
	doc := map[string]any{"metadata": map[string]any{"name": "o", "generation": generation}}
	before, after := draw("before"), draw("after")
	doc = k.store(t, doc, before)
	patch, err := k.UpdateNotes(k.typed(t, doc), after)
	require.NoError(t, err)
	if patch == nil {
		return
	}
	half := apply(doc, parse(t, patch))
	read, problems := k.Read(k.typed(t, half))
	require.Empty(t, problems)
	require.LessOrEqual(t, *observed(read), *observed(after))
	require.GreaterOrEqual(t, *observed(read), *observed(before))
	k.store(t, half, after)
}
