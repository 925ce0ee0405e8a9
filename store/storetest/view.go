package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// ledger is what one watch has delivered so far.
type ledger map[object.Key]*Object

// enter checks a change against what was delivered before.
func (l ledger) enter(c store.Change[*Object]) error {
	o := c.New
	if o == nil {
		o = c.Old
	}
	if o == nil {
		return errors.New("a change without any object")
	}
	if last := l[o.Key]; !same(last, c.Old) {
		return fmt.Errorf("%v: Old is not what was delivered last\nOld:  %+v\nlast: %+v", o.Key, c.Old, last)
	}
	if c.New == nil {
		delete(l, o.Key)
		return nil
	}
	if c.Old != nil && c.Old.UID != c.New.UID {
		return fmt.Errorf("%v: one change for two objects, %q and %q", o.Key, c.Old.UID, c.New.UID)
	}
	l[o.Key] = c.New
	return nil
}

// equals reports whether exactly these objects are in the ledger.
func (l ledger) equals(objects []*Object) bool {
	for _, o := range objects {
		if !same(l[o.Key], o) {
			return false
		}
	}
	return len(l) == len(objects)
}

// same reports whether both are nil, or equal by value.
func same(a, b *Object) bool { return reflect.DeepEqual(canonical(a), canonical(b)) }

// view is a consumer of one watch. It reads only on request. In between it holds up the watch, as a
// slow consumer does.
type view struct {
	t        require.TestingT
	next     func() (store.Change[*Object], error, bool)
	stop     func()
	cancel   context.CancelFunc
	patience time.Duration
	objects  ledger
}

// watch begins a view. It ends with the test at the latest.
func (r *trial) watch() *view {
	r.Helper()
	v := r.watchFor(r)
	r.Cleanup(v.end)
	return v
}

// watchFor begins a view that reports to t. The caller ends it.
func (r *trial) watchFor(t require.TestingT) *view {
	ctx, cancel := context.WithCancel(r.ctx)
	next, stop := iter.Pull2(r.store.Watch(ctx))
	return &view{
		t: t, next: next, stop: stop, cancel: cancel, patience: r.suite.Patience,
		objects: ledger{},
	}
}

func (v *view) end() {
	v.cancel()
	v.stop()
}

func (v *view) helper() {
	if t, ok := v.t.(interface{ Helper() }); ok {
		t.Helper()
	}
}

// step takes one change, which must come in time.
func (v *view) step(waitingFor string) store.Change[*Object] {
	v.helper()
	timer := time.AfterFunc(v.patience, v.cancel)
	defer timer.Stop()
	c, err, ok := v.next()
	require.True(v.t, ok, "the watch ended or delivered nothing within %v, waiting for: %s", v.patience, waitingFor)
	require.NoError(v.t, err)
	require.NoError(v.t, v.objects.enter(c))
	return c
}

// until takes changes until done holds, and returns those it took.
func (v *view) until(waitingFor string, done func() bool) []store.Change[*Object] {
	v.helper()
	var taken []store.Change[*Object]
	for !done() {
		taken = append(taken, v.step(waitingFor))
	}
	return taken
}

// shows takes changes until the view has exactly this state of the object.
func (v *view) shows(want *Object) []store.Change[*Object] {
	v.helper()
	return v.until(want.Key.String()+" at version "+want.Version, func() bool {
		o := v.objects[want.Key]
		return o != nil && o.UID == want.UID && o.Version == want.Version
	})
}

// lacks takes changes until the view has no object of that key.
func (v *view) lacks(k object.Key) []store.Change[*Object] {
	v.helper()
	return v.until(k.String()+" to be gone", func() bool { return v.objects[k] == nil })
}

// errStop is the error with which take stops follow.
var errStop = errors.New("stop")

// follow ranges over a watch in a goroutine of its own, and hands each change to take until take
// returns an error. The result waits for the end of the watch, and returns what ended it unless
// that is errStop.
func (r *trial) follow(ctx context.Context, take func(store.Change[*Object]) error) (wait func() error) {
	ended := make(chan error, 1)
	go func() {
		for change, err := range r.store.Watch(ctx) {
			if err == nil {
				err = take(change)
			}
			if err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	return func() error {
		if err := <-ended; !errors.Is(err, errStop) {
			return err
		}
		return nil
	}
}
