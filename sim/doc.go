// Package sim is a world for fleets to live in without anything real: time is
// virtual, chance comes from one seed, and the provider, the cluster and the
// stores are in memory. What decides in it is real: the reconcilers of package
// manager, exactly as a program would run them.
//
// Several passes are under way at once. Between any two calls to a store, the
// provider or the cluster others may go on, changes reach the caches late and
// sometimes twice, calls fail or lose their answers, and the manager may be
// killed, with the call at which it dies carried out or not. Everything
// follows from Options.Seed: the same seed gives the same run.
//
// After every effect the world is held to what must be true at any moment; a
// World keeps what it found in Violations. What must become true is the
// caller's to say, with Until.
package sim
