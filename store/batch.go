package store

import (
	"time"

	"github.com/millwright-go/millwright/object"
)

// Journal keeps what a Batch stages, so that it outlives the process. Every key that it is given has
// a name.
type Journal[T object.Object[T]] interface {
	// UID returns a UID that no object has had.
	UID() string
	// Put takes an object as it is to be stored. It returns the object, or an equal one to store in
	// its place. No reader has the object yet, but all except its status may be shared with the
	// stored object, which it is about to replace. An error refuses the write, and the write
	// returns it.
	Put(o T) (T, error)
	// Drop takes the key of an object that is gone. An error refuses the write, and the write
	// returns it.
	Drop(k object.Key) error
}

// Batch is a number of writes that no reader sees until they are published. Durable stores are
// built from it: such a store reads from a Memory, stages writes while a Journal keeps them, and
// publishes them once they are safe. A Batch that is dropped has no effect. Its versions are not
// used again.
//
// The writes follow the rules of Collection, each seeing those before it. While a Batch is in use,
// its Memory must not be written to in any other way, including through another Batch. Reads and
// watches are allowed. A Batch must not be used concurrently.
type Batch[T object.Object[T]] struct {
	memory  *Memory[T]
	journal Journal[T]
	latest  map[object.Key]T // the nil T if it is gone
	steps   []step[T]
}

// step is one write that has been staged.
type step[T object.Object[T]] struct {
	key    object.Key
	object T // the nil T if it is gone
}

// Begin returns an empty batch of writes to m.
func (m *Memory[T]) Begin(journal Journal[T]) *Batch[T] {
	return &Batch[T]{memory: m, journal: journal, latest: make(map[object.Key]T)}
}

// Create stages what Collection.Create does.
func (b *Batch[T]) Create(o T) (T, error) { return b.stage(WriteOf(VerbCreate, o, time.Time{})) }

// Update stages what Collection.Update does.
func (b *Batch[T]) Update(o T) (T, error) { return b.stage(WriteOf(VerbUpdate, o, time.Time{})) }

// UpdateStatus stages what Collection.UpdateStatus does.
func (b *Batch[T]) UpdateStatus(o T) (T, error) {
	return b.stage(WriteOf(VerbUpdateStatus, o, time.Time{}))
}

// Delete stages what Collection.Delete does.
func (b *Batch[T]) Delete(k object.Key, uid string) error {
	_, err := b.stage(Write[T]{Verb: VerbDelete, Key: k, UID: uid})
	return err
}

// Versions returns the number of the last version given out, for Load.
func (b *Batch[T]) Versions() uint64 { return b.memory.versions }

// Publish makes the writes visible, in their order. The batch is empty then.
func (b *Batch[T]) Publish() {
	var none T
	m := b.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range b.steps {
		if s.object == none {
			m.remove(s.key)
		} else {
			m.put(s.key, s.object)
		}
	}
	clear(b.latest)
	b.steps = nil
}

func (b *Batch[T]) stage(w Write[T]) (T, error) {
	var none T
	if err := w.Check(); err != nil {
		return none, err
	}
	w.At = b.memory.now()
	stored := b.stored(w.Key)
	out, err := w.Apply(stored)
	if err != nil {
		return none, err
	}
	next := none
	switch {
	case out.Gone:
		if err := b.journal.Drop(w.Key); err != nil {
			return none, w.Refuse(err)
		}
	case out.Object == stored:
		return stored, nil
	default:
		if stored == none {
			out.Object.ObjectMeta().UID = b.journal.UID()
		}
		b.memory.setVersion(out.Object)
		if next, err = b.journal.Put(out.Object); err != nil {
			return none, w.Refuse(err)
		}
		out.Object = next
	}
	b.latest[w.Key] = next
	b.steps = append(b.steps, step[T]{key: w.Key, object: next})
	return out.Object, nil
}

// stored returns what was staged last under a key, or else what the memory holds.
func (b *Batch[T]) stored(k object.Key) T {
	if o, staged := b.latest[k]; staged {
		return o
	}
	b.memory.mu.RLock()
	defer b.memory.mu.RUnlock()
	return b.memory.stored(k)
}

// Restore makes the store have other objects, with their UIDs and versions, as if a copy from an earlier time had
// taken its place. Objects that are missing are gone for watches. Later UIDs and versions are new ones all the same.
func (m *Memory[T]) Restore(objects []T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	stay := make(map[object.Key]bool, len(objects))
	for _, o := range objects {
		meta := o.ObjectMeta()
		if stored := m.objects[meta.Key]; stored != nil && stored.object.ObjectMeta().UID == meta.UID {
			stay[meta.Key] = true
		}
	}
	there, _ := m.indexes.list(Query{}) // in an order that only the writes determine
	for _, o := range there {
		if k := o.ObjectMeta().Key; !stay[k] {
			m.remove(k)
		}
	}
	for _, o := range objects {
		if stored := m.objects[o.ObjectMeta().Key]; stored == nil || stored.object != o {
			m.put(o.ObjectMeta().Key, o)
		}
	}
}

// Load fills a store that is not in use yet with the objects that a Journal has kept, at most one for
// each key. versions is what Batch.Versions returned after the last of them was staged.
func (m *Memory[T]) Load(objects []T, versions uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.versions = versions
	for _, o := range objects {
		m.put(o.ObjectMeta().Key, o)
	}
}
