// Package storetest checks that a store keeps the rules written on
// store.Collection.
//
// A store calls Run from a test of its own, see the example. The suite brings a
// kind made for the purpose, Object, and the Indexes that the store has to be
// built with. It looks at effects through Live, so that a store may cache, and
// gives caches time where it looks at them.
package storetest
