package apistore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// Options of a Collection. Client, Resource, Codec, Blank and BlankList are
// needed.
type Options[T object.Object[T], R Raw] struct {
	Client   rest.Interface // see NewClient
	Resource string         // the plural in the server's paths
	// Namespaced says that the objects are in namespaces. Namespace restricts the collection to one
	// namespace. If it is empty, the collection has all.
	Namespaced bool
	Namespace  string
	// NoStatus says that the kind has no status subresource. Updates of the status then check the
	// version and write nothing.
	NoStatus bool

	// Untracked says that the server need not record which program has set which field
	// (metadata.managedFields): the first update of an object, other than of its status, removes that
	// record, and the server keeps none from then on. It would be two fifths of a small object, and a
	// fourth of the server's work. The record of an object that somebody applies stays (kubectl apply
	// --server-side).
	Untracked bool

	Codec     Codec[T, R]
	Blank     func() R              // an empty object
	BlankList func() runtime.Object // an empty list of them

	Indexes map[store.Index]func(T) []string
	// Narrow has functions for some indexes, so that a live list need not read all objects. Such a
	// function returns the options with which the server lists the objects that the index finds for
	// value, and perhaps others. It returns false if there are no such options.
	Narrow map[store.Index]func(value string) (metav1.ListOptions, bool)

	// Report receives the errors that no call returns: a watch that breaks, and, for each version,
	// an object that can't be read in full. A version written through this collection may be left
	// out. It must return soon. Nil drops them.
	Report func(error)
}

// Collection keeps the objects of one kind on an API server; see the package. New makes it. It is
// safe for concurrent use. Cached reads, and the start of a watch, wait until Run has read all
// objects once.
type Collection[T object.Object[T], R Raw] struct {
	Options[T, R]
	client client[R]
	cache  *cache[T, R]
}

// New returns a Collection. The error says which option is missing.
func New[T object.Object[T], R Raw](o Options[T, R]) (*Collection[T, R], error) {
	switch {
	case o.Client == nil:
		return nil, errors.New("no Client")
	case o.Resource == "":
		return nil, errors.New("no Resource")
	case o.Codec == nil:
		return nil, errors.New("no Codec")
	case o.Blank == nil || o.BlankList == nil:
		return nil, errors.New("no Blank or BlankList")
	case o.Namespace != "" && !o.Namespaced:
		return nil, errors.New("a Namespace, but the kind has none")
	}
	if o.Report == nil {
		o.Report = func(error) {}
	}
	c := &Collection[T, R]{Options: o}
	c.client = client[R]{
		rest: o.Client, resource: o.Resource, namespaced: o.Namespaced, namespace: o.Namespace,
		blank: o.Blank, blankList: o.BlankList,
	}
	c.cache = newCache(o.Resource, o.Codec, o.Indexes, o.Report)
	if own, ok := o.Client.(lenientClient); ok {
		c.cache.unreadable = own.losses
	}
	return c, nil
}

// Get implements store.Reader.
func (c *Collection[T, R]) Get(ctx context.Context, k object.Key) (T, error) {
	return c.cache.Get(ctx, k)
}

// List implements store.Reader.
func (c *Collection[T, R]) List(ctx context.Context, q store.Query) ([]T, error) {
	return c.cache.List(ctx, q)
}

// Watch implements store.Collection. It never yields an error: while the server
// can't be reached it delivers nothing.
func (c *Collection[T, R]) Watch(ctx context.Context) iter.Seq2[store.Change[T], error] {
	return c.cache.Watch(ctx)
}

// Raw returns the object of that key as the server sent it last, from the cache. It is shared and
// must not be changed. It returns false if the object does not exist or nothing was read yet.
func (c *Collection[T, R]) Raw(k object.Key) (R, bool) { return c.cache.raw(k) }

// Synced reports whether all objects were read once.
func (c *Collection[T, R]) Synced() bool {
	select {
	case <-c.cache.Synced():
		return true
	default:
		return false
	}
}

// Live implements store.Collection.
func (c *Collection[T, R]) Live() store.Reader[T] { return &live[T, R]{Collection: c} }

// live reads from the server. It keeps the first list of all objects, and answers later lists from it:
// that list is never older than the call of Live.
type live[T object.Object[T], R Raw] struct {
	*Collection[T, R]

	mu   sync.Mutex
	list []T // all there is; nil until it was read
}

// Get implements store.Reader.
func (l *live[T, R]) Get(ctx context.Context, k object.Key) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if err := l.checkKey(k); err != nil {
		return none, about("get", k, err)
	}
	raw, err := l.client.get(ctx, k)
	if err != nil {
		return none, about("get", k, Translate(err))
	}
	return l.read(raw), nil
}

// List implements store.Reader. It reads all objects, unless the server can select those of the
// index.
func (l *live[T, R]) List(ctx context.Context, q store.Query) ([]T, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	values, known := l.Indexes[q.Index]
	switch {
	case q.Index == "" && q.Value != "":
		return nil, fmt.Errorf("list %q: %w", q.Value, errNoIndex)
	case q.Index != "" && !known:
		return nil, fmt.Errorf("list: %w: unknown index %q", store.ErrInvalid, q.Index)
	}
	all, err := l.candidates(ctx, q)
	if err != nil {
		return nil, about("list", object.Key{}, Translate(err))
	}
	out := make([]T, 0, len(all))
	for _, o := range all {
		if q.Index == "" || slices.Contains(values(o), q.Value) {
			out = append(out, o)
		}
	}
	return out, nil
}

// candidates returns what the server can select for a query, or all there is.
func (l *live[T, R]) candidates(ctx context.Context, q store.Query) ([]T, error) {
	if narrow := l.Narrow[q.Index]; narrow != nil {
		if o, can := narrow(q.Value); can {
			return l.ask(ctx, o)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.list == nil {
		list, err := l.ask(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		l.list = list
	}
	return l.list, nil
}

// ask lists objects on the server. It never returns a nil list without an error.
func (l *live[T, R]) ask(ctx context.Context, o metav1.ListOptions) ([]T, error) {
	list, err := l.client.list(ctx, o)
	if err != nil {
		return nil, err
	}
	out := []T{}
	err = eachItem(list, func(raw R) { out = append(out, l.cachedOrRead(raw)) })
	return out, err
}

// cachedOrRead is read, but returns the cache's object if that has the same version.
func (c *Collection[T, R]) cachedOrRead(raw R) T {
	if seen, found := c.cache.at(keyOf(raw), raw.GetResourceVersion()); found && seen.Raw.GetUID() == raw.GetUID() {
		return seen.Object
	}
	return c.read(raw)
}

// read converts an object from the server. It drops the problems, because the cache reports those of
// each version.
func (c *Collection[T, R]) read(raw R) T {
	o, _ := c.Codec.Read(raw)
	return o
}
