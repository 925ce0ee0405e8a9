package machine

import (
	"time"

	"github.com/millwright-go/millwright/decision"
)

// A machine that has been unhealthy for too long is marked failed, and replaced.
// Where many are unhealthy at a time that can take a whole fleet down, so its
// owner may set a budget of replacements. The budget is kept elsewhere (package
// safety): a machine cannot see the others. What is decided here is when it is
// asked for, and that no machine is marked failed without it.

// grantRetry is after how long a verdict that was refused is asked for again.
const grantRetry = 30 * time.Second

// awaitGrant holds a verdict back until the budget of replacements allows it: ask is
// asked for the reason why, refused says what becomes of it while that is refused. Without a
// budget nothing is held back.
func (h health) awaitGrant(ask AskGrant, why, refused decision.Why) (Plan, bool) {
	if !h.o.Budgeted {
		return Plan{}, false
	}
	grant := h.o.Grant
	switch {
	case grant == nil:
		return Plan{Effect: ask, Why: why}, true
	case grant.Allowed && (grant.Until.IsZero() || h.now.Before(grant.Until)):
		return Plan{}, false
	}
	refused.Detail = grant.Detail
	if grant.Allowed {
		refused.Detail = "the grant has lapsed"
	}
	return Plan{At: h.now.Add(grantRetry), Why: refused, Warn: refused}, true
}
