// Package reachability decides whether a fleet is frozen because an API server does not answer, and
// which clocks of machines restart when both servers answer again.
//
// Each process makes one pass after the other. Its memory, [State], begins as the zero value, which is
// frozen. State.Stage.Frozen() goes into the observations of machines, sets, orphans and nodes, before
// anything else of the plan is carried out. Writes that restart clocks are checked for valid moves,
// like all writes of machines. When the stage becomes [Open], decide about everything again.
//
// See package safety for the form of a pass.
package reachability
