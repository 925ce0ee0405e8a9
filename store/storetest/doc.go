// Package storetest checks that a store keeps the rules written on
// store.Collection.
//
// A store calls Run from a test of its own, see the example. The suite has a kind for the purpose,
// Object, and the Indexes that the store must be built with. It checks effects through Live, so
// that a store may cache, and gives caches time before it checks them.
package storetest
