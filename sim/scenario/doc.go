// Package scenario draws scenarios for package sim to play, and makes scenarios that break a rule
// smaller. The same seed always gives the same scenario.
//
// Begin with Random: anything may fail in its scenarios. Open adds what other programs and people do.
// RandomPools has pools in each scenario. Rush, ScaleDown and Moves concentrate on one thing each, which
// many faults would hide: stale reads, fleets that are scaled down during a rollout, and machines that
// move from set to set.
//
// Shrink looks for a smaller scenario that breaks the same rule. Trace lists what happens in a scenario.
package scenario
