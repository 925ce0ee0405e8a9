package pools

import (
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/pace"
)

// keptFor is how long an answer about a group is kept for a call that waits for its turn. Without that,
// the look before the call would take each turn.
const keptFor = 2 * time.Minute

// calls reports whether the plan calls the provider, or announces such a call.
func (p *pass) calls() bool {
	if p.plan.Write != nil {
		return p.plan.Announces
	}
	switch p.plan.Effect.(type) {
	case machinepool.GetGroup, machinepool.CreateGroup, machinepool.UpdateGroup, machinepool.ScaleGroup, machinepool.DeleteGroup,
		*machinepool.RemoveInstances, machinepool.ReplaceOne, *machinepool.TellDrained:
		return true
	case machinepool.ReadPool, *machinepool.DrainNodes, *machinepool.KeepNodes, machinepool.RemoveBootstrap, machinepool.Renew,
		machinepool.RemoveToken:
	}
	return false
}

// paced holds a plan back that calls the provider, until it is the pool's turn.
func (p *pass) paced() (engine.Head, bool) {
	if p.turn || p.o.Class == nil || !p.calls() {
		return engine.Head{}, false
	}
	now := p.Now()
	at := p.Paces.Ask(pace.Of("pool", p.Key), p.o.Class, 1, now)
	if p.turn = at.IsZero(); p.turn {
		return engine.Head{}, false
	}
	if p.o.Looked && p.o.Group != nil {
		p.groups.Store(p.Key, known{uid: p.o.Pool.UID, group: p.o.Group, kept: true})
	}
	why := decision.Why{Reason: pace.ReasonPaced, Name: p.o.Class.Name, For: at.Sub(now)}
	return engine.Head{Verb: engine.Wait, Why: why, At: at}, true
}

// restore takes back what a pass concluded from a call that was not made.
func (p *pass) restore(before *machinepool.Observation) {
	p.o, p.turn = *before, false
	if p.o.Group != nil {
		p.groups.Store(p.Key, known{uid: p.o.Pool.UID, group: p.o.Group})
	}
}
