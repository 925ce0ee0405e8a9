package fuzzing

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Decision is a fuzz target for a decision function, which takes an observation of type O and a policy of
// type P, and returns a plan of type R. For every input the function must return a plan without an error
// or a panic, the same plan each time, and it must not change its arguments.
type Decision[O, P, R any] struct {
	Form Form
	// Policy returns a pointer to the default policy. If the policy of an input is invalid, by its method
	// Validate, the default policy is used instead.
	Policy func() P
	// Whole sets the fields of an observation that every caller must set. It may be nil.
	Whole  func(*O)
	Decide func(*O, P, time.Time) (R, error)
	// Check makes further checks of a plan. It may be nil.
	Check func(testing.TB, *O, R)
}

// Seed encodes an observation of a test, made at the time now, and its policy as an input.
func (d *Decision[O, P, R]) Seed(o *O, p P, now time.Time) []byte { return d.Form.At(now).Encode(p, o) }

// Drawn returns n inputs drawn by the generator of a property test, whose time is Form.Now. They are the
// same each time.
func (d *Decision[O, P, R]) Drawn(n int, draw func(*rapid.T) (*O, P)) [][]byte {
	inputs := rapid.Custom(func(t *rapid.T) []byte {
		o, p := draw(t)
		return d.Seed(o, p, d.Form.Now)
	})
	list := make([][]byte, n)
	for i := range list {
		list[i] = inputs.Example(i)
	}
	return list
}

// Fuzz runs the target on seeds, and on the inputs that the fuzzer makes of them.
func (d *Decision[O, P, R]) Fuzz(f *testing.F, seeds ...[]byte) {
	f.Add([]byte{})
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) { d.Run(t, data) })
}

// Run runs the target on one input.
func (d *Decision[O, P, R]) Run(t testing.TB, data []byte) {
	o, p := new(O), d.Policy()
	d.Form.Decode(data, p, o)
	if v, has := any(p).(interface{ Validate() error }); has && v.Validate() != nil {
		p = d.Policy()
	}
	if d.Whole != nil {
		d.Whole(o)
	}
	before := d.Form.Encode(p, o)
	plan, err := d.Decide(o, p, d.Form.Now)
	if err != nil {
		t.Fatalf("%v", err)
	}
	again, err := d.Decide(o, p, d.Form.Now)
	if err != nil || !reflect.DeepEqual(plan, again) {
		t.Fatalf("a second call with the same input returns another plan, P27 (%v):\n%+v\n%+v", err, plan, again)
	}
	if d.Check != nil {
		d.Check(t, o, plan)
	}
	if !bytes.Equal(before, d.Form.Encode(p, o)) {
		t.Fatalf("the decision changes its arguments; its plan: %+v", plan)
	}
}
