package reachability

import "github.com/millwright-go/millwright/decision"

// The reasons of decisions about reachability.
var (
	reasonCheck       = decision.NewReason("Check", "checking that the API servers answer")
	reasonUnproven    = decision.NewReason("NotAnsweredYet", "frozen until both API servers have answered: {detail}")
	ReasonReachable   = decision.NewReason("Reachable", "both API servers answer")
	reasonDown        = decision.NewReason("Down", "{name} does not answer, {code}: {detail}; the fleet freezes in {for}")
	ReasonUnreachable = decision.NewReason("Unreachable", "frozen: {name} has not answered for {for}: {code}: {detail}")
	reasonBack        = decision.NewReason("Back", "both API servers answer again: looking for clocks to restart")
	ReasonRestart     = decision.NewReason("ClockRestarted", "clocks restarted: nothing could be judged until now")
	reasonSettling    = decision.NewReason("Settling", "both API servers answer again; frozen for another {for}, so that nodes can say how they are")
)
