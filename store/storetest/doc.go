// Package storetest checks that a store keeps the rules written on
// store.Collection.
//
// A store runs it from a test of its own:
//
//	func TestMyStore(t *testing.T) {
//		storetest.Run(t, storetest.Suite{New: func(t *testing.T, now func() time.Time) store.Collection[*storetest.Object] {
//			return mystore.New(t.TempDir(), now, storetest.Indexes())
//		}})
//	}
//
// The suite brings a kind made for the purpose, Object, and the indexes that
// the store has to be built with. It looks at effects through Live, so that a
// store may cache, and waits for caches by watching.
package storetest
