package lead_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/lead"
	"github.com/millwright-go/millwright/lead/leadtest"
)

// schedule is what happens to the processes of an election.
type schedule struct {
	candidates []candidate
	steps      []step
}

// candidate is a process of a schedule.
type candidate struct {
	wall    time.Duration // how far its wall clock is off from the start
	percent int           // how fast its clock runs
	// stalls says that its monotonic clock stops while the machine is suspended. The wall clock is right then.
	stalls bool
	slow   time.Duration // for how long do goes on after the end of its term
}

// step is something that happens to one process, and the time after it in which nobody looks.
type step struct {
	process     int
	what        string
	there, back time.Duration // of calls of the lease from now on: how long they and their answers are under way
	jump        time.Duration
	after       time.Duration
}

func durations(from, to time.Duration) *rapid.Generator[time.Duration] {
	return rapid.Map(rapid.Int64Range(from.Milliseconds(), to.Milliseconds()), func(ms int64) time.Duration {
		return time.Duration(ms) * time.Millisecond
	})
}

func drawSchedule(t *rapid.T) schedule {
	var s schedule
	for range rapid.IntRange(2, 3).Draw(t, "processes") {
		s.candidates = append(s.candidates, candidate{
			wall:    durations(-time.Hour, time.Hour).Draw(t, "wall"),
			percent: rapid.IntRange(70, 130).Draw(t, "percent"),
			stalls:  rapid.Bool().Draw(t, "stalls"),
			slow:    durations(0, ttl/2).Draw(t, "slow"),
		})
	}
	for range rapid.IntRange(1, 30).Draw(t, "steps") {
		s.steps = append(s.steps, step{
			process: rapid.IntRange(0, len(s.candidates)-1).Draw(t, "process"),
			what:    rapid.SampledFrom([]string{"network", "network", "heal", "clock", "stop", "start"}).Draw(t, "what"),
			there:   durations(0, 2*ttl).Draw(t, "there"), back: durations(0, ttl).Draw(t, "back"),
			jump:  durations(-ttl, 2*ttl).Draw(t, "jump"),
			after: durations(1, ttl).Draw(t, "after"),
		})
	}
	return s
}

// network is the way of one process to the lease. What is under way arrives, also when its caller waits no more.
type network struct {
	lead.Lease
	mu          sync.Mutex
	there, back time.Duration
}

func (n *network) set(there, back time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.there, n.back = there, back
}

func through[R any](ctx context.Context, n *network, do func(context.Context) (R, error)) (R, error) {
	n.mu.Lock()
	there, back := n.there, n.back
	n.mu.Unlock()
	type answer struct {
		result R
		err    error
	}
	answers := make(chan answer, 1)
	go func() {
		<-time.After(there)
		result, err := do(context.WithoutCancel(ctx))
		<-time.After(back)
		answers <- answer{result, err}
	}()
	select {
	case a := <-answers:
		return a.result, a.err
	case <-ctx.Done():
		var none R
		return none, ctx.Err()
	}
}

func (n *network) Take(ctx context.Context, id string, ttl time.Duration) (lead.Token, error) {
	return through(ctx, n, func(ctx context.Context) (lead.Token, error) { return n.Lease.Take(ctx, id, ttl) })
}

func (n *network) Renew(ctx context.Context, t lead.Token, ttl time.Duration) error {
	_, err := through(ctx, n, func(ctx context.Context) (none struct{}, err error) { return none, n.Lease.Renew(ctx, t, ttl) })
	return err
}

func (n *network) Release(ctx context.Context, t lead.Token) error {
	_, err := through(ctx, n, func(ctx context.Context) (none struct{}, err error) { return none, n.Lease.Release(ctx, t) })
	return err
}

// play plays a schedule. It returns what was wrong.
type play struct {
	t     *testing.T
	lease *leadtest.Memory
	all   []*player
	wrong []string
	began time.Time
}

// player is a candidate with its network. stop is nil while it does not run.
type player struct {
	candidate
	id      string
	network network
	clock   *clock
	stop    context.CancelFunc
	ended   chan struct{}

	mu    sync.Mutex
	terms []*lead.Held
}

func (p *play) errorf(format string, args ...any) {
	p.wrong = append(p.wrong, fmt.Sprintf("%v: ", time.Since(p.began))+fmt.Sprintf(format, args...))
}

func (p *play) start(c *player) {
	if c.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(p.t.Context())
	ended := make(chan struct{})
	c.stop, c.ended = stop, ended
	go func() {
		defer close(ended)
		o := lead.Options{ID: c.id, TTL: ttl, Now: c.clock.now}
		_ = lead.Run(ctx, &c.network, o, func(term *lead.Held) error {
			c.mu.Lock()
			c.terms = append(c.terms, term)
			c.mu.Unlock()
			<-term.Context().Done()
			<-time.After(c.slow)
			return nil
		})
	}()
}

// halt ends a process in order.
func (c *player) halt() {
	if c.stop != nil {
		c.stop()
		<-c.ended
		c.stop = nil
	}
}

// tick moves the clock of a process by a jump. One of its parts never falls behind: else nobody could tell.
func (c *player) tick(jump time.Duration) {
	switch {
	case !c.stalls:
		c.clock.jump(jump, 0) // somebody sets the wall clock
	case jump > 0:
		c.clock.jump(0, -jump)
	}
}

// leaders returns who is in a term, and checks that the lease is held for it.
func (p *play) leaders() (ids []string) {
	synctest.Wait()
	for _, c := range p.all {
		c.mu.Lock()
		for _, term := range c.terms {
			if term.Err() != nil {
				continue
			}
			ids = append(ids, c.id)
			if !p.lease.Holds(term.Token()) {
				p.errorf("%s is in term %d, and others may take the lease", c.id, term.Token())
			}
		}
		c.mu.Unlock()
	}
	if len(ids) > 1 {
		p.errorf("all of these lead: %v", ids)
	}
	return ids
}

func (p *play) run(s schedule) {
	for i, c := range s.candidates {
		c := &player{candidate: c, id: fmt.Sprint("process ", i), clock: newClock(), network: network{Lease: p.lease}}
		c.clock.percent = c.percent
		c.clock.jump(c.wall, 0)
		p.all = append(p.all, c)
		p.start(c)
	}
	for _, s := range s.steps {
		c := p.all[s.process]
		switch s.what {
		case "network":
			c.network.set(s.there, s.back)
		case "heal":
			c.network.set(0, 0)
		case "clock":
			c.tick(s.jump)
		case "stop":
			c.halt()
		case "start":
			p.start(c)
		}
		p.leaders()
		<-time.After(s.after)
		p.leaders()
	}
	for _, c := range p.all {
		c.network.set(0, 0)
		p.start(c)
	}
	// What is under way arrives after at most 3 TTLs, and may take the lease for one.
	<-time.After(6 * ttl)
	if len(p.leaders()) == 0 {
		p.errorf("nobody leads, although nothing is wrong any more")
	}
	for _, c := range p.all {
		c.halt()
	}
}

// TestP68OneLeader: whatever happens to calls, answers and clocks, at most one process is in a term at any time, and the
// lease is held for it. Once nothing is wrong any more, somebody leads.
// Invariants: P68
func TestP68OneLeader(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawSchedule(rt)
		var wrong []string
		synctest.Test(t, func(t *testing.T) {
			p := &play{t: t, lease: leadtest.NewMemory(), began: time.Now()}
			p.run(s)
			wrong = p.wrong
		})
		if len(wrong) > 0 {
			rt.Fatalf("%v", wrong)
		}
	})
}
