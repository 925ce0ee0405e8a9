// Package scenario draws scenarios for package sim to play, and makes those smaller that break a
// rule. The same seed always gives the same scenario.
//
// Random is the one to begin with: anything may fail in it. Open adds what other programs and people
// do. RandomPools has pools in each scenario.
// Rush, ScaleDown and Moves look at one thing each, which many faults would hide: stale reads,
// fleets that become smaller amid a rollout, and machines that move from set to set.
//
// Shrink looks for a smaller scenario that breaks the same rule, and Trace lists what happens in
// one.
package scenario
