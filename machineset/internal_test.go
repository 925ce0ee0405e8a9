package machineset

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machine"
)

// FuzzOrdinalOf: a name yields an ordinal only if the set gives out that very
// name for it.
func FuzzOrdinalOf(f *testing.F) {
	s := &Set{}
	s.Name, s.UID = "web", "set-1"
	prefix := s.namePrefix()
	for _, n := range []int64{1, 9, 10, 1 << 40, math.MaxInt64} {
		f.Add(s.MachineName(n))
	}
	for _, tail := range []string{"", "0", "01", "+1", "-1", "1_0", "1 ", "9223372036854775808", "x"} {
		f.Add(prefix + tail)
	}
	f.Add("web-1")
	f.Fuzz(func(t *testing.T, name string) {
		n := ordinalOf(prefix, name)
		if n < 0 || n > 0 && s.MachineName(n) != name {
			t.Fatalf("%q was read as %d", name, n)
		}
		digits, ours := strings.CutPrefix(name, prefix)
		if v, err := strconv.ParseUint(digits, 10, 63); ours && n == 0 && err == nil && v > 0 && digits[0] != '0' {
			t.Fatalf("%q was not read", name)
		}
	})
}

// TestSoonestEnding: preserved machines beyond the limit are given up in this order: the one with the least
// time left first, and one whose preservation has not begun last.
func TestSoonestEnding(t *testing.T) {
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	preserved := func(name string, since, until time.Time) *machine.Machine {
		m := &machine.Machine{}
		m.Name, m.Status.Preservation.Since, m.Status.Preservation.Until = name, since, until
		return m
	}
	waiting := preserved("waiting", time.Time{}, time.Time{})
	late, soon := preserved("late", now, now.Add(time.Hour)), preserved("soon", now, now.Add(time.Minute))
	want := []*machine.Machine{soon, late, waiting}
	for _, order := range [][]*machine.Machine{{soon, late, waiting}, {waiting, late, soon}, {late, waiting, soon}} {
		slices.SortFunc(order, soonestEnding)
		require.Equal(t, want, order)
	}
}

// Reasons that tests of this package name.
var (
	ReasonSpecInvalid            = reasonSpecInvalid
	ReasonFailedBeforeReady      = reasonFailedBeforeReady
	ReasonFailedBeforeReadyFirst = reasonFailedBeforeReadyFirst
	ReasonReserve                = reasonReserve
	ReasonSurplus                = reasonSurplus
	ReasonDeleteRequested        = reasonDeleteRequested
	ReasonPaused                 = reasonPaused
	ReasonOddPause               = reasonOddPause
	ReasonMachinePaused          = reasonMachinePaused
	ReasonDeleteExpired          = reasonDeleteExpired
	ReasonClosed                 = reasonClosed
	ReasonPreserving             = reasonPreserving
	ReasonSettled                = reasonSettled
	ReasonNotOurs                = reasonNotOurs
	ReasonSetReleased            = reasonSetReleased
)
