package machineset

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machine"
)

// Of machines that are kept beyond the limit, the one with the least time left is let go first, and
// one whose time has not begun last.
func TestSoonestOver(t *testing.T) {
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	kept := func(name string, since, until time.Time) *machine.Machine {
		m := &machine.Machine{}
		m.Name, m.Status.Preservation.Since, m.Status.Preservation.Until = name, since, until
		return m
	}
	waiting := kept("waiting", time.Time{}, time.Time{})
	late, soon := kept("late", now, now.Add(time.Hour)), kept("soon", now, now.Add(time.Minute))
	want := []*machine.Machine{soon, late, waiting}
	for _, order := range [][]*machine.Machine{{soon, late, waiting}, {waiting, late, soon}, {late, waiting, soon}} {
		slices.SortFunc(order, soonestOver)
		require.Equal(t, want, order)
	}
}
