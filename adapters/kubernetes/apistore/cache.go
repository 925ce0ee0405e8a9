package apistore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	clientcache "k8s.io/client-go/tools/cache"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// The pause before the next try to list or watch doubles from firstPause to lastPause.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
	doublings  = 6 // from firstPause to lastPause
)

// cache has the objects as the server's watch has shown them, and the own writes since. It is a
// reflector's store: the reflector calls Add, Update, Delete and Replace one at a time, and
// UpdateResourceVersion after each of them.
type cache[T object.Object[T], R Raw] struct {
	kind   string
	codec  Codec[T, R]
	mirror *store.Mirror[T] // serves reads and watches
	report func(error)
	// unreadable has the fields that the client left out because it could not read them. It is nil if the
	// client is not from NewClient.
	unreadable *losses
	synced     chan struct{} // closed once all objects were read
	filled     sync.Once

	mu      sync.Mutex
	current map[object.Key]R // the raw form of each object in the mirror
	ahead   map[object.Key]R // own writes that the watch has not shown yet
	// position is the version up to which the watch has shown everything. It is empty until all
	// objects were read.
	position string
}

func newCache[T object.Object[T], R Raw](kind string, codec Codec[T, R], indexes map[store.Index]func(T) []string, report func(error)) *cache[T, R] {
	return &cache[T, R]{
		kind: kind, codec: codec, mirror: store.NewMirror(indexes), report: report, synced: make(chan struct{}),
		current: map[object.Key]R{}, ahead: map[object.Key]R{},
	}
}

// ready returns once all objects were read, or with the error of ctx.
func (c *cache[T, R]) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-c.synced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *cache[T, R]) raw(k object.Key) (R, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	raw, found := c.current[k]
	return raw, found
}

// at returns an object if the cache has it at that version.
func (c *cache[T, R]) at(k object.Key, version string) (R, bool) {
	raw, found := c.raw(k)
	return raw, found && raw.GetResourceVersion() == version
}

// wrote puts the answer to an own write into the cache, before the watch shows it, so that a writer
// never reads the state before its write. It ignores answers before all objects were read, and those
// that the cache is ahead of already.
func (c *cache[T, R]) wrote(raw R, o T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := keyOf(raw)
	known, found := c.current[k]
	switch {
	case gone(raw):
		if found && known.GetUID() == raw.GetUID() {
			c.ahead[k] = raw
			delete(c.current, k)
			c.mirror.Drop(k)
		}
	case c.endedByOwnWrite(raw):
	case c.position == "" || !newer(raw.GetResourceVersion(), c.position):
	case found && !newer(raw.GetResourceVersion(), known.GetResourceVersion()):
	default:
		c.current[k], c.ahead[k] = raw, raw
		c.mirror.Put(o)
	}
}

// gone reports whether the answer to a write says that the write ended the object: it was being
// deleted, and its last finalizer was removed. The answer's version is that of the state before.
func gone(raw metav1.Object) bool {
	grace := raw.GetDeletionGracePeriodSeconds()
	return raw.GetDeletionTimestamp() != nil && len(raw.GetFinalizers()) == 0 && (grace == nil || *grace == 0)
}

// endedByOwnWrite reports whether an own write has ended an object. The caller holds c.mu.
func (c *cache[T, R]) endedByOwnWrite(raw R) bool {
	last, found := c.ahead[keyOf(raw)]
	return found && ended(last, raw)
}

// newer reports whether version a is later than b. If it can't tell, it returns false.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// isAheadOf reports whether the cache has a later state of an object than raw, which the watch
// delivers. If not, it forgets the own write. The caller holds c.mu.
func (c *cache[T, R]) isAheadOf(raw R) bool {
	k := keyOf(raw)
	last, found := c.ahead[k]
	if found && (newer(last.GetResourceVersion(), raw.GetResourceVersion()) || ended(last, raw)) {
		return true
	}
	delete(c.ahead, k)
	return false
}

// ended reports whether the own write with the answer last has ended the object raw.
func ended(last, raw metav1.Object) bool { return gone(last) && last.GetUID() == raw.GetUID() }

// UpdateResourceVersion implements the reflector's store: the watch has reached this version.
func (c *cache[T, R]) UpdateResourceVersion(version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.position = version
}

// Add implements the reflector's store.
func (c *cache[T, R]) Add(obj any) error { return c.Update(obj) }

// Update implements the reflector's store.
func (c *cache[T, R]) Update(obj any) error {
	raw, o, problems, err := c.read(obj)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.position = raw.GetResourceVersion()
	if !c.isAheadOf(raw) {
		c.current[keyOf(raw)] = raw
		c.mirror.Put(o)
	}
	c.mu.Unlock()
	c.reportAll(problems)
	return nil
}

// Delete implements the reflector's store.
func (c *cache[T, R]) Delete(obj any) error {
	raw, ok := obj.(R)
	if !ok {
		return fmt.Errorf("the watch delivers a %T", obj)
	}
	k := keyOf(raw)
	c.unreadable.forget(raw.GetUID())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.position = raw.GetResourceVersion()
	if last, found := c.ahead[k]; found && last.GetUID() == raw.GetUID() {
		delete(c.ahead, k) // nothing comes after the end of an object, so an own write to it no longer counts
	}
	if !c.isAheadOf(raw) {
		delete(c.current, k)
		c.mirror.Drop(k)
	}
	return nil
}

// Replace implements the reflector's store. An own write that the list does not know of yet stays.
func (c *cache[T, R]) Replace(list []any, version string) error {
	objects, current := make([]T, 0, len(list)), make(map[object.Key]R, len(list))
	var problems []*object.FieldError
	for _, item := range list {
		raw, o, found, err := c.read(item)
		if err != nil {
			return err
		}
		problems = append(problems, found...)
		current[keyOf(raw)] = raw
		objects = append(objects, o)
	}
	c.replace(objects, current, version)
	c.reportAll(problems)
	return nil
}

func (c *cache[T, R]) replace(objects []T, current map[object.Key]R, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// An own write is forgotten if the list shows it: the end of an object if the object is not
	// listed, any other write if the list is not older.
	for k, raw := range c.ahead {
		listed, found := current[k]
		endedButListed := found && ended(raw, listed)
		if !endedButListed && (gone(raw) || !newer(raw.GetResourceVersion(), version)) {
			delete(c.ahead, k)
			continue
		}
		objects = slices.DeleteFunc(objects, func(listed T) bool { return listed.ObjectMeta().Key == k })
		if delete(current, k); gone(raw) {
			continue
		}
		o, _ := c.codec.Read(raw)
		current[k] = raw
		objects = append(objects, o)
	}
	c.current, c.position = current, version
	c.mirror.Replace(objects)
	c.filled.Do(func() { close(c.synced) })
}

// Resync implements the reflector's store.
func (c *cache[T, R]) Resync() error { return nil }

// read translates an object from the reflector. It also returns its problems, to be reported once
// the object is in the cache. Those of a version that is in the cache already are left out.
func (c *cache[T, R]) read(item any) (R, T, []*object.FieldError, error) {
	var none T
	raw, ok := item.(R)
	if !ok {
		return raw, none, nil, fmt.Errorf("the server sends a %T", item)
	}
	o, problems := c.codec.Read(raw)
	if before, known := c.raw(keyOf(raw)); known && before.GetResourceVersion() == raw.GetResourceVersion() {
		return raw, o, nil, nil
	}
	problems = append(problems, c.unreadable.of(raw)...)
	for i, problem := range problems {
		if problem.Key == (object.Key{}) {
			problems[i] = problem.Of(c.kind, keyOf(raw))
		}
	}
	return raw, o, problems, nil
}

// reportAll reports problems. The caller must not hold c.mu, because Report may read the cache.
func (c *cache[T, R]) reportAll(problems []*object.FieldError) {
	for _, problem := range problems {
		c.report(problem)
	}
}

// Run keeps the cache up to date until ctx ends, and returns nil then. Call it once.
func (c *Collection[T, R]) Run(ctx context.Context) error {
	silent := logr.Discard() // Report gets the errors
	r := clientcache.NewReflectorWithOptions(c.listerWatcher(), c.Blank(), c.cache, clientcache.ReflectorOptions{
		Name: c.Resource, Logger: &silent,
		Backoff: &wait.Backoff{Duration: firstPause, Factor: 2, Jitter: 0.5, Steps: doublings, Cap: lastPause},
	})
	pause := firstPause
	for ctx.Err() == nil {
		began := time.Now()
		_ = r.ListAndWatchWithContext(logr.NewContext(ctx, silent)) // listerWatcher has reported the error
		if time.Since(began) > lastPause {
			pause = firstPause
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		pause = min(2*pause, lastPause)
	}
	return nil
}

// listerWatcher makes the reflector's lists and watches. It reports failures, because the reflector retries
// most of them silently.
func (c *Collection[T, R]) listerWatcher() clientcache.ListerWatcher {
	report := func(ctx context.Context, verb string, err error) {
		if err != nil && ctx.Err() == nil {
			c.Report(fmt.Errorf("%s %s: %w", verb, c.Resource, err))
		}
	}
	return &clientcache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := c.client.list(ctx, o)
			report(ctx, "list", err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			changes, err := c.client.watch(ctx, o)
			report(ctx, "watch", err)
			return changes, err
		},
	}
}

// eachItem calls do for the objects of a list.
func eachItem[R Raw](list runtime.Object, do func(R)) error {
	return meta.EachListItem(list, func(item runtime.Object) error {
		raw, ok := item.(R)
		if !ok {
			return fmt.Errorf("the server lists a %T", item)
		}
		do(raw)
		return nil
	})
}
