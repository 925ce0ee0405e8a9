package apistore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/storetest"
)

// ledger has the objects as a watch has delivered them so far.
type ledger struct {
	mu      sync.Mutex
	objects map[object.Key]*storetest.Object
	ended   map[object.Key]int // how often an object with that key has ended
	fault   error              // the last violation of the rules of a watch
}

// follow watches a collection until the test ends.
func follow(t *testing.T, c *collection) *ledger {
	t.Helper()
	l := &ledger{objects: map[object.Key]*storetest.Object{}, ended: map[object.Key]int{}}
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() {
		for change, err := range c.Watch(ctx) {
			l.enter(change, err)
		}
	})
	t.Cleanup(func() { cancel(); watching.Wait() })
	return l
}

func (l *ledger) enter(c store.Change[*storetest.Object], err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		l.fault = err
	case c.New == nil:
		delete(l.objects, c.Old.Key)
		l.ended[c.Old.Key]++
	case c.Old != nil && c.Old.UID != c.New.UID:
		l.fault = fmt.Errorf("%v: two objects in one change", c.New.Key)
	default:
		if was := l.objects[c.New.Key]; was != nil && was.UID != c.New.UID {
			l.fault = fmt.Errorf("%v: the end of the first object was left out", c.New.Key)
		}
		l.objects[c.New.Key] = c.New
	}
}

func (l *ledger) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.objects)
}

func (l *ledger) version(k object.Key) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.objects[k]; o != nil {
		return o.Version
	}
	return ""
}

func (l *ledger) ends(k object.Key) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended[k]
}

func (l *ledger) violation() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fault
}
