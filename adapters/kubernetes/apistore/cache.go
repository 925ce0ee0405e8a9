package apistore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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

// cache follows the server's watch. It is a reflector's store: the reflector calls Add, Update, Delete and Replace one at
// a time, and UpdateResourceVersion after each of them.
type cache[T object.Object[T], R Raw] struct {
	*store.Follower[T, R]
	kind   string
	codec  Codec[T, R]
	report func(error)
	// unreadable has the fields that the client left out because it could not read them. It is nil if the
	// client is not from NewClient.
	unreadable *losses
}

func newCache[T object.Object[T], R Raw](kind string, codec Codec[T, R], indexes map[store.Index]func(T) []string, report func(error)) *cache[T, R] {
	return &cache[T, R]{Follower: store.NewFollower[T, R](indexes), kind: kind, codec: codec, report: report}
}

// state returns what the follower is told of an object.
func state[T object.Object[T], R Raw](raw R, o T) store.State[T, R] {
	return store.State[T, R]{Key: keyOf(raw), Object: o, UID: string(raw.GetUID()), Order: order(raw.GetResourceVersion()), Raw: raw}
}

// ended returns what the follower is told of an object that has ended at an order, or at zero, if that is not known.
func ended[T object.Object[T], R Raw](raw R, at uint64) store.State[T, R] {
	return store.State[T, R]{Key: keyOf(raw), UID: string(raw.GetUID()), Order: at}
}

// order returns a resource version as a number, which is higher for later versions, or zero if it is none.
func order(version string) uint64 {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0 // n is not, if the version has too many digits
	}
	return n
}

func (c *cache[T, R]) raw(k object.Key) (R, bool) {
	s, found := c.State(k)
	return s.Raw, found
}

// at returns an object if the cache has it at that version.
func (c *cache[T, R]) at(k object.Key, version string) (store.State[T, R], bool) {
	s, found := c.State(k)
	return s, found && s.Raw.GetResourceVersion() == version
}

// wrote puts the answer to an own write into the cache, before the watch shows it.
func (c *cache[T, R]) wrote(raw R, o T) {
	if gone(raw) {
		c.Wrote(ended[T](raw, 0)) // the answer's version is that of the state before
		return
	}
	c.Wrote(state(raw, o))
}

// gone reports whether the answer to a write says that the write ended the object: it was being
// deleted, and its last finalizer was removed.
func gone(raw metav1.Object) bool {
	grace := raw.GetDeletionGracePeriodSeconds()
	return raw.GetDeletionTimestamp() != nil && len(raw.GetFinalizers()) == 0 && (grace == nil || *grace == 0)
}

// UpdateResourceVersion implements the reflector's store.
func (c *cache[T, R]) UpdateResourceVersion(string) {}

// Add implements the reflector's store.
func (c *cache[T, R]) Add(obj any) error { return c.Update(obj) }

// Update implements the reflector's store.
func (c *cache[T, R]) Update(obj any) error {
	raw, o, problems, err := c.read(obj)
	if err != nil {
		return err
	}
	c.Show(state(raw, o))
	c.reportAll(problems)
	return nil
}

// Delete implements the reflector's store.
func (c *cache[T, R]) Delete(obj any) error {
	raw, ok := obj.(R)
	if !ok {
		return fmt.Errorf("the watch delivers a %T", obj)
	}
	c.unreadable.forget(raw.GetUID())
	c.Show(ended[T](raw, order(raw.GetResourceVersion())))
	return nil
}

// Replace implements the reflector's store. It hides that of the follower.
func (c *cache[T, R]) Replace(list []any, version string) error {
	all := make([]store.State[T, R], 0, len(list))
	var problems []*object.FieldError
	for _, item := range list {
		raw, o, found, err := c.read(item)
		if err != nil {
			return err
		}
		problems = append(problems, found...)
		all = append(all, state(raw, o))
	}
	c.Follower.Replace(all, order(version))
	c.reportAll(problems)
	return nil
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

// reportAll reports problems.
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
