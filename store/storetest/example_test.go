package storetest_test

import (
	"testing"
	"time"

	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/storetest"
)

// In the tests of a store this function is TestMyStore.
func ExampleRun() {
	_ = func(t *testing.T) {
		storetest.Run(t, storetest.Suite{New: func(_ *testing.T, now func() time.Time) store.Collection[*storetest.Object] {
			return store.NewMemory(now, storetest.Indexes())
		}})
	}
}
