// Package answer turns errors of ports into what decisions are made from.
package answer

import (
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
)

// Of returns the outcome of a call that returned err.
func Of(err error) machine.Outcome {
	if err == nil {
		return machine.Outcome{}
	}
	return machine.Outcome{Code: codes.Of(err), Message: codes.Message(err)}
}
