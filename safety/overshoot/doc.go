// Package overshoot decides whether a deployment or a set has more machines than it may ever have.
// Then it freezes: no machine is created until the number is back within bounds.
//
// Make a pass for each deployment, and for each set without one, when its number of machines changes.
// Pass the labels that it writes to the sets' own decisions, by safety.Policy.Frozen:
//
//	setObservation.Frozen = state.Stage.Frozen() || policy.Frozen(&set.Meta)
//
// state is the State of package reachability. See package safety for the form of a pass.
package overshoot
