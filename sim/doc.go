// Package sim simulates the world around fleets. Time is virtual, chance comes from one seed, and
// the provider, the cluster and the stores are in memory. The reconcilers are the real ones of
// package manager, exactly as a program runs them.
//
// Several passes are under way at once. Between any two calls to a store, the provider or the
// cluster, other passes may go on. Changes reach the caches late and sometimes twice. Calls fail or
// lose their answers. The manager may be killed, and the call at which it dies is carried out or
// not. Everything follows from Options.Seed: the same seed gives the same run.
//
// A driver under test is what Options.Driver makes. The provider fails below it, in all that it asks of
// World.Provider, through a Transport or in World.Request, and the manager may be killed during
// a call. The world stands still while the driver computes. World.Sleep lets its time pass. Of VMs that
// are not at World.Provider the world sees what the driver answers: the invariants about VMs have nothing
// to look at, and a Property says what must be true of them.
//
// What must be true at any moment are invariants. The world emits events: something was stored, a
// pod was told to go, a call was made. Each invariant sees them all (invariant.go). It is a type in
// one of the files check_*.go, with the number that docs/reference/invariants.md gives it: P7 is p07
// in check_bounds.go. Violations returns what they found. The caller says what must become true, with
// Until. Or the caller plays a Scenario, which package scenario draws: Play says what was violated,
// and what is left.
package sim
