package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/storetest"
)

// journal keeps what is staged in maps, and can refuse.
type journal struct {
	kept    map[object.Key]*storetest.Object
	uids    int
	replace *storetest.Object // what the next Put returns instead
	refuses error
}

func (j *journal) UID() string { j.uids++; return fmt.Sprint("uid-", j.uids) }

func (j *journal) Put(o *storetest.Object) (*storetest.Object, error) {
	if j.refuses != nil {
		return nil, j.refuses
	}
	if j.replace != nil {
		o, j.replace = j.replace, nil
	}
	j.kept[o.Key] = o
	return o, nil
}

func (j *journal) Drop(k object.Key) error {
	if j.refuses == nil {
		delete(j.kept, k)
	}
	return j.refuses
}

func newJournal() *journal { return &journal{kept: map[object.Key]*storetest.Object{}} }

// Each write of a batch sees those before it. No other reader sees any until they are published
// together.
func TestBatchIsSeenWhenPublished(t *testing.T) {
	m, j := newMemory(), newJournal()
	old := create(t, m, machine("old"))
	w := watch(t, m)
	w.step()
	b := m.Begin(j)
	a, err := b.Create(machine("a"))
	require.NoError(t, err)
	require.Equal(t, "uid-1", a.UID)
	_, err = b.Create(machine("a"))
	require.ErrorIs(t, err, store.ErrAlreadyExists)
	first := a
	a = a.Clone()
	a.Spec.Replicas = 7
	a, err = b.Update(a)
	require.NoError(t, err)
	require.EqualValues(t, 2, a.Generation)
	_, err = b.UpdateStatus(first.Clone())
	require.ErrorIs(t, err, store.ErrConflict)
	a, err = b.UpdateStatus(a.Clone())
	require.NoError(t, err)
	require.NoError(t, b.Delete(old.Key, old.UID))
	require.ErrorIs(t, b.Delete(old.Key, old.UID), store.ErrNotFound)
	again, err := b.Create(machine("old"))
	require.NoError(t, err)

	require.Equal(t, []*storetest.Object{old}, all(t, m))
	require.Equal(t, map[object.Key]*storetest.Object{a.Key: a, again.Key: again}, j.kept)
	b.Publish()
	require.ElementsMatch(t, []*storetest.Object{a, again}, all(t, m))
	require.NoError(t, m.Intact())
	w.settle(all(t, m))
	require.NoError(t, m.Delete(noContext, a.Key, ""))
	b.Publish()
	require.Equal(t, []*storetest.Object{again}, all(t, m), "a batch is empty once published")
	_, err = b.UpdateStatus(a)
	require.ErrorIs(t, err, store.ErrNotFound)
}

// A batch that is dropped changes nothing but versions, which are not used again.
func TestBatchDropped(t *testing.T) {
	m := newMemory()
	old := create(t, m, machine("old"))
	b := m.Begin(newJournal())
	lost, err := b.Update(old.Clone())
	require.NoError(t, err)
	require.NoError(t, b.Delete(old.Key, ""))
	require.Equal(t, []*storetest.Object{old}, all(t, m))

	b = m.Begin(newJournal())
	next, err := b.Update(old.Clone())
	require.NoError(t, err)
	require.NotEqual(t, lost.Version, next.Version)
	require.Equal(t, next.Version, fmt.Sprint(b.Versions()))
}

// A write that the journal refuses is not staged, and the error has the verb and the name. If the
// journal returns another object, that one is stored.
func TestJournalRefusesOrReplaces(t *testing.T) {
	m, j := newMemory(), newJournal()
	old := create(t, m, machine("old"))
	b := m.Begin(j)
	j.refuses = errors.New("no room")
	_, err := b.Create(machine("a"))
	require.ErrorIs(t, err, j.refuses)
	require.EqualError(t, err, "create fleet/a: no room")
	require.EqualError(t, b.Delete(old.Key, ""), "delete fleet/old: no room")
	b.Publish()
	require.Equal(t, []*storetest.Object{old}, all(t, m))

	j.refuses, j.replace = nil, machine("a")
	instead := j.replace
	got, err := b.Create(machine("a"))
	require.NoError(t, err)
	require.Same(t, instead, got)
	b.Publish()
	got, err = m.Get(noContext, instead.Key)
	require.NoError(t, err)
	require.Same(t, instead, got)
}

// A second deletion changes nothing, so it does not reach the journal.
func TestBatchSkipsRepeatedDeletion(t *testing.T) {
	m, j := newMemory(), newJournal()
	o := machine("a")
	o.Finalizers = []string{"hold"}
	create(t, m, o)
	require.NoError(t, m.Delete(noContext, o.Key, ""))
	b := m.Begin(j)
	require.NoError(t, b.Delete(o.Key, ""))
	require.Empty(t, j.kept)
	got, err := m.Get(noContext, o.Key)
	require.NoError(t, err)
	got = got.Clone()
	got.Finalizers = nil
	last, err := b.Update(got)
	require.NoError(t, err)
	require.Empty(t, last.Finalizers)
	b.Publish()
	require.Empty(t, all(t, m))
}

func TestLoad(t *testing.T) {
	from := newMemory()
	create(t, from, machine("a"))
	create(t, from, machine("b"))
	m := newMemory()
	m.Load(all(t, from), 41)
	require.ElementsMatch(t, all(t, from), all(t, m))
	listed, err := m.List(noContext, store.Query{Index: storetest.ByOwner, Value: "set-1"})
	require.NoError(t, err)
	require.Len(t, listed, 2)
	watch(t, m).settle(all(t, m))
	require.Equal(t, "42", create(t, m, machine("c")).Version)
	require.NoError(t, m.Intact())
}

// TestRestore: after an older copy has taken the place of the objects, watches and indexes show that copy, and no
// UID and no version comes back.
func TestRestore(t *testing.T) {
	m := newMemory()
	kept, gone := create(t, m, machine("kept")), create(t, m, machine("gone"))
	replaced := create(t, m, machine("replaced"))
	copied := all(t, m)
	w := watch(t, m)
	w.settle(all(t, m))
	changed := kept.Clone()
	changed.Spec.Replicas = 7
	changed, err := m.Update(noContext, changed)
	require.NoError(t, err)
	require.NoError(t, m.Delete(noContext, gone.Key, ""))
	require.NoError(t, m.Delete(noContext, replaced.Key, ""))
	lost := []*storetest.Object{create(t, m, machine("replaced")), create(t, m, machine("new"))}
	w.settle(all(t, m))
	m.Restore(copied)
	require.ElementsMatch(t, copied, all(t, m))
	w.settle(copied)
	listed, err := m.List(noContext, store.Query{Index: storetest.ByOwner, Value: "set-1"})
	require.NoError(t, err)
	require.ElementsMatch(t, copied, listed)
	_, err = m.Update(noContext, changed.Clone())
	require.ErrorIs(t, err, store.ErrConflict)
	again := create(t, m, machine("new"))
	for _, o := range append(lost, changed) {
		require.NotEqual(t, o.Version, again.Version)
	}
	require.NotEqual(t, lost[1].UID, again.UID)
	require.NoError(t, m.Intact())
}

// The object that a journal gets shares no status with the stored object, because the journal may
// truncate the status to what it can keep.
func TestJournalOwnsTheStatus(t *testing.T) {
	m, j := newMemory(), newJournal()
	o := machine("a")
	o.AddFinalizer("f")
	old := create(t, m, o).Clone()
	old.Status.Conditions = []object.Condition{{Type: "Ready"}}
	old, err := m.UpdateStatus(noContext, old)
	require.NoError(t, err)
	kept := old.Clone()
	b := m.Begin(j)
	_, err = b.Update(old.Clone())
	require.NoError(t, err)
	j.kept[old.Key].Status.Conditions[0].Type = "cut"
	b = m.Begin(j)
	require.NoError(t, b.Delete(old.Key, old.UID))
	require.True(t, j.kept[old.Key].Deleted())
	j.kept[old.Key].Status.Conditions[0].Type = "cut"
	require.Equal(t, kept, old)
}
