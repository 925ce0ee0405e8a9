package sim

import (
	"errors"
	"time"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/history"
	"github.com/millwright-go/millwright/store"
)

// process is one life of a manager, as its calls to the outside see it.
type process struct {
	*ground
	*apis
	*effort
	manager  *manager.Manager
	began    time.Time
	calls    int // to the outside
	killAt   int // the call at which it dies, or 0
	end      outcome
	dead     bool
	patience time.Duration            // how long a caller waits for a call
	limit    time.Duration            // until the deadline of a call; zero: there is none
	own      bool                     // the driver is a user's
	under    map[callee]driver.Method // calls to the driver that have not returned
	restart  func()                   // begins the next one
}

// callee is an object that the driver is called about.
type callee struct {
	kind   string
	object object.Key
}

// effort counts what all processes of a world have done.
type effort struct {
	// kills are those that were planned, steps are calls and deliveries.
	kills, passes, steps, writes int
}

// processStarted: another process begins.
type processStarted struct{ process *process }

type outcome int

const (
	spared outcome = iota
	killedBefore
	killedAfter
	killedLate // before the call, which is carried out nevertheless when time has passed
)

// These are the answers to calls that the world disturbs.
var (
	errDead   = errors.New("sim: the process is dead")
	errOutage = errors.New("sim: the API does not answer")
	errLost   = errors.New("sim: the answer was lost")
)

// call takes one call of a process to the outside through everything that may happen to it. do
// carries it out.
func (p *process) call(a api, do func() error) error {
	if p.dead {
		return errDead // no caller is alive
	}
	p.clock.Pause(p.latency()) // on its way
	if p.dead {
		if p.happens(p.hazards.Late) {
			p.later(do)
		}
		return errDead
	}
	p.calls++
	p.steps++
	if p.down(a) {
		return errOutage
	}
	outcome := p.outcome()
	switch outcome {
	case killedLate:
		p.later(do)
		fallthrough
	case killedBefore:
		p.kill()
		return errDead
	}
	p.acting = true
	err := do()
	p.acting = false
	p.check()
	if errors.Is(err, store.ErrConflict) {
		p.count(ConflictAnswered)
	}
	switch {
	case outcome == killedAfter:
		p.kill()
		return errDead
	case p.happens(p.hazards.LostAnswer):
		p.count(StoreAnswerLost)
		return errLost
	}
	p.clock.Pause(p.latency()) // the answer is on its way
	if p.dead {
		return errDead
	}
	return err
}

// write is a call that changes what is stored.
func (p *process) write(a api, do func() error) error {
	p.writes++
	return p.call(a, do)
}

// later carries out a call whose caller is dead.
func (p *process) later(do func() error) {
	p.After(p.upTo(p.hazards.LateBy), func() {
		p.count(CallLate)
		p.acting, p.belated = true, true
		_ = do() // no caller gets the answer
		p.acting = false
		p.check()
		p.belated = false
	})
}

func (p *process) outcome() outcome {
	if p.killAt == 0 || p.calls != p.killAt {
		return spared
	}
	return p.end
}

// kill ends the process, and starts another after a while.
func (p *process) kill() {
	p.emit(interrupted{})
	p.dead = true
	p.Mark(history.Kill, "manager killed")
	if p.end == killedAfter {
		p.count(KilledAfter)
	} else {
		p.count(KilledBefore)
	}
	p.After(p.upTo(p.hazards.Restart), p.restart)
}
