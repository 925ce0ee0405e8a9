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

// If a process ends between the two writes of a status, the stored object can be read, and its observed
// generation is between the old and the new one.
func TestHalfWrittenStatuses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sets.checkHalfWritten(t, func(s *machineset.Set) *int64 { return &s.Status.ObservedGeneration })
	})
	rapid.Check(t, func(t *rapid.T) {
		deployments.checkHalfWritten(t, func(d *deployment.Deployment) *int64 { return &d.Status.ObservedGeneration })
	})
}

// checkHalfWritten writes only the first of the two patches of a status.
func (k *tested[W, C]) checkHalfWritten(t *rapid.T, observed func(C) *int64) {
	seen := int64(0)
	draw := func(label string) C {
		c := k.blank()
		fill(t, reflect.ValueOf(c).Elem(), label)
		copyStored(c.ObjectMeta(), &object.Meta{})
		k.normalize(c)
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
