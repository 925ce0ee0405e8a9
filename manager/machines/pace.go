package machines

import (
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/pace"
	"github.com/millwright-go/millwright/object"
)

// forget forgets a machine that is gone.
func (r *reconciler) forget(m object.Key) {
	r.recorded.Forget(m)
	r.answers.Forget(m)
	r.written.Forget(m)
	r.paces.mu.Lock()
	defer r.paces.mu.Unlock()
	delete(r.paces.waiting, m)
}

// paced holds a plan back that calls the provider, until it is the machine's turn.
func (p *pass) paced() (engine.Head, bool) {
	n := p.calls()
	if p.Safety == nil || p.o.Class == nil || n == 0 || p.turn {
		return engine.Head{}, false
	}
	now := p.Now()
	at := p.Paces.Ask(pace.Of("machine", p.Key), p.o.Class, n, now)
	if p.turn = at.IsZero(); p.turn {
		return engine.Head{}, false
	}
	p.paces.wait(p.Key, true)
	p.keepVM()
	why := decision.Why{Reason: pace.ReasonPaced, Name: p.o.Class.Name, For: at.Sub(now)}
	return engine.Head{Verb: engine.Wait, Why: why, At: at}, true
}

// heard notes how a call ended. A provider that asks to wait has done nothing: the turn is over, and
// the call is made again in the next one.
func (p *pass) heard(err error, began time.Time) {
	if p.Safety == nil || p.o.Class == nil {
		return
	}
	held := p.Paces.Note(p.o.Class, err, began, p.Now()) > 0
	p.paces.wait(p.Key, held)
	if held {
		p.turn, p.slowed = false, true
	}
}
