// Package sim simulates the world around fleets. Time is virtual, randomness comes from one seed, and
// the provider, the cluster and the stores are in memory. The reconcilers are the real ones of
// package manager, exactly as a program runs them.
//
// Several passes (reconciles) are under way at once. Between any two calls to a store, the provider or
// the cluster, other passes may go on. Changes reach the caches late and sometimes twice. Calls fail or
// lose their answers. The manager may be killed during a call, which is carried out or not. Everything
// follows from Options.Seed: the same seed gives the same run.
//
// Options.Driver puts a driver under test. The faults of the provider are below it, in the driver's
// requests: those to World.Provider, through a Transport or in World.Request. The manager may be killed
// during any of them. No virtual time passes while the driver computes; World.Sleep lets it pass. If
// the VMs are not at World.Provider, the world knows of them only what the driver answers. The
// invariants about VMs then check nothing, and a Property says what must be true of the VMs.
//
// Invariants are what must be true at any moment. The world emits events: something was stored, a
// pod was told to terminate, a call was made. Each invariant sees all events (invariant.go). It is a
// type in one of the files check_*.go, with the number that docs/reference/invariants.md gives it: P7
// is p07 in check_bounds.go. Violations returns what they found. The caller says with Until what must
// become true. Or the caller plays a Scenario, which package scenario draws: Play returns the first
// violation, and what is left at the end.
package sim
