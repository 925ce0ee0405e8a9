package manager_test

import (
	"context"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// broken is a collection whose watches break at once. enough ends a test that begins too many.
type broken struct {
	store.Collection[*machine.Class]
	watches int
	enough  func()
}

func (b *broken) Watch(context.Context) iter.Seq2[store.Change[*machine.Class], error] {
	return func(yield func(store.Change[*machine.Class], error) bool) {
		if b.watches++; b.watches == 100 {
			b.enough()
		}
		yield(store.Change[*machine.Class]{}, errNo)
	}
}

// TestBrokenWatchesPause: a watch that breaks is begun again, and not without a pause.
func TestBrokenWatchesPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		within, stop := context.WithTimeout(t.Context(), 10*time.Second+time.Millisecond)
		defer stop()
		o := manager.InMemory(nil)
		o.Driver, o.Policies.Safety = driver.Unimplemented{}, safety.Off()
		classes := &broken{Collection: o.Store.Classes, enough: stop}
		o.Store.Classes = classes
		m, err := manager.New(o)
		require.NoError(t, err)
		require.NoError(t, m.Run(within))
		require.Equal(t, 11, classes.watches, "in ten seconds")
	})
}
