package engine_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
)

// TestDivide: objects are sorted by their owner after the orders. An adopted object is the owner's, a released one
// has no owner, one that is gone or has another owner is left out, and a failed order changes nothing.
func TestDivide(t *testing.T) {
	of := func(name, uid string) *machine.Machine {
		m := &machine.Machine{Meta: object.Meta{Key: object.Key{Name: name}}}
		if uid != "" {
			m.Owner = &object.Owner{UID: uid}
		}
		return m
	}
	own, free, other := of("own", "me"), of("free", ""), of("other", "you")
	adopted, released, gone, refused := of("adopted", ""), of("released", "me"), of("gone", "me"), of("refused", "")
	out := []engine.Outcome[*machine.Machine]{
		{Before: adopted, After: of("adopted", "me")},
		{Before: released, After: of("released", "")},
		{Before: gone},
		{Before: refused, After: of("refused", "me"), Err: errors.New("conflict")},
	}
	owned, orphans := engine.Divide("me", out, []*machine.Machine{own, adopted, released, gone}, []*machine.Machine{free, other, refused})
	names := func(list []*machine.Machine) (names []string) {
		for _, m := range list {
			names = append(names, m.Name)
		}
		return names
	}
	require.Equal(t, []string{"own", "adopted"}, names(owned))
	require.Equal(t, []string{"released", "free", "refused"}, names(orphans))
}
