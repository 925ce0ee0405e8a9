package storetest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// Suite says how to make the store under test.
type Suite struct {
	// New returns an empty collection, built with Indexes and, if the store stamps times, with the
	// clock now. The suite calls it several times. It closes what it opens through t.Cleanup.
	New func(t *testing.T, now func() time.Time) store.Collection[*Object]

	// Peer returns two views of one empty store, as two processes have them. Nil: no other process can have one.
	Peer func(t *testing.T, now func() time.Time) (a, b store.Collection[*Object])

	// Terms returns a view of an empty store whose writes belong to a term of leadership, and a function that begins the
	// next term and returns the view of that. Nil: the store has no terms.
	Terms func(t *testing.T, now func() time.Time) (old store.Collection[*Object], takeOver func() store.Collection[*Object])

	// OwnClock says that the store ignores now and stamps CreatedAt and DeletedAt with a clock of
	// its own, as an API server does.
	OwnClock bool

	// EndsTogether says that more than one of several concurrent updates that remove the last
	// finalizer may succeed, as on an API server.
	EndsTogether bool

	// Costly says that a call takes milliseconds, not microseconds. The suite then repeats its
	// checks less often.
	Costly bool

	// Patience is how long the suite waits for a cache, a watch or a call before it fails. Zero
	// means 10 seconds.
	Patience time.Duration
}

// Run checks every rule of store.Collection, each in a subtest.
func Run(t *testing.T, s Suite) {
	t.Helper()
	if s.Patience == 0 {
		s.Patience = 10 * time.Second
	}
	for _, group := range []struct {
		name  string
		rules []rule
	}{
		{"Create", createRules},
		{"Update", updateRules},
		{"UpdateStatus", statusRules},
		{"Delete", deleteRules},
		{"Read", readRules},
		{"Sharing", sharingRules},
		{"Context", contextRules},
		{"Watch", watchRules},
		{"Concurrent", concurrentRules},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, r := range group.rules {
				t.Run(r.name, func(t *testing.T) { r.check(newTrial(t, s)) })
			}
		})
	}
	t.Run("Model", func(t *testing.T) { checkModel(newTrial(t, s)) })
	if s.Peer != nil {
		t.Run("Peer", func(t *testing.T) {
			for _, r := range peerRules {
				t.Run(r.name, func(t *testing.T) { r.check(newPeers(t, s)) })
			}
		})
	}
	if s.Terms != nil {
		t.Run("Terms", func(t *testing.T) { checkTerms(t, s) })
	}
}

// rule is one thing that store.Collection promises.
type rule struct {
	name  string
	check func(*trial)
}

// times returns n, or a smaller number if calls are costly.
func (r *trial) times(n int) int {
	if r.suite.Costly {
		return max(n/5, 5)
	}
	return n
}

// trial is one store under test with a clock.
type trial struct {
	*testing.T
	suite Suite
	store store.Collection[*Object]
	clock *clock
	ctx   context.Context //nolint:containedctx // as long as the test, like testing.T's own
}

func newTrial(t *testing.T, s Suite) *trial {
	c := newClock()
	return &trial{T: t, suite: s, store: s.New(t, c.now), clock: c, ctx: t.Context()}
}

// clock is the time of a trial.
type clock struct{ nanos atomic.Int64 }

// newClock returns a clock that does not show a whole second, so that a store fails that doesn't truncate times to the
// second.
func newClock() *clock {
	c := &clock{}
	c.nanos.Store(time.Date(2031, 5, 7, 11, 13, 17, 987_654_321, time.UTC).UnixNano())
	return c
}

// now is in a location that is not UTC.
func (c *clock) now() time.Time {
	return time.Unix(0, c.nanos.Load()).In(time.FixedZone("elsewhere", 5400))
}

func (c *clock) advance(d time.Duration) { c.nanos.Add(int64(d)) }

// seconds returns what a store makes of now.
func (c *clock) seconds() time.Time { return c.now().Truncate(time.Second) }

// key returns a key in the first of Namespaces.
func key(name string) object.Key {
	return object.Key{Namespace: Namespaces[0], Name: name}
}

// sample returns an object with something in every field that a writer may fill, except finalizers.
func sample(name string) *Object {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	return &Object{
		Meta: object.Meta{
			Key:         key(name),
			Labels:      map[string]string{"app": "mill"},
			Annotations: map[string]string{"note": "first"},
			Owner:       &object.Owner{Kind: "Set", Name: "mill", UID: "owner-1"},
		},
		Spec: Spec{Replicas: 3, Class: "large", Zones: []string{"north", "south"}, NotBefore: at},
	}
}

// sampleStatus is a status with something in every field.
func sampleStatus() Status {
	at := time.Date(2030, 6, 7, 8, 9, 10, 0, time.UTC)
	return Status{Ready: 2, Node: "node-1", Checked: at, Conditions: []object.Condition{
		{Type: "Ready", Status: object.True, Reason: "Joined", Message: "it has joined", Since: at},
	}}
}

// These are the finalizers of the suite.
const (
	holdOne = "storetest.example/one"
	holdTwo = "storetest.example/two"
)

// create stores o and requires success.
func (r *trial) create(o *Object) *Object {
	r.Helper()
	stored, err := r.store.Create(r.ctx, o)
	require.NoError(r, err)
	require.NotNil(r, stored)
	return stored
}

// change updates a clone of o after edit and requires success.
func (r *trial) change(o *Object, edit func(*Object)) *Object {
	r.Helper()
	c := o.Clone()
	edit(c)
	stored, err := r.store.Update(r.ctx, c)
	require.NoError(r, err)
	require.NotNil(r, stored)
	return stored
}

// changeStatus updates the status of a clone of o after edit.
func (r *trial) changeStatus(o *Object, edit func(*Status)) *Object {
	r.Helper()
	c := o.Clone()
	edit(&c.Status)
	stored, err := r.store.UpdateStatus(r.ctx, c)
	require.NoError(r, err)
	require.NotNil(r, stored)
	return stored
}

// remove deletes the object of that name.
func (r *trial) remove(name string) {
	r.Helper()
	require.NoError(r, r.store.Delete(r.ctx, key(name), ""))
}

// live reads the stored object, which must exist.
func (r *trial) live(name string) *Object {
	r.Helper()
	o, err := r.store.Live().Get(r.ctx, key(name))
	require.NoError(r, err)
	require.NotNil(r, o)
	return o
}

// absent requires that there is no object of that name.
func (r *trial) absent(name string) {
	r.Helper()
	_, err := r.store.Live().Get(r.ctx, key(name))
	require.ErrorIs(r, err, store.ErrNotFound)
}

// stored requires that exactly want is stored under its name.
func (r *trial) stored(want *Object) {
	r.Helper()
	require.Equal(r, canonical(want), canonical(r.live(want.Name)))
}

// refused requires that err is want and names the object.
func (r *trial) refused(want, err error, name string) {
	r.Helper()
	require.ErrorIs(r, err, want)
	require.ErrorContains(r, err, key(name).String())
}

// within requires that do returns in time and without an error. If do does not return, its
// goroutine stays behind, so do must not use r to report.
func (r *trial) within(what string, do func() error) {
	r.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		require.NoError(r, err, what)
	case <-time.After(r.suite.Patience):
		r.Fatalf("%s: not done within %v", what, r.suite.Patience)
	}
}

// eventually polls until done returns true.
func (r *trial) eventually(what string, done func() bool) {
	r.Helper()
	deadline := time.NewTimer(r.suite.Patience)
	defer deadline.Stop()
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	for !done() {
		select {
		case <-again.C:
		case <-deadline.C:
			r.Fatalf("not within %v: %s", r.suite.Patience, what)
		}
	}
}
