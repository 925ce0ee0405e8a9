package fuzzing

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Decision is a fuzz target of a decision that takes an observation of type O and a policy, and
// returns a plan of type R. No input may end in a panic or an error, change an argument, or give
// another plan the second time.
type Decision[O, P, R any] struct {
	Form Form
	// Policy returns the default policy, a pointer. It replaces an input's policy that does not
	// pass its method Validate, if it has one.
	Policy func() P
	// Whole fills in what every caller of the decision must give. Nil means nothing.
	Whole  func(*O)
	Decide func(*O, P, time.Time) (R, error)
	// Check checks a plan against what is true of every plan. Nil means no more checks.
	Check func(testing.TB, *O, R)
}

// Seed writes an observation that a test has made at a time, with its policy, as an input.
func (d *Decision[O, P, R]) Seed(o *O, p P, now time.Time) []byte { return d.Form.At(now).Encode(p, o) }

// Drawn returns n inputs that the generator of a property test draws at Form.Now, the same each
// time.
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

// Fuzz runs the target on its seeds and on what the fuzzer makes of them.
func (d *Decision[O, P, R]) Fuzz(f *testing.F, seeds ...[]byte) {
	f.Add([]byte{})
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) { d.Run(t, data) })
}

// Run decides once on one input.
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
		t.Fatalf("P27: the same input gives another plan (%v):\n%+v\n%+v", err, plan, again)
	}
	if d.Check != nil {
		d.Check(t, o, plan)
	}
	if !bytes.Equal(before, d.Form.Encode(p, o)) {
		t.Fatalf("the decision changes its arguments: %+v", plan)
	}
}
