package store

import (
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
func (b *Batch[T]) Create(o T) (T, error) { return b.stage(writeOf(verbCreate, o)) }

// Update stages what Collection.Update does.
func (b *Batch[T]) Update(o T) (T, error) { return b.stage(writeOf(verbUpdate, o)) }

// UpdateStatus stages what Collection.UpdateStatus does.
func (b *Batch[T]) UpdateStatus(o T) (T, error) { return b.stage(writeOf(verbUpdateStatus, o)) }

// Delete stages what Collection.Delete does.
func (b *Batch[T]) Delete(k object.Key, uid string) error {
	_, err := b.stage(write[T]{verb: verbDelete, key: k, uid: uid})
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

func (b *Batch[T]) stage(w write[T]) (T, error) {
	var none T
	if err := w.check(); err != nil {
		return none, err
	}
	w.at = b.memory.now()
	stored := b.stored(w.key)
	out, err := w.decide(stored, b.memory.zero)
	if err != nil {
		return none, err
	}
	next := none
	switch {
	case out.gone:
		if err := b.journal.Drop(w.key); err != nil {
			return none, w.wrap(err)
		}
	case out.object == stored:
		return stored, nil
	default:
		if stored == none {
			out.object.ObjectMeta().UID = b.journal.UID()
		}
		b.memory.setVersion(out.object)
		if next, err = b.journal.Put(out.object); err != nil {
			return none, w.wrap(err)
		}
		out.object = next
	}
	b.latest[w.key] = next
	b.steps = append(b.steps, step[T]{key: w.key, object: next})
	return out.object, nil
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
