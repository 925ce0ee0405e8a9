package store_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/storetest"
)

type objects = store.Collection[*storetest.Object]

// rival is a collection in which somebody else writes or deletes just before each of our writes.
type rival struct {
	objects
	before func()
	writes int
}

func (r *rival) Create(ctx context.Context, o *storetest.Object) (*storetest.Object, error) {
	r.writes++
	r.before()
	return r.objects.Create(ctx, o)
}

func (r *rival) Update(ctx context.Context, o *storetest.Object) (*storetest.Object, error) {
	r.writes++
	r.before()
	return r.objects.Update(ctx, o)
}

func (r *rival) UpdateStatus(ctx context.Context, o *storetest.Object) (*storetest.Object, error) {
	r.writes++
	r.before()
	return r.objects.UpdateStatus(ctx, o)
}

var editKey = object.Key{Namespace: "fleet", Name: "a"}

func newObject(replicas int64) *storetest.Object {
	return &storetest.Object{Meta: object.Meta{Key: editKey}, Spec: storetest.Spec{Replicas: replicas}}
}

func newObjects(t *testing.T, replicas int64) objects {
	t.Helper()
	c := store.NewMemory[*storetest.Object](nil, storetest.Indexes())
	_, err := c.Create(t.Context(), newObject(replicas))
	require.NoError(t, err)
	return c
}

func increment(o *storetest.Object) error {
	o.Spec.Replicas++
	return nil
}

func replicasOf(t *testing.T, c objects) int64 {
	t.Helper()
	o, err := c.Get(t.Context(), editKey)
	require.NoError(t, err)
	return o.Spec.Replicas
}

// TestEditRetries: both the rival's changes and ours are stored.
func TestEditRetries(t *testing.T) {
	c := newObjects(t, 1)
	r := &rival{objects: c}
	r.before = func() {
		if r.writes <= 3 {
			_, err := store.Edit(t.Context(), c, editKey, increment)
			require.NoError(t, err)
		}
	}
	stored, err := store.Edit(t.Context(), r, editKey, increment)
	require.NoError(t, err)
	require.EqualValues(t, 5, stored.Spec.Replicas)
	require.EqualValues(t, 5, replicasOf(t, c))
	require.Equal(t, 4, r.writes)
}

// TestEditGivesUp: an edit that meets a conflict in each attempt fails with ErrConflict after ten.
func TestEditGivesUp(t *testing.T) {
	c := newObjects(t, 1)
	r := &rival{objects: c, before: func() { _, _ = store.Edit(t.Context(), c, editKey, increment) }}
	for name, edit := range map[string]func() error{
		"edit":   func() error { _, err := store.Edit(t.Context(), r, editKey, increment); return err },
		"status": func() error { _, err := store.EditStatus(t.Context(), r, editKey, ready); return err },
		"create": func() error { _, err := store.CreateOrEdit(t.Context(), r, newObject(1), increment); return err },
	} {
		r.writes = 0
		require.ErrorIs(t, edit(), store.ErrConflict, name)
		require.Equal(t, 10, r.writes, name)
	}
}

func ready(o *storetest.Object) error {
	o.Status.Ready++
	return nil
}

// TestEditWritesOnlyChanges: without a change there is no write. An error of the function ends the
// edit.
func TestEditWritesOnlyChanges(t *testing.T) {
	c := newObjects(t, 1)
	r := &rival{objects: c, before: func() {}}
	before, err := c.Get(t.Context(), editKey)
	require.NoError(t, err)
	stored, err := store.Edit(t.Context(), r, editKey, func(*storetest.Object) error { return nil })
	require.NoError(t, err)
	require.Same(t, before, stored)
	stored, err = store.CreateOrEdit(t.Context(), r, newObject(7), nil)
	require.NoError(t, err)
	require.Same(t, before, stored)
	refused := errors.New("refused")
	_, err = store.Edit(t.Context(), r, editKey, func(o *storetest.Object) error { o.Spec.Replicas = 9; return refused })
	require.Equal(t, refused, err)
	require.Zero(t, r.writes)
	require.EqualValues(t, 1, replicasOf(t, c), "an object of the store is shared: the function gets a copy")
}

// TestEditAbsent: without an object, Edit fails with ErrNotFound, and CreateOrEdit creates one with
// the change.
func TestEditAbsent(t *testing.T) {
	c := store.NewMemory[*storetest.Object](nil, storetest.Indexes())
	_, err := store.Edit(t.Context(), c, editKey, increment)
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = store.EditStatus(t.Context(), c, editKey, ready)
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = store.CreateOrEdit[*storetest.Object](t.Context(), c, nil, increment)
	require.ErrorIs(t, err, store.ErrInvalid)

	zero := newObject(3)
	stored, err := store.CreateOrEdit(t.Context(), c, zero, increment)
	require.NoError(t, err)
	require.EqualValues(t, 4, stored.Spec.Replicas)
	require.EqualValues(t, 3, zero.Spec.Replicas)
	stored, err = store.CreateOrEdit(t.Context(), c, zero, increment)
	require.NoError(t, err)
	require.EqualValues(t, 5, stored.Spec.Replicas)
}

// TestCreateOrEditAmongOthers: the object is created, or deleted, by somebody else between our read
// and our write.
func TestCreateOrEditAmongOthers(t *testing.T) {
	c := store.NewMemory[*storetest.Object](nil, storetest.Indexes())
	r := &rival{objects: c}
	r.before = func() {
		switch r.writes {
		case 1: // ours is a creation
			_, err := c.Create(t.Context(), newObject(20))
			require.NoError(t, err)
		case 2: // ours is an update
			require.NoError(t, c.Delete(t.Context(), editKey, ""))
		}
	}
	stored, err := store.CreateOrEdit(t.Context(), r, newObject(1), increment)
	require.NoError(t, err)
	require.EqualValues(t, 2, stored.Spec.Replicas)
	require.Equal(t, 3, r.writes)
}

// TestEditsAtTheSameTime: no edit that succeeded is lost, and an edit that failed changed nothing.
func TestEditsAtTheSameTime(t *testing.T) {
	c := newObjects(t, 0)
	var all sync.WaitGroup
	var succeeded atomic.Int64
	for range 8 {
		all.Go(func() {
			for range 50 {
				if _, err := store.Edit(t.Context(), c, editKey, increment); err == nil {
					succeeded.Add(1)
				} else if !errors.Is(err, store.ErrConflict) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.EqualValues(t, succeeded.Load(), replicasOf(t, c))
}
