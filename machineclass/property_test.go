package machineclass_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineclass"
	"github.com/millwright-go/millwright/test/fuzzing"
)

// othersAct draws one change by another program, a restart, or a minute that passes.
func (w *world) othersAct(t *rapid.T) {
	switch rapid.IntRange(0, 9).Draw(t, "event") {
	case 0, 1:
		holder := rapid.SampledFrom([]machineclass.Holder{
			machineclass.HolderDeployment, machineclass.HolderSet, machineclass.HolderMachine,
		}).Draw(t, "holder")
		ref := rapid.SampledFrom([]machine.ClassRef{ours, {Name: "small"}, blue, blue, green}).Draw(t, "kind")
		w.use(holder, fmt.Sprint("u", len(w.text.String())), ref)
	case 2, 3:
		if n := len(w.users); n > 0 {
			i := rapid.IntRange(0, n-1).Draw(t, "goes")
			w.users = append(w.users[:i], w.users[i+1:]...)
		}
	case 4:
		if w.class != nil && !w.class.Deleted() {
			w.delete()
		}
	case 5:
		if w.class == nil {
			w.class = plain()
			w.class.Version = fmt.Sprint("new", len(w.text.String()))
		}
	case 6:
		w.old = &oldClass{ref: blue, size: rapid.SampledFrom([]string{"s", "m"}).Draw(t, "size"), version: len(w.text.String())}
	case 7:
		w.answer = rapid.SampledFrom([]codes.Code{codes.OK, codes.OK, codes.Internal, codes.Unimplemented}).Draw(t, "answer")
	case 8:
		w.lastFailure = nil // a restart
	case 9:
		w.now = w.now.Add(time.Minute)
	}
}

// delete deletes the class. Without finalizers it is gone at once.
func (w *world) delete() {
	w.class = deleted(w.class)
	w.class.Version += "d"
	if len(w.class.Finalizers) == 0 {
		w.class = nil
	}
}

// TestKeptWhileUsed: caches are arbitrarily old, processes are killed, and other programs write at
// any time. The finalizer is removed only after a live read in the same pass has shown that no object
// uses the class. Once the faults stop, the class has the finalizer if and only if an object uses it,
// and writes stop (P26, P28).
// Invariants: P28
func TestKeptWhileUsed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		w.policy.Migrate = rapid.Bool().Draw(t, "migrates")
		check := func(o *machineclass.Observation, plan *machineclass.Plan) {
			w.checkWrite(t, o, plan)
			w.checkOrder(t, o, plan)
		}
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			w.othersAct(t)
			if rapid.Bool().Draw(t, "caches look") {
				w.refreshCaches()
			}
			w.killAt = rapid.IntRange(0, 8).Draw(t, "dies")
			w.pass(false, check)
		}
		w.settle(t, check)
	})
}

// checkWrite checks that a write only makes allowed changes of finalizers.
func (w *world) checkWrite(t *rapid.T, o *machineclass.Observation, plan *machineclass.Plan) {
	u, ok := plan.Write.(*machineclass.Update)
	if !ok {
		return
	}
	released := o.Class.HasFinalizer(machine.Finalizer) && !u.Class.HasFinalizer(machine.Finalizer)
	if released && (len(w.users) > 0 || !o.Read.Live()) {
		t.Fatalf("released with %d users, live read: %v\n%s", len(w.users), o.Read.Live(), w.text)
	}
	if o.Class.Deleted() && len(u.Class.Finalizers) > len(o.Class.Finalizers) {
		t.Fatalf("a finalizer is added to a deleted class\n%s", w.text)
	}
}

// checkOrder checks the order of a migration: filled, then marked, then moved.
func (w *world) checkOrder(t *rapid.T, o *machineclass.Observation, plan *machineclass.Plan) {
	switch e := plan.Effect.(type) {
	case machineclass.MarkOld:
		if o.Filled == nil || o.Filled.Code != codes.OK {
			t.Fatalf("the older class is marked before ours was filled from it\n%s", w.text)
		}
	case *machineclass.Move:
		if w.old != nil && w.old.ref == e.References[0].Class && !w.old.migrated {
			t.Fatalf("references are moved before the mark\n%s", w.text)
		}
	}
}

// settle stops the faults, runs passes, and checks the final state.
func (w *world) settle(t *rapid.T, check func(*machineclass.Observation, *machineclass.Plan)) {
	w.killAt, w.answer, w.lastFailure = 0, codes.OK, nil
	for range 10 {
		w.refreshCaches()
		w.pass(false, check)
	}
	writes, fillCalls := w.writes, w.fillCalls
	for range 3 {
		w.refreshCaches()
		w.now = w.now.Add(time.Hour)
		w.pass(false, check)
	}
	if w.writes != writes || w.fillCalls != fillCalls && w.migratable() {
		t.Fatalf("P28: writes or Fill calls go on although nothing changes\n%s", w.text)
	}
	w.checkEnd(t)
	if !w.migratable() {
		return
	}
	if w.class == nil || !w.old.migrated {
		t.Fatalf("a class that could be migrated was not\n%s", w.text)
	}
	for _, u := range w.users {
		if u.ref.Foreign() {
			t.Fatalf("%s %s still refers to the older class\n%s", u.holder, u.name, w.text)
		}
	}
}

// checkEnd checks that the finalizer of the class is right for its users.
func (w *world) checkEnd(t *rapid.T) {
	switch c := w.class; {
	case c == nil:
	case c.Deleted() && len(w.users) == 0:
		t.Fatalf("a deleted class that nobody uses still exists\n%s", w.text)
	case !c.Deleted() && c.HasFinalizer(machine.Finalizer) != (len(w.users) > 0):
		t.Fatalf("%d users, finalizers %v\n%s", len(w.users), c.Finalizers, w.text)
	}
}

// migratable reports whether an object refers to the older class and no object to one of a third kind, so
// that the older class must be migrated.
func (w *world) migratable() bool {
	wanted := false
	for _, u := range w.users {
		if u.ref == green {
			return false
		}
		wanted = wanted || u.ref == blue
	}
	return w.policy.Migrate && w.old != nil && wanted
}

// TestP26MigrationKilledAnywhere kills the process before and after each call of a migration, and
// starts again. The migration ends as it does without the kill, and no write is repeated.
// Invariants: P26
func TestP26MigrationKilledAnywhere(t *testing.T) {
	build := func() *world {
		w := newWorld()
		w.old = &oldClass{ref: blue, size: "s"}
		w.use(machineclass.HolderDeployment, "web", blue)
		w.use(machineclass.HolderSet, "web-1", blue)
		w.use(machineclass.HolderMachine, "a", blue)
		w.use(machineclass.HolderMachine, "b", ours)
		w.refreshCaches()
		return w
	}
	undisturbed := build()
	done, _ := undisturbed.pass(false, nil)
	require.Equal(t, settled, done)
	require.Equal(t, 4, undisturbed.writes, "one class, three references")
	require.Equal(t, "blue", undisturbed.class.Provider)
	require.Equal(t, "BlueClass.blue.example", undisturbed.class.Annotations[machineclass.MigratedFrom])
	require.True(t, undisturbed.old.migrated)
	for n := 1; ; n++ {
		w := build()
		w.killAt = n
		if done, _ := w.pass(false, nil); done == settled {
			require.Greater(t, n, 10, "calls")
			return
		}
		for range 2 {
			w.refreshCaches()
			done, _ := w.pass(false, nil)
			require.Equal(t, settled, done)
		}
		require.Equal(t, 4, w.writes, "killed at call %d\n%s", n, w.text)
		w.class.Version, undisturbed.class.Version = "", ""
		require.Equal(t, undisturbed.class, w.class)
		require.Equal(t, undisturbed.old, w.old)
		require.Equal(t, undisturbed.users, w.users)
	}
}

// TestOwnersChangesStay: after the migration the owner may change our class, and a late reference does
// not make the driver fill it again. A class that is gone is filled again.
func TestOwnersChangesStay(t *testing.T) {
	w := newWorld()
	w.old = &oldClass{ref: blue, size: "s"}
	w.use(machineclass.HolderMachine, "a", blue)
	w.reconcile("migrated")
	w.class = w.class.Clone()
	w.class.ProviderSpec = []byte("the owner's")
	w.use(machineclass.HolderMachine, "b", blue)
	w.reconcile("a late reference")
	require.Equal(t, "the owner's", string(w.class.ProviderSpec))
	require.Equal(t, 1, w.fillCalls)
	require.False(t, w.users[1].ref.Foreign())

	w.class = nil
	w.use(machineclass.HolderMachine, "c", blue)
	w.reconcile("the class is gone, and a machine refers to the older one")
	require.NotNil(t, w.class)
	require.Equal(t, 2, w.fillCalls)
}

// TestFilledBadly: if the driver returns an unusable class, it is not stored, and the plan warns.
func TestFilledBadly(t *testing.T) {
	o := &machineclass.Observation{
		Key: key, References: []machineclass.Reference{{Holder: machineclass.HolderMachine, Class: blue}},
		Old: &machineclass.Old{Found: true, Version: "1"},
	}
	bad := plain()
	bad.NodeTemplate = &machine.NodeShape{VirtualCapacity: map[string]string{"": "1"}}
	for _, filled := range []*machine.Class{nil, {}, bad} {
		o.Filled = &machineclass.Filled{Class: filled}
		plan, err := machineclass.Decide(o, &machineclass.Policy{Migrate: true}, start)
		require.NoError(t, err)
		require.Equal(t, machineclass.ReasonFilledBadly, plan.Why.Reason)
		require.Equal(t, plan.Why, plan.Warn)
		require.Equal(t, start.Add(3*time.Minute), plan.At)
	}
}

// TestWhatIsStored: of a class that the driver has filled, only the spec is stored. A class that is
// complete already still gets annotation MigratedFrom. One that is being deleted gets no finalizer.
func TestWhatIsStored(t *testing.T) {
	filled := plain()
	filled.Version, filled.Labels = "the driver's", map[string]string{"a": "the driver's"}
	o := &machineclass.Observation{
		Key: key, Class: plain(), References: []machineclass.Reference{{Holder: machineclass.HolderMachine, Class: blue}},
		Old: &machineclass.Old{Found: true}, Filled: &machineclass.Filled{Class: filled},
	}
	policy := &machineclass.Policy{Keep: true, Migrate: true}
	want := plain()
	want.Annotations = map[string]string{machineclass.MigratedFrom: "BlueClass.blue.example"}
	want.AddFinalizer(machine.Finalizer)
	plan, err := machineclass.Decide(o, policy, start)
	require.NoError(t, err)
	require.Equal(t, &machineclass.Update{Class: want}, plan.Write)

	o.Class.DeletedAt, want.DeletedAt, want.Finalizers = start, start, nil
	plan, err = machineclass.Decide(o, policy, start)
	require.NoError(t, err)
	require.Equal(t, &machineclass.Update{Class: want}, plan.Write)

	o.Class, want = nil, want.Clone()
	want.DeletedAt, want.Version = want.CreatedAt, ""
	plan, err = machineclass.Decide(o, &machineclass.Policy{Migrate: true}, start)
	require.NoError(t, err)
	require.Equal(t, &machineclass.Create{Class: want}, plan.Write)
}

// TestAStoreThatChangesWhatItGets: a class is stored once a pass, even if the store returns
// something else.
func TestAStoreThatChangesWhatItGets(t *testing.T) {
	filled := plain()
	filled.ProviderSpec = []byte("as filled")
	o := &machineclass.Observation{
		Key: key, Class: plain(), References: []machineclass.Reference{{Holder: machineclass.HolderMachine, Class: blue}},
		Old: &machineclass.Old{Found: true}, Filled: &machineclass.Filled{Class: filled}, Stored: true,
	}
	plan, err := machineclass.Decide(o, &machineclass.Policy{Migrate: true}, start)
	require.NoError(t, err)
	require.IsType(t, machineclass.MarkOld{}, plan.Effect)
}

// TestRetries: after a failure the driver is called again when the table of recoveries
// says so, and at once if the older class has changed or the failure lies in the future.
func TestRetries(t *testing.T) {
	for _, c := range []struct {
		failed machineclass.Failure
		after  time.Duration // zero: at once; negative: never
	}{
		{machineclass.Failure{At: start, Failures: 1, Outcome: machine.Outcome{Code: codes.Internal}}, 5 * time.Second},
		{machineclass.Failure{At: start, Failures: 3, Outcome: machine.Outcome{Code: codes.Unknown}}, 20 * time.Second},
		{machineclass.Failure{At: start, Failures: 99, Outcome: machine.Outcome{Code: codes.Internal}}, 3 * time.Minute},
		{machineclass.Failure{At: start, Outcome: machine.Outcome{Code: 99}}, 5 * time.Second},
		{machineclass.Failure{At: start, Outcome: machine.Outcome{Code: codes.OK}}, 5 * time.Second},
		{machineclass.Failure{At: start, Outcome: machine.Outcome{Code: codes.Unimplemented}}, -1},
		{machineclass.Failure{At: start.Add(time.Hour), Outcome: machine.Outcome{Code: codes.Unimplemented}}, 0},
		{machineclass.Failure{At: start, Version: "2", Outcome: machine.Outcome{Code: codes.Unimplemented}}, 0},
	} {
		o := &machineclass.Observation{
			Key: key, References: []machineclass.Reference{{Holder: machineclass.HolderMachine, Class: blue}},
			Old: &machineclass.Old{Found: true}, Failed: &c.failed,
		}
		at := func(now time.Time) machineclass.Plan {
			plan, err := machineclass.Decide(o, &machineclass.Policy{Migrate: true}, now)
			require.NoError(t, err)
			return plan
		}
		switch {
		case c.after == 0:
			require.IsType(t, machineclass.Fill{}, at(start).Effect)
		case c.after < 0:
			require.Nil(t, at(start.Add(1000*time.Hour)).Effect)
			require.Zero(t, at(start).At)
		default:
			require.Nil(t, at(start.Add(c.after-1)).Effect)
			require.Equal(t, start.Add(c.after), at(start).At)
			require.IsType(t, machineclass.Fill{}, at(start.Add(c.after)).Effect)
		}
	}
}

// anything returns an arbitrary observation, also one that no caller would make.
func anything(t *rapid.T) *machineclass.Observation {
	some := func(what string) bool { return rapid.Bool().Draw(t, what) }
	class := func() *machine.Class {
		if !some("class") {
			return nil
		}
		c := &machine.Class{ProviderSpec: []byte(rapid.StringN(0, 1, 1).Draw(t, "spec"))}
		if some("finalizer") {
			c.AddFinalizer(machine.Finalizer)
		}
		if some("deleted") {
			c.DeletedAt = start
		}
		if some("annotated") {
			c.Annotations = map[string]string{machineclass.MigratedFrom: blue.GroupKind()}
		}
		return c
	}
	o := &machineclass.Observation{Class: class(), Read: readIf(some("live")), Stored: some("stored"), Marked: some("marked"), Moved: some("moved")}
	o.Users.Machines = rapid.IntRange(-1, 1).Draw(t, "machines")
	for range rapid.IntRange(0, 2).Draw(t, "references") {
		ref := rapid.SampledFrom([]machine.ClassRef{{}, ours, blue, green}).Draw(t, "ref")
		o.References = append(o.References, machineclass.Reference{Holder: "nobody", Class: ref})
	}
	code := func() machine.Outcome {
		return machine.Outcome{Code: codes.Code(rapid.Int32Range(-1, 20).Draw(t, "code"))}
	}
	if some("failed") {
		o.Failed = &machineclass.Failure{Outcome: code(), At: start.Add(-time.Hour), Failures: rapid.IntRange(-2, 1<<30).Draw(t, "failures")}
	}
	if some("old") {
		o.Old = &machineclass.Old{Found: some("found"), Migrated: some("migrated")}
	}
	if some("filled") {
		o.Filled = &machineclass.Filled{Outcome: code(), Class: class()}
	}
	return o
}

// TestP11P27AnythingHasOnePlan: any observation has a plan, the same each time, with one thing to
// do at most, and is not changed.
// Invariants: P11 P27
func TestP11P27AnythingHasOnePlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anything(t)
		before := fmt.Sprintf("%+v %+v", *o, o.Class)
		p := &machineclass.Policy{Keep: rapid.Bool().Draw(t, "keep"), Migrate: rapid.Bool().Draw(t, "migrate")}
		plan, err := machineclass.Decide(o, p, start)
		require.NoError(t, err)
		again, err := machineclass.Decide(o, p, start)
		require.NoError(t, err)
		if !reflect.DeepEqual(plan, again) || before != fmt.Sprintf("%+v %+v", *o, o.Class) {
			t.Fatalf("%+v\n%+v", plan, again)
		}
		if orders(&plan) > 1 || plan.Why == (decision.Why{}) || plan.Why.String() == plan.Why.Reason.String() {
			t.Fatalf("%+v: %s", plan, plan.Why)
		}
		if *p == (machineclass.Policy{}) && orders(&plan) > 0 {
			t.Fatalf("the zero policy does something: %+v", plan)
		}
		if u, ok := plan.Write.(*machineclass.Update); ok && o.Class.Deleted() && len(u.Class.Finalizers) > len(o.Class.Finalizers) {
			t.Fatal("a finalizer is added to a deleted class")
		}
	})
}

// orders counts the things that a plan asks for, a time to decide again included.
func orders(plan *machineclass.Plan) (n int) {
	for _, there := range []bool{plan.ReadLive, plan.Write != nil, plan.Effect != nil, !plan.At.IsZero()} {
		if there {
			n++
		}
	}
	return n
}

// TestCallersMistakes: a nil observation is an error and does not panic.
func TestCallersMistakes(t *testing.T) {
	_, err := machineclass.Decide(nil, &machineclass.Policy{}, start)
	require.ErrorIs(t, err, decision.ErrNoObservation)
	_, err = machineclass.DecideSecret(nil, &machineclass.Policy{})
	require.ErrorIs(t, err, decision.ErrNoObservation)
}

// TestWithoutAPolicyNothingIsDone: a nil policy is the zero one.
func TestWithoutAPolicyNothingIsDone(t *testing.T) {
	o := &machineclass.Observation{Class: &machine.Class{}, Users: machineclass.Users{Machines: 1}}
	want, err := machineclass.Decide(o, &machineclass.Policy{}, start)
	require.NoError(t, err)
	plan, err := machineclass.Decide(o, nil, start)
	require.NoError(t, err)
	require.Equal(t, want, plan)
	secret := &machineclass.SecretObservation{Secret: &machine.Secret{}, Classes: 1}
	wanted, err := machineclass.DecideSecret(secret, &machineclass.Policy{})
	require.NoError(t, err)
	have, err := machineclass.DecideSecret(secret, nil)
	require.NoError(t, err)
	require.Equal(t, wanted, have)
}

// TestSettledAllocatesNothing: most decisions find nothing to do.
func TestSettledAllocatesNothing(t *testing.T) {
	c := withFinalizer()
	o := &machineclass.Observation{Key: key, Class: c, Users: machineclass.Users{Machines: 3}}
	p := &machineclass.Policy{Keep: true, Migrate: true}
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = machineclass.Decide(o, p, start) }))
}

func withFinalizer() *machine.Class {
	c := plain()
	c.AddFinalizer(machine.Finalizer)
	return c
}

// form makes observations of classes and secrets from bytes. The stored corpus depends on the order of
// the words.
var form = fuzzing.Form{Now: start, Words: []string{
	"", "fleet", "small", machine.ClassKind, blue.Kind, blue.APIGroup, green.Kind, machine.Finalizer, machine.SecretFinalizer,
	machineclass.MigratedFrom, blue.GroupKind(), string(machineclass.HolderDeployment), string(machineclass.HolderSet),
	string(machineclass.HolderMachine),
}}

func policy() *machineclass.Policy { return &machineclass.Policy{Keep: true, Migrate: true} }

// Invariants: P11 P27
func FuzzDecide(f *testing.F) {
	d := fuzzing.Decision[machineclass.Observation, *machineclass.Policy, machineclass.Plan]{
		Form: form, Policy: policy, Decide: machineclass.Decide,
		Whole: func(o *machineclass.Observation) { // the caller sets Failed before it decides again
			if o.Filled != nil && o.Filled.Code != codes.OK && o.Failed != nil {
				o.Failed.At = start
			}
		},
		Check: func(t testing.TB, _ *machineclass.Observation, plan machineclass.Plan) {
			require.NotEmpty(t, plan.Why.String())
			require.True(t, plan.At.IsZero() || plan.At.After(start), "At is not in the future: %v", plan.At)
		},
	}
	d.Fuzz(f, d.Drawn(40, func(t *rapid.T) (*machineclass.Observation, *machineclass.Policy) { return anything(t), policy() })...)
}

// Invariants: P11 P27
func FuzzDecideSecret(f *testing.F) {
	d := fuzzing.Decision[machineclass.SecretObservation, *machineclass.Policy, machineclass.SecretPlan]{
		Form: form, Policy: policy,
		Decide: func(o *machineclass.SecretObservation, p *machineclass.Policy, _ time.Time) (machineclass.SecretPlan, error) {
			return machineclass.DecideSecret(o, p)
		},
		Check: func(t testing.TB, _ *machineclass.SecretObservation, plan machineclass.SecretPlan) {
			require.NotEmpty(t, plan.Why.String())
		},
	}
	secret := &machine.Secret{}
	secret.AddFinalizer(machine.SecretFinalizer)
	var seeds [][]byte
	for _, o := range []machineclass.SecretObservation{{}, {Secret: &machine.Secret{}, Classes: 1}, {Secret: secret}, {Secret: secret, Read: readIf(true)}} {
		seeds = append(seeds, d.Seed(&o, policy(), start))
	}
	d.Fuzz(f, seeds...)
}
