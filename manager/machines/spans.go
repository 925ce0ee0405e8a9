package machines

import (
	"cmp"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
)

// tellSpans tells of the parts of the machine's life that a write, which is stored, has ended;
// before is the machine as it was.
func (p *pass) tellSpans(plan *machine.Plan, before *machine.Machine) {
	if before.Spec.ProviderID == "" && p.o.Machine.Spec.ProviderID != "" {
		p.recorded.Change(p.Key, func(at *time.Time) { *at = p.Now() })
		p.lasted(SpanCreation, before.CreatedAt)
	}
	for _, move := range plan.Moves {
		switch move.On {
		case machine.EventProvisioned:
			if p.o.Initialized != nil && p.o.Initialized.Code == codes.OK {
				p.lasted(SpanInitialization, p.recordedAt(before))
			}
		case machine.EventJoined:
			if before.Status.JoinedAfter == 0 {
				p.lasted(SpanJoin, before.Status.LastOperation.Time)
			}
		case machine.EventDrained, machine.EventForced:
			if p.o.Drain != nil {
				p.lasted(SpanDrain, cmp.Or(before.Status.StageSince, before.DeletedAt))
			}
		case machine.EventReleased:
			p.lasted(SpanDeletion, before.DeletedAt)
		}
	}
}

// recordedAt is when the machine's VM was recorded, or when its last step was.
func (p *pass) recordedAt(before *machine.Machine) time.Time {
	if at := p.recorded.Of(p.Key); !at.IsZero() {
		return at
	}
	return before.Status.LastOperation.Time
}

// lasted tells how long a span took that ends now; since is zero where that is not known.
func (p *pass) lasted(span Span, since time.Time) {
	if p.Lasted != nil && !since.IsZero() {
		p.Lasted(p.Key, span, max(0, p.Now().Sub(since)))
	}
}
