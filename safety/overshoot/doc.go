// Package overshoot decides when a deployment or a set has more machines than it may ever have.
// Then it freezes: nothing is created until the number is back within bounds.
//
// A pass over each deployment, and over each set without one, when the number of machines changes.
// The labels that it writes reach the sets' own decisions through safety.Policy.Frozen:
//
//	setObservation.Frozen = state.Stage.Frozen() || policy.Frozen(&set.Meta)
//
// state is what package reachability keeps. The form of a pass is in the documentation of package
// safety.
package overshoot
