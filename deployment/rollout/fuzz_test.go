package rollout_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/test/fuzzing"
)

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "0", "3", "20%", "101%", "2147483647", "2147483648%", "-1", "+1", "1.5", "%", " 1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := rollout.Parse(s)
		if err != nil {
			if v != (rollout.IntOrPercent{}) || !strings.Contains(err.Error(), " is ") {
				t.Fatalf("%q: %+v, refused with %v", s, v, err)
			}
			return
		}
		again, err := rollout.Parse(v.String())
		if err != nil || again != v || v.Value < 0 {
			t.Fatalf("%q: %+v, read again: %+v, %v", s, v, again, err)
		}
	})
}

func FuzzUnmarshalJSON(f *testing.F) {
	for _, s := range []string{"0", "3", `"20%"`, `"3"`, "null", "-1", "1.5", "1e2", `"\u0032%"`, "{}", "[1]", "20%", `"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		var direct, decoded rollout.IntOrPercent
		decodeErr := json.Unmarshal(input, &decoded)
		directErr := direct.UnmarshalJSON(bytes.TrimSpace(input))
		if json.Valid(input) && (decodeErr == nil) != (directErr == nil) {
			t.Fatalf("%q: decoded %v, called directly %v", input, decodeErr, directErr)
		}
		for _, v := range []rollout.IntOrPercent{direct, decoded} {
			encoded, err := json.Marshal(v)
			var again rollout.IntOrPercent
			if err != nil || json.Unmarshal(encoded, &again) != nil || again != v {
				t.Fatalf("%q: %+v, written %s, read again %+v", input, v, encoded, again)
			}
		}
	})
}

// FuzzStep reads numbers of four bytes: replicas, surge, unavailable, the position of the new set, and then for
// each set its size and its existing and available machines.
func FuzzStep(f *testing.F) {
	raw := func(numbers ...int32) (b []byte) {
		for _, n := range numbers {
			b = binary.LittleEndian.AppendUint32(b, uint32(n))
		}
		return b
	}
	const most, least = math.MaxInt32, math.MinInt32
	f.Add(raw())
	f.Add(raw(3, 1, 0, 1, 3, 3, 3, 0, 0, 0))
	f.Add(raw(2, 1, 0, 1, 5, 5, 2, 4, 4, 4, 9, 1, 1))
	f.Add(raw(most, most, most, 0, most, most, most, most, most, most))
	f.Add(raw(least, least, least, least, least, least, least))
	f.Add(raw(0, 0, 0, -1, most, most, most, most, 0, most, most, most, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		next := func() (n int32) {
			if len(b) >= 4 {
				n, b = int32(binary.LittleEndian.Uint32(b)), b[4:]
			}
			return n
		}
		fleet := rollout.Fleet{Replicas: next(), Bounds: rollout.Bounds{Surge: next(), Unavailable: next()}}
		current := next()
		for i := int32(0); len(b) >= 4 && i < 32; i++ {
			fleet.Sets = append(fleet.Sets, rollout.Set{
				Name: strconv.Itoa(int(i)), New: i == current, Spec: next(), Actual: next(), Available: next(),
			})
		}
		orders, why := rollout.Step(fleet, nil)
		if why.String() == "" {
			t.Fatalf("no sentence for %+v", why)
		}
		if what := disagreement(fleet, orders); what != "" {
			t.Fatalf("%s\nfleet  %+v\norders %+v", what, fleet, orders)
		}
		for name, invariant := range invariants {
			if err := invariant(fleet, orders, why); err != nil {
				t.Fatalf("%s: %v\nfleet  %+v\norders %+v", name, err, fleet, orders)
			}
		}
	})
}

// steps are the results of Step and InPlace for one fleet.
type steps struct {
	step, inPlace       []rollout.Scale
	selects             []rollout.Select
	stepWhy, inPlaceWhy rollout.Why
}

// FuzzFleet reads whole fleets: duplicate names, several new sets, sets that are paused, being
// deleted or marked.
// Invariants: P11 P27
func FuzzFleet(f *testing.F) {
	d := fuzzing.Decision[rollout.Fleet, *struct{}, steps]{
		Form:   fuzzing.Form{Words: []string{"", "a", "b", "c"}},
		Policy: func() *struct{} { return &struct{}{} },
		Decide: func(f *rollout.Fleet, _ *struct{}, _ time.Time) (s steps, _ error) {
			s.step, s.stepWhy = rollout.Step(*f, nil)
			s.inPlace, s.selects, s.inPlaceWhy = rollout.InPlace(*f, nil, nil)
			return s, nil
		},
		Check: func(t testing.TB, f *rollout.Fleet, s steps) {
			for _, why := range []rollout.Why{s.stepWhy, s.inPlaceWhy} {
				require.NotEqual(t, string(why.Reason), why.String())
			}
			for _, order := range append(s.step, s.inPlace...) {
				require.NotEqual(t, string(order.Why.Reason), order.Why.String())
				require.True(t, order.To >= 0, "%+v", order)
			}
			for _, selected := range s.selects {
				require.NotEqual(t, string(selected.Why.Reason), selected.Why.String())
				require.Positive(t, selected.Count)
			}
		},
	}
	fleet := func(f rollout.Fleet) []byte { return d.Form.Encode(&struct{}{}, &f) }
	d.Fuzz(f,
		fleet(rollout.Fleet{Replicas: 3, Bounds: rollout.Bounds{Surge: 1}, Sets: []rollout.Set{
			{Name: "a", Spec: 3, Actual: 3, Available: 3, Selectable: 3}, {Name: "b", New: true},
		}}),
		fleet(rollout.Fleet{Replicas: 3, Bounds: rollout.Bounds{Unavailable: 1}, Strict: true, Sets: []rollout.Set{
			{Name: "a", Spec: 2, Actual: 3, Available: 1, Terminating: 1}, {Name: "b", New: true, Spec: 1, Actual: 1, Selected: 1, Chosen: 1},
		}}),
		fleet(rollout.Fleet{Replicas: math.MaxInt32, Bounds: rollout.Bounds{Surge: math.MaxInt32, Unavailable: math.MaxInt32}, Manual: true, Sets: []rollout.Set{
			{Name: "a", Paused: true, Spec: math.MaxInt32, Actual: math.MinInt32}, {Name: "a", New: true, Deleting: true}, {New: true, Selectable: math.MaxInt32},
		}}),
	)
}
