package backoff

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/internal/times"
)

// refusalMemory is how long a refusal counts after the end of its wait if no further answer comes. It is far
// longer than the default of Policy.ClassBackoffMax.
const refusalMemory = 6 * time.Hour

// State is what a process remembers about the creates of one class: whether the provider refuses them,
// and from when on the next may be tried. The zero value means that none was refused. State is immutable: its
// methods return a new one. If it is lost, each waiting machine is tried once more.
//
// A first refusal slows the class. From then on one machine at a time is tried, after a wait that
// doubles with each refusal. A success lets the next machine be tried at once, then two at a time,
// four, and so on. After five successes in a row the class is no longer slowed. A refusal before
// that starts again with the first wait.
type State struct {
	code      codes.Code // of the latest refusal
	since     time.Time  // of the first refusal in a row
	until     time.Time  // when the next machine may be tried
	failures  int        // in a row; zero: the class is not slowed
	successes int        // successes in a row since
	round     int        // counts the answers that started a wait or ended the slowdown
	inputs    machine.Inputs
	turns     []turn
}

// turn is a permit for one machine to try a create.
type turn struct {
	machine object.Key
	round   int
}

// endAfterSuccesses is how many successes in a row end a slowdown.
const endAfterSuccesses = 5

// Slows reports whether CreateMachine's answer with this code concerns the whole class, and not only one machine:
// by the table of recoveries, the quota, the class or the credentials must change.
func Slows(code codes.Code) bool {
	switch codes.RecoveryFor(codes.CreateMachine, code).Remedy {
	case codes.RaiseQuota, codes.FixArgument, codes.GrantPermission, codes.FixCredentials:
		return true
	}
	return false
}

// Slowed returns the backoff of the class. Nil: it is not slowed, or the refusal does not count any more,
// because it is old or the versions of class and secret (in) have changed. trying: the last machine that was
// tried was created, so that no warning is needed.
func (c State) Slowed(class *machine.Class, in machine.Inputs, now time.Time) (slowed *machine.ClassBackoff, trying bool) {
	if class == nil || !c.applies(in, now) {
		return nil, false
	}
	slowed = &machine.ClassBackoff{Class: class.Name, Code: c.code, Since: c.since, Until: c.until}
	if class.NodeTemplate != nil {
		slowed.Zone = class.NodeTemplate.Zone
	}
	return slowed, c.successes > 0
}

// Idle reports whether there is nothing to remember.
func (c State) Idle() bool { return c.failures == 0 && len(c.turns) == 0 }

// Wait returns how long it takes until the next machine may be tried. Zero: the class is not
// slowed, or a machine may be tried now.
func (c State) Wait(now time.Time) time.Duration {
	if c.failures == 0 {
		return 0
	}
	return max(0, c.until.Sub(now))
}

// applies reports whether a refusal still counts, given its inputs and its age.
func (c State) applies(in machine.Inputs, now time.Time) bool {
	return c.failures > 0 && c.inputs == ofClass(in) && now.Before(c.until.Add(refusalMemory)) && !now.Before(c.since)
}

// ofClass returns the inputs that all machines of a class share.
func ofClass(in machine.Inputs) machine.Inputs {
	return machine.Inputs{Class: in.Class, Secret: in.Secret}
}

// Ask decides whether a machine may try a create now. If the class is slowed, a permit is the machine's turn,
// which lasts until Answer or Leave.
func (c State) Ask(m object.Key, in machine.Inputs, p *safety.Policy, now time.Time) (State, machine.CreatePermit) {
	has := slices.ContainsFunc(c.turns, func(t turn) bool { return t.machine == m })
	switch {
	case has || !c.applies(in, now):
		return c, machine.CreatePermit{Given: true}
	case now.Before(c.until):
		return c, machine.CreatePermit{At: c.until}
	case len(c.turns) >= 1<<min(c.successes, endAfterSuccesses):
		return c, machine.CreatePermit{At: now.Add(p.WithDefaults().ClassBackoffRetry)}
	}
	c.turns = append(slices.Clone(c.turns), turn{m, c.round})
	return c, machine.CreatePermit{Given: true}
}

// Leave ends a machine's turn that led to no create.
func (c State) Leave(m object.Key) State {
	c.turns = slices.DeleteFunc(slices.Clone(c.turns), func(t turn) bool { return t.machine == m })
	return c
}

// Answer records the answer to a create. If the class is slowed, only the answers to machines with a turn that
// was given after the latest refusal count: other creates were under way when the class was refused. longest is
// the creation timeout, which limits the wait if it is shorter than the policy's maximum.
func (c State) Answer(m object.Key, in machine.Inputs, code codes.Code, p *safety.Policy, longest time.Duration, now time.Time) State {
	at := slices.IndexFunc(c.turns, func(t turn) bool { return t.machine == m && t.round == c.round })
	c, p = c.Leave(m), p.WithDefaults()
	refused := Slows(code)
	switch {
	case !c.applies(in, now):
		if refused && p.ClassBackoffBase > 0 {
			c = State{round: c.round + 1, since: times.Stamp(now), inputs: ofClass(in)}
			return c.refuse(code, p, longest, now)
		}
		if code == codes.OK {
			return State{round: c.round + 1}
		}
		return c
	case at < 0:
		return c
	case code == codes.OK:
		if c.successes++; c.successes >= endAfterSuccesses {
			return State{round: c.round + 1}
		}
		return c
	case refused:
		if c.successes > 0 {
			c.failures, c.since = 0, times.Stamp(now)
		}
		return c.refuse(code, p, longest, now)
	}
	if c.successes > 0 {
		c.failures = 1
	}
	return c.wait(p, longest, now) // the error is not about the class: wait again, but not longer than before
}

// refuse counts a refusal.
func (c State) refuse(code codes.Code, p *safety.Policy, longest time.Duration, now time.Time) State {
	c.failures, c.code = c.failures+1, code
	return c.wait(p, longest, now)
}

// wait starts the wait that follows c.failures failures.
func (c State) wait(p *safety.Policy, longest time.Duration, now time.Time) State {
	most := p.ClassBackoffMax
	if longest > 0 {
		most = min(most, longest)
	}
	wait := p.ClassBackoffBase
	for n := 1; n < c.failures && wait < most; n++ {
		wait *= 2
	}
	c.successes, c.round = 0, c.round+1
	c.until = times.Stamp(now).Add(min(wait, most) + time.Second)
	return c
}
