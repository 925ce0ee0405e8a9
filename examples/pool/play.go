package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/command"
	"github.com/millwright-go/millwright/examples/quickstart/home"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/examples/quickstart/screen"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// play is a pool with an audience: it shows what happens, and counts processes without the library
// and the provider.
type play struct {
	*fleet
	token    string
	done     home.Progress
	screen   *screen.Screen
	narrator *narrator
	census   *census
	book     *ledger.Book // of agents
	keepers  *ledger.Book // of supervisors
	jobs     *ledger.Book // of tasks

	changed    chan struct{} // filled when an object has changed
	background sync.WaitGroup
	end        context.CancelFunc // of the background
	managing   sync.WaitGroup
	dismiss    context.CancelFunc // of the manager
}

// perform plays all acts, in that directory or a temporary one, and then closes the ledgers. An
// error says which promise was not kept.
func perform(ctx context.Context, out io.Writer, options screen.Options, state string) error {
	p, err := newPlay(out, options, state)
	if err != nil {
		return err
	}
	if err = p.begin(ctx); err == nil {
		err = p.run(ctx)
	}
	if err != nil && p.Lasts && errors.Is(context.Cause(ctx), command.ErrInterrupted) {
		return errors.Join(err, p.leave())
	}
	return p.close(ctx, err)
}

func newPlay(out io.Writer, options screen.Options, state string) (*play, error) {
	h, err := newPlace(state)
	if err != nil {
		return nil, err
	}
	o, done, err := h.Open(time.Now)
	if err != nil {
		return nil, err
	}
	p := &play{done: done, changed: make(chan struct{}, 1)}
	p.screen = screen.New(out, options, p.table)
	tell := func(text string) { p.screen.Line(screen.Plain, text) }
	p.token, err = o.Token(context.Background(), secretKey)
	if err == nil {
		p.fleet, err = newFleet(h, o, p.token, tell)
	}
	if err != nil {
		return nil, errors.Join(err, o.Close(), h.Drop())
	}
	p.book, p.keepers, p.jobs = ledger.Open(h.agents()), ledger.Open(h.supervisors()), ledger.Open(h.tasks())
	p.narrator = newNarrator(p.screen, p.Pools)
	p.census = newCensus(p.book, p.narrator.agent)
	return p, nil
}

// begin starts the background work. It does not depend on what ends the acts, because the cleanup
// needs it.
func (p *play) begin(ctx context.Context) error {
	within, end := context.WithCancel(context.Background())
	p.end = end
	if err := p.census.recall(); err != nil {
		return err
	}
	if p.done.Tasks {
		if err := p.setTasks(taskCount); err != nil {
			return err
		}
	}
	p.goes(within, "the cluster", p.cluster.Run)
	p.goes(within, "the workload", p.workload.Run)
	p.goes(within, "the care of nodes", p.sweepNodes)
	p.background.Go(func() { p.census.Run(within) })
	p.background.Go(func() { p.screen.Run(within) })
	follow(within, p, p.Pools, p.narrator.leaving)
	follow(within, p, p.Nodes, func() {})
	m, err := p.newManager(manager.Hooks{Event: p.narrator.event, Transition: p.narrator.transition, Effect: p.narrator.effect})
	if err != nil {
		return err
	}
	managing, dismiss := context.WithCancel(context.Background())
	p.dismiss = dismiss
	p.managing.Go(func() {
		if err := m.Run(managing); err != nil {
			p.screen.Line(screen.Bad, "the manager can't run: "+err.Error())
		}
	})
	return p.provider.Revive(ctx)
}

// goes runs something in the background, and reports if it ends too early.
func (p *play) goes(ctx context.Context, what string, run func(context.Context) error) {
	p.background.Go(func() {
		if err := run(ctx); ctx.Err() == nil {
			p.screen.Line(screen.Bad, fmt.Sprintf("%s broke: %v", what, err))
		}
	})
}

// follow fills p.changed, and reports calls, at every change.
func follow[T object.Object[T]](ctx context.Context, p *play, c store.Collection[T], told func()) {
	p.background.Go(func() {
		for range c.Watch(ctx) {
			told()
			select {
			case p.changed <- struct{}{}:
			default: // a look is due already
			}
		}
	})
}

func (p *play) run(ctx context.Context) error {
	if alive, err := p.book.Alive(); err != nil || len(alive) > 0 || p.done != (home.Progress{}) {
		p.say("an earlier program has left %d agents running: the play goes on", len(alive))
	}
	for p.done.Act < len(acts) {
		act := acts[p.done.Act]
		p.screen.Headline(fmt.Sprintf("%d. %s", p.done.Act+1, act.headline))
		if err := p.runAct(ctx, act); err != nil {
			return fmt.Errorf("act %d, %q: %w", p.done.Act+1, act.headline, err)
		}
	}
	return nil
}

// runAct plays an act to its end, even one that an earlier program has begun.
func (p *play) runAct(ctx context.Context, a act) error {
	p.census.Begin()
	if err := a.do(p, ctx); err != nil {
		return err
	}
	account, err := p.book.Account()
	if err != nil {
		return err
	}
	created := account.Created - p.done.Created
	p.say("agents created: %d; calls: %s", created, p.narrator.tellCalls())
	if created != a.creates {
		return fmt.Errorf("%d agents were created where %d were needed", created, a.creates)
	}
	return p.note(func(done *home.Progress) {
		*done = home.Progress{Act: done.Act + 1, Created: account.Created, Tasks: done.Tasks}
	})
}

// note changes the progress, and saves it if the place lasts.
func (p *play) note(change func(*home.Progress)) error {
	change(&p.done)
	return p.Save(p.done)
}

func (p *play) say(format string, args ...any) {
	p.screen.Line(screen.Good, fmt.Sprintf(format, args...))
}

// patience is how long an act waits for anything: an eviction that an earlier program has begun is
// retried after 20 s. glance is the time between two looks without a change of an object, because
// processes change without one.
const (
	patience = 3 * time.Minute
	glance   = 50 * time.Millisecond
)

// await waits until nothing is missing. Its error names what was.
func (p *play) await(ctx context.Context, missing func() string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not within %s", patience))
	defer cancel()
	ticker := time.NewTicker(glance)
	defer ticker.Stop()
	for {
		lack := missing()
		if lack == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; still missing: %s", context.Cause(ctx), lack)
		case <-p.changed:
		case <-ticker.C:
		}
	}
}

// leave stops only what this program does, so that another program can go on.
func (p *play) leave() error {
	p.stop()
	p.screen.Text(fmt.Sprintf("\nthe group goes on for %s, for the same command to go on with it", agent.Abandonment))
	return p.Close()
}

// stop ends the manager, and then the background work.
func (p *play) stop() {
	if p.dismiss != nil {
		p.dismiss()
		p.managing.Wait()
	}
	if p.end != nil {
		p.end()
		p.background.Wait()
	}
}

// close ends everything, in any state, and reports what it found.
func (p *play) close(ctx context.Context, failed error) error {
	if failed == nil {
		failed = p.await(ctx, p.unended)
	}
	p.stop()
	if failed != nil {
		failed = errors.Join(failed, p.clean())
	}
	left := p.host.Close()
	killed, err := p.End()
	left += killed
	failed = errors.Join(failed, err)
	if left > 0 {
		p.screen.Text(fmt.Sprintf("\nkilled %d processes that were still running", left))
	}
	if failed == nil {
		failed = p.settle(left)
	}
	return errors.Join(failed, p.Clear(), p.Close())
}

// clean makes the provider end what it keeps, because the provider also knows processes that have
// not entered a ledger yet.
func (p *play) clean() error {
	ctx, cancel := context.WithTimeout(context.Background(), home.EndPatience)
	defer cancel()
	return p.provider.Clear(ctx)
}

// unended names processes whose end was not seen.
func (p *play) unended() string {
	for _, of := range []struct {
		what string
		book *ledger.Book
	}{{"agents", p.book}, {"supervisors", p.keepers}} {
		a, err := of.book.Account()
		if err != nil || a.Created != a.Deleted {
			return fmt.Sprintf("the end of %d of %d %s (%v)", a.Created-a.Deleted, a.Created, of.what, err)
		}
	}
	if running, err := p.jobs.Survivors(); err != nil || len(running) > 0 {
		return fmt.Sprintf("the end of %d tasks (%v)", len(running), err)
	}
	return ""
}

// settle reports how the ledgers were closed.
func (p *play) settle(left int) error {
	agents, err := p.book.Account()
	if err != nil {
		return err
	}
	keepers, err := p.keepers.Account()
	if err != nil {
		return err
	}
	p.screen.Text(fmt.Sprintf("\nsupervisors: %d created, %d ended, %d duplicates", keepers.Created, keepers.Deleted, keepers.Duplicates))
	p.screen.Text(fmt.Sprintf("settled: %d created, %d deleted, %d left, %d duplicates", agents.Created, agents.Deleted, left, agents.Duplicates))
	if left > 0 || agents.Duplicates+keepers.Duplicates > 0 || agents.Created != agents.Deleted || keepers.Created != keepers.Deleted {
		return errors.New("the books don't add up")
	}
	return nil
}
