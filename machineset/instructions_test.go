package machineset_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machineset"
)

// TestInstructionsThatCountAsSpec: a change of the generation follows each part but what is written
// with the metadata. A copy shares no part.
func TestInstructionsThatCountAsSpec(t *testing.T) {
	parts := map[string]struct {
		set  func(*machineset.Instructions)
		spec bool
	}{
		"Reservation":        {func(i *machineset.Instructions) { i.Reservation.Reserved = 1 }, false},
		"Handover":           {func(i *machineset.Instructions) { i.Handover.Arriving = []string{"a"} }, false},
		"Marks":              {func(i *machineset.Instructions) { i.Marks.Avoid = true }, true},
		"DeletionCandidates": {func(i *machineset.Instructions) { i.DeletionCandidates = []machineset.DeletionCandidate{{Name: "a"}} }, true},
		"PreviousClasses":    {func(i *machineset.Instructions) { i.PreviousClasses = []string{"a"} }, true},
		"SurgeAllowance":     {func(i *machineset.Instructions) { i.SurgeAllowance.Unavailable = 1 }, true},
	}
	all := reflect.TypeFor[machineset.Instructions]()
	require.Len(t, parts, all.NumField())
	for i := range all.NumField() {
		name := all.Field(i).Name
		part, known := parts[name]
		require.True(t, known, name)
		s := &machineset.Set{}
		part.set(&s.Instructions)
		require.False(t, reflect.ValueOf(s.Instructions).Field(i).IsZero(), name)
		require.Equal(t, !part.spec, s.SpecEqual(&machineset.Set{}), name)
		c := s.Clone()
		require.True(t, s.SpecEqual(c), name)
		require.Equal(t, s, c, name)
		if list := reflect.ValueOf(c.Instructions).Field(i); list.Kind() == reflect.Slice {
			require.NotSame(t, reflect.ValueOf(s.Instructions).Field(i).Index(0).Addr().Interface(), list.Index(0).Addr().Interface(), name)
		}
	}
}
