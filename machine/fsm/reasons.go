package fsm

import "github.com/millwright-go/millwright/decision"

var reasonUnseen = decision.NewReason("NothingSeen", "a guard has nothing to look at")
