package remote

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/millwright-go/millwright/lead"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/record"
)

// Collection has the objects of one kind. It is a store.Collection. Reads come from a cache, which an own write
// has reached when it returns. A UID is the kind and 128 random bits.
//
// While records of its kind can't be read, a list returns the other objects that match, and also an error,
// an *UnreadableError. Watches leave such objects out. ErrNoAnswer, and any error of the engine that is none of
// package store, leaves the effect of a write unknown.
type Collection[T object.Object[T]] struct {
	*cache[T]
	term *lead.Held // that writes belong to; nil: none
}

// cache has what collections of one kind share.
type cache[T object.Object[T]] struct {
	db       *DB
	kind     string
	json     record.Codec[T]
	seal     record.Sealer
	indexes  map[store.Index]func(T) []string
	follower *store.Follower[T, struct{}]
}

// collection opens the collection of a kind. Call it once for each kind.
func collection[T object.Object[T]](db *DB, kind string, indexes map[store.Index]func(T) []string, seal record.Sealer) *Collection[T] {
	c := &cache[T]{
		db: db, kind: kind, json: record.NewCodec[T](), seal: seal, indexes: indexes,
		follower: store.NewFollower[T, struct{}](indexes),
	}
	db.kinds[kind] = c
	return &Collection[T]{cache: c}
}

// Under returns the collection with writes that belong to a term; nil: to none.
func (c *Collection[T]) Under(term *lead.Held) *Collection[T] { return &Collection[T]{c.cache, term} }

func (c *cache[T]) synced() <-chan struct{} { return c.follower.Synced() }

func (c *cache[T]) forget() { c.follower.Forget() }

// count returns how many objects the cache has.
func (c *cache[T]) count() int {
	select {
	case <-c.synced():
	default:
		return 0
	}
	all, _ := c.follower.List(context.Background(), store.Query{})
	return len(all)
}

func (c *cache[T]) check(r Record) error {
	_, err := c.decode(r)
	return err
}

// decode returns the object of a record.
func (c *cache[T]) decode(r Record) (T, error) {
	var none T
	content, err := record.Open(c.seal, r.Content)
	if err != nil {
		return none, err
	}
	o, err := c.json.Decode(content)
	if err != nil {
		return none, err
	}
	meta := o.ObjectMeta()
	if meta.Key != r.Key.Key || meta.UID == "" {
		return none, errIdentity
	}
	meta.Version = r.Version
	return o, nil
}

var errIdentity = errors.New("is stored as another object, or without UID")

// encode returns the record of o, which has no version, and o as decode returns it.
func (c *cache[T]) encode(o T) ([]byte, T, error) {
	var none T
	o.ObjectMeta().Version = ""
	content, same, err := c.json.Encode(o)
	if err != nil {
		return nil, none, err
	}
	if content, err = record.Seal(c.seal, content); err != nil {
		return nil, none, fmt.Errorf("%w: %w", store.ErrInvalid, err)
	}
	return content, same, nil
}

// state returns a record as the follower takes it. A record that can't be read is as one that does not
// exist.
func (c *cache[T]) state(r Record) store.State[T, struct{}] {
	s := store.State[T, struct{}]{Key: r.Key.Key, Order: r.Order}
	if r.Content == nil {
		c.db.noteUnreadable(r.Key, nil)
		return s
	}
	if known, ok := c.follower.State(s.Key); ok && known.Object.ObjectMeta().Version == r.Version {
		known.Order = r.Order
		return known // readers may have the object already
	}
	o, err := c.decode(r)
	c.db.noteUnreadable(r.Key, err)
	if err == nil {
		s.Object, s.UID = o, o.ObjectMeta().UID
	}
	return s
}

func (c *cache[T]) replace(all []Record, at uint64) {
	states := make([]store.State[T, struct{}], len(all))
	for i, r := range all {
		states[i] = c.state(r)
	}
	c.follower.Replace(states, at)
}

func (c *cache[T]) show(r Record) { c.follower.Show(c.state(r)) }

// Get implements store.Reader.
func (c *cache[T]) Get(ctx context.Context, k object.Key) (T, error) {
	o, err := read(ctx, c.db, func(ctx context.Context) (T, error) { return c.follower.Get(ctx, k) })
	if errors.Is(err, store.ErrNotFound) {
		if u := c.db.unreadableAt(Key{c.kind, k}); u != nil {
			return o, fmt.Errorf("get: %w", u)
		}
	}
	return o, err
}

// List implements store.Reader.
func (c *cache[T]) List(ctx context.Context, q store.Query) ([]T, error) {
	all, err := read(ctx, c.db, func(ctx context.Context) ([]T, error) { return c.follower.List(ctx, q) })
	if err != nil {
		return nil, err
	}
	if first, n := c.db.unreadableOf(c.kind); n > 0 {
		return all, fmt.Errorf("list: %d records can't be read: %w", n, first)
	}
	return all, nil
}

// read makes a read of a cache that ends with the DB.
func read[R any](ctx context.Context, db *DB, do func(context.Context) (R, error)) (R, error) {
	within, done := context.WithCancel(ctx)
	defer done()
	defer context.AfterFunc(db.life, done)()
	result, err := do(within)
	if db.life.Err() != nil && ctx.Err() == nil {
		var none R
		return none, ErrClosed
	}
	return result, err
}

// Watch implements store.Collection. It ends with ErrClosed when the DB is closed.
func (c *cache[T]) Watch(ctx context.Context) iter.Seq2[store.Change[T], error] {
	return func(yield func(store.Change[T], error) bool) {
		open, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(c.db.life, cancel)()
		for change, err := range c.follower.Watch(open) {
			if !yield(change, err) {
				return
			}
		}
		if ctx.Err() == nil {
			yield(store.Change[T]{}, fmt.Errorf("watch: %w", ErrClosed))
		}
	}
}

// Live implements store.Collection.
func (c *cache[T]) Live() store.Reader[T] { return &live[T]{cache: c} }

// live reads what is stored: one object from the database, and lists from the cache once that shows all that
// was stored when live was made.
type live[T object.Object[T]] struct {
	*cache[T]
	mu    sync.Mutex
	fresh bool
}

// Get implements store.Reader.
func (l *live[T]) Get(ctx context.Context, k object.Key) (T, error) {
	o, err := l.fetch(ctx, k)
	if err != nil {
		return o, fmt.Errorf("get %s: %w", k, err)
	}
	return o, nil
}

// fetch reads one object from the database. The error is store.ErrNotFound if there is none.
func (c *cache[T]) fetch(ctx context.Context, k object.Key) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if k.Name == "" {
		return none, fmt.Errorf("%w: it has no name", store.ErrInvalid)
	}
	r, err := call(ctx, c.db, func(ctx context.Context) (Record, error) { return c.db.engine.Get(ctx, Key{c.kind, k}) })
	if err != nil {
		return none, err
	}
	return c.object(r)
}

// object returns the object of a record, the one of the cache if that is of the same version.
func (c *cache[T]) object(r Record) (T, error) {
	var none T
	if r.Content == nil {
		return none, store.ErrNotFound
	}
	if known, ok := c.follower.State(r.Key.Key); ok && known.Object.ObjectMeta().Version == r.Version {
		return known.Object, nil
	}
	o, err := c.decode(r)
	if err != nil {
		return none, &UnreadableError{r.Key, err}
	}
	return o, nil
}

// List implements store.Reader.
func (l *live[T]) List(ctx context.Context, q store.Query) ([]T, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	values, known := l.indexes[q.Index]
	switch {
	case q.Index == "" && q.Value != "":
		return nil, fmt.Errorf("list %q: %w: a value needs an index", q.Value, store.ErrInvalid)
	case q.Index != "" && !known:
		return nil, fmt.Errorf("list: %w: unknown index %q", store.ErrInvalid, q.Index)
	}
	fresh, err := l.isFresh(ctx)
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	if fresh {
		return l.cache.List(ctx, q)
	}
	records, err := l.db.engine.List(ctx, l.kind)
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	var all []T
	for _, r := range records {
		o, err := l.object(r)
		if err != nil {
			return nil, fmt.Errorf("list: %w", err)
		}
		if q.Index == "" || slices.Contains(values(o), q.Value) {
			all = append(all, o)
		}
	}
	return all, nil
}

// isFresh reports whether the cache shows all that was stored when l was made.
func (l *live[T]) isFresh(ctx context.Context) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fresh {
		return true, nil
	}
	_, err := call(ctx, l.db, func(ctx context.Context) (none struct{}, err error) { return none, l.db.engine.Fresh(ctx) })
	switch {
	case err == nil:
		l.fresh = true
	case errors.Is(err, ErrBehind), errors.Is(err, ErrNoAnswer):
		err = nil
	}
	return l.fresh, err
}

// Create implements store.Collection.
func (c *Collection[T]) Create(ctx context.Context, o T) (T, error) {
	return c.write(ctx, store.WriteOf(store.VerbCreate, o, c.db.Now()))
}

// Update implements store.Collection.
func (c *Collection[T]) Update(ctx context.Context, o T) (T, error) {
	return c.write(ctx, store.WriteOf(store.VerbUpdate, o, c.db.Now()))
}

// UpdateStatus implements store.Collection.
func (c *Collection[T]) UpdateStatus(ctx context.Context, o T) (T, error) {
	return c.write(ctx, store.WriteOf(store.VerbUpdateStatus, o, c.db.Now()))
}

// Delete implements store.Collection.
func (c *Collection[T]) Delete(ctx context.Context, k object.Key, uid string) error {
	_, err := c.write(ctx, store.Write[T]{Verb: store.VerbDelete, Key: k, UID: uid, At: c.db.Now()})
	return err
}

// write makes a write of what the cache has, if that succeeds, and else of what is stored. A deletion carries no
// version: it begins again until no other writer is faster.
func (c *Collection[T]) write(ctx context.Context, w store.Write[T]) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if err := w.Check(); err != nil {
		return none, err
	}
	defer c.follower.Writing(w.Key)()
	if w.Verb == store.VerbCreate {
		result, err := c.swap(ctx, &w, none, false)
		if errors.Is(err, store.ErrConflict) {
			err = w.Refuse(store.ErrAlreadyExists)
		}
		return result, err
	}
	if known, ok := c.follower.State(w.Key); ok {
		result, err := c.swap(ctx, &w, known.Object, true)
		if err == nil || !asksAgain(err) {
			return result, err
		}
	}
	for {
		stored, err := c.fetch(ctx, w.Key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return none, w.Refuse(err)
		}
		result, err := c.swap(ctx, &w, stored, false)
		if w.Verb == store.VerbDelete && errors.Is(err, errOvertaken) {
			continue
		}
		return result, err
	}
}

// asksAgain reports whether a write that was made of what the cache has is to be made of what is stored.
func asksAgain(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrInvalid) || errors.Is(err, errUnchanged)
}

var (
	// errOvertaken: the database has another record than the write was made of.
	errOvertaken = fmt.Errorf("%w: another write was faster", store.ErrConflict)
	// errUnchanged: what the cache has would not change.
	errUnchanged = errors.New("unchanged")
)

// swap makes a write of base, which is nil if there is no object, and may be old if it is cached.
func (c *Collection[T]) swap(ctx context.Context, w *store.Write[T], base T, cached bool) (T, error) {
	var none T
	out, err := w.Apply(base)
	switch {
	case err != nil:
		return none, err
	case out.Object == base && !out.Gone && cached:
		return none, errUnchanged
	case out.Object == base && !out.Gone:
		return base, nil
	}
	s, next, err := c.swapOf(w, base, out)
	if err != nil {
		return none, w.Refuse(err)
	}
	r, err := call(ctx, c.db, func(ctx context.Context) (Record, error) { return c.db.engine.Swap(ctx, s) })
	if err != nil {
		return none, c.refused(ctx, w, err)
	}
	state := store.State[T, struct{}]{Key: w.Key, Order: r.Order}
	if out.Gone {
		state.UID = base.ObjectMeta().UID
	} else {
		c.db.noteFull(nil)
		next.ObjectMeta().Version = r.Version
		state.Object, state.UID = next, next.ObjectMeta().UID
	}
	c.follower.Wrote(state)
	return next, nil
}

// swapOf returns the swap that stores an outcome in the place of base, and the object as it will be read.
func (c *Collection[T]) swapOf(w *store.Write[T], base T, out store.Outcome[T]) (s Swap, next T, err error) {
	var none T
	s.Key = Key{c.kind, w.Key}
	if base != none {
		s.Version = base.ObjectMeta().Version
	}
	if c.term != nil {
		s.Token = c.term.Token()
	}
	if next = out.Object; out.Gone {
		return s, next, nil
	}
	if base == none {
		next.ObjectMeta().UID = c.kind + "-" + strings.ToLower(rand.Text())
	}
	s.Content, next, err = c.encode(next)
	return s, next, err
}

// refused returns the error of a write from that of its swap.
func (c *Collection[T]) refused(ctx context.Context, w *store.Write[T], err error) error {
	switch {
	case errors.Is(err, store.ErrFenced):
		c.term.End(fmt.Errorf("%w: %w", lead.ErrLost, err))
	case errors.Is(err, store.ErrConflict):
		err = errOvertaken
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		c.db.noteFull(err)
	}
	return w.Refuse(err)
}
