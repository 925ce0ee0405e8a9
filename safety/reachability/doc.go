// Package reachability decides whether a fleet is frozen because an API server does not answer, and
// which clocks of machines restart when both servers answer again.
//
// One pass for the process. Its memory, [State], begins as the zero value, which is frozen.
// State.Stage.Frozen() goes into the observations of machines, sets, orphans and nodes. It must be
// there before anything else of the plan is carried out. Writes of clocks go through the same check
// of moves as any write of a machine. When the stage becomes [Open], everything is decided again.
//
// The form of a pass is in the documentation of package safety.
package reachability
