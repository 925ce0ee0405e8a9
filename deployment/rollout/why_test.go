package rollout_test

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment/rollout"
)

func TestWhySentences(t *testing.T) {
	for want, why := range map[string]rollout.Why{
		"":      {},
		"Other": {Reason: "Other"},
		"5 machines ordered of the new set, 3 wanted: 2 may go": {
			Reason: rollout.ReasonNewAboveReplicas, Count: 2, Total: 5, Ceiling: 3,
		},
		"9 machines ordered, ceiling is 6: 2 of this set may go": {
			Reason: rollout.ReasonScaleDown, Count: 2, Share: 2, Total: 9, Ceiling: 6,
		},
		"9 machines ordered, ceiling is 6: 3 of this set may go, 2 as its share of the excess": {
			Reason: rollout.ReasonScaleDown, Count: 3, Share: 2, Total: 9, Ceiling: 6,
		},
		"1 machine ordered or still there, ceiling is 3: 2 new machines may come": {
			Reason: rollout.ReasonNewGrows, Count: 2, Total: 1, Ceiling: 3,
		},
		"ceiling is 6: 2 new machines that had to go may stay": {
			Reason: rollout.ReasonNewGrows, Count: 2, Kept: 2, Ceiling: 6,
		},
		"ceiling is 6: 1 new machine that had to go may stay, 2 more may come": {
			Reason: rollout.ReasonNewGrows, Count: 3, Kept: 1, Ceiling: 6,
		},
		"2 of 5 machines available, floor is 4: 1 old machine may go, being unavailable": {
			Reason: rollout.ReasonOldUnavailable, Count: 1, Unavailable: 1, Available: 2, Total: 5, Floor: 4,
		},
		"5 of 5 machines available, floor is 4: 1 old machine may go": {
			Reason: rollout.ReasonOldAvailable, Count: 1, Available: 5, Total: 5, Floor: 4,
		},
		"5 of 6 machines available, floor is 4: 2 old machines may go, 1 of them not available": {
			Reason: rollout.ReasonOldAvailable, Count: 2, Unavailable: 1, Available: 5, Total: 6, Floor: 4,
		},
		"1 set is to be resized":                                   {Reason: rollout.ReasonOrdered, Count: 1},
		"2 sets are to be resized":                                 {Reason: rollout.ReasonOrdered, Count: 2},
		"done: 1 of 1 machine new and available, no old one left":  {Reason: rollout.ReasonDone, Count: 1},
		"no set has the wanted template yet: 1 old machine stays":  {Reason: rollout.ReasonNoNewSet, Count: 1},
		"no set has the wanted template yet: 0 old machines stay":  {Reason: rollout.ReasonNoNewSet},
		"waiting for 1 surplus machine of set web-1 to be removed": {Reason: rollout.ReasonRemoval, Set: "web-1", Count: 1},
		"3 of 4 new machines available: waiting for 1 more of set web-2": {
			Reason: rollout.ReasonNewUnavailable, Set: "web-2", Count: 1, Available: 3, Total: 4,
		},
		"2 of 5 machines available, floor is 4: no old machine may go; " +
			"waiting for 3 machines of new set web-2 to become available": {
			Reason: rollout.ReasonFloor, Set: "web-2", Count: 3, Available: 2, Total: 5, Floor: 4,
		},
	} {
		require.Equal(t, want, why.String())
	}
}

// TestWhyNumbers: the numbers of a reason are those that the decision was made from.
func TestWhyNumbers(t *testing.T) {
	f := fleetOf(5, 1, 1, rollout.Set{Spec: 3, Available: 2}, rollout.Set{Spec: 3, Available: 3})
	orders, why := rollout.Step(f, nil)
	require.Equal(t, rollout.Why{Reason: rollout.ReasonOrdered, Count: 1}, why)
	require.Equal(t, []rollout.Scale{{Name: "old", From: 3, To: 1, Why: rollout.Why{
		Reason: rollout.ReasonOldAvailable, Count: 2, Unavailable: 1, Total: 6, Available: 5, Floor: 4, Ceiling: 6,
	}}}, orders)

	f.Sets[0] = rollout.Set{Name: "old"}
	f.Sets[1].Actual, f.Sets[1].Available = 4, 4
	orders, _ = rollout.Step(f, nil)
	require.Equal(t, []rollout.Scale{{Name: "new", From: 3, To: 5, Why: rollout.Why{
		Reason: rollout.ReasonNewGrows, Count: 2, Kept: 1, Total: 3, Ceiling: 6,
	}}}, orders)
}

// TestEachNumberOfASentenceIsAFigure: for any decision, Figures has each number that String prints.
func TestEachNumberOfASentenceIsAFigure(t *testing.T) {
	number := regexp.MustCompile(`\b\d+\b`)
	tells := func(t *rapid.T, why rollout.Why) {
		figures := make(map[int64]bool)
		for _, n := range why.Figures() {
			figures[n.(int64)] = true
		}
		figures[why.Count-why.Kept] = true // "2 more may come"
		why.Set = ""
		for _, said := range number.FindAllString(why.String(), -1) {
			n, err := strconv.ParseInt(said, 10, 64)
			require.NoError(t, err)
			require.True(t, figures[n], "%s: %d is not in %v", why, n, figures)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		f := terminatingFleets(t)
		for _, decide := range []rule{rollout.Step, rollout.Resize, rollout.Recreate} {
			orders, why := decide(f, nil)
			tells(t, why)
			for _, order := range orders {
				tells(t, order.Why)
			}
		}
	})
}

// TestFiguresNameTheFields: Figures names fields of Why, and leaves out those that the reason does not use.
func TestFiguresNameTheFields(t *testing.T) {
	figures := func(why rollout.Why) map[string]any {
		out := make(map[string]any)
		for name, n := range why.Figures() {
			out[name] = n
		}
		return out
	}
	require.Equal(t, map[string]any{"count": int64(3), "total": int64(5), "available": int64(0), "floor": int64(4)},
		figures(rollout.Why{Reason: rollout.ReasonFloor, Set: "web-2", Count: 3, Total: 5, Floor: 4}), "none available is a figure")
	require.Equal(t, map[string]any{"count": int64(2), "total": int64(0), "ceiling": int64(3)},
		figures(rollout.Why{Reason: rollout.ReasonNewGrows, Count: 2, Ceiling: 3}))
	require.Empty(t, figures(rollout.Why{}))
	for name := range (rollout.Why{Reason: rollout.ReasonFloor}).Figures() {
		require.Equal(t, "count", name)
		break // a caller may stop early
	}
}
