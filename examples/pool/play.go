package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/command"
	"github.com/millwright-go/millwright/examples/quickstart/home"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/examples/quickstart/stage"
	"github.com/millwright-go/millwright/manager"
)

// play is a pool with an audience: it shows what happens, and counts processes without the library
// and the provider.
type play struct {
	*fleet
	*stage.Stage
	token    string
	narrator *narrator
	census   *census
	keepers  *ledger.Book // of supervisors
	jobs     *ledger.Book // of tasks
}

// perform plays all acts, in that directory or a temporary one, and then closes the ledgers. An
// error says which promise was not kept.
func perform(ctx context.Context, out io.Writer, state string) error {
	p, err := newPlay(out, state)
	if err != nil {
		return err
	}
	if err = p.begin(ctx); err == nil {
		err = stage.Run(ctx, p.Stage, p, acts)
	}
	if err != nil && p.Lasts && errors.Is(context.Cause(ctx), command.ErrInterrupted) {
		return errors.Join(err, p.leave())
	}
	return p.close(ctx, err)
}

func newPlay(out io.Writer, state string) (*play, error) {
	h, err := newPlace(state)
	if err != nil {
		return nil, err
	}
	o, done, err := h.Open(time.Now)
	if err != nil {
		return nil, err
	}
	p := &play{}
	p.Stage = stage.New(h.Place, done, stage.NewScreen(out), ledger.Open(h.agents()), "agents")
	tell := func(text string) { p.Screen.Line(text) }
	p.token, err = o.Token(context.Background(), secretKey)
	if err == nil {
		p.fleet, err = newFleet(h, o, p.token, tell)
	}
	if err != nil {
		return nil, errors.Join(err, o.Close(), h.Drop())
	}
	p.keepers, p.jobs = ledger.Open(h.supervisors()), ledger.Open(h.tasks())
	p.narrator = newNarrator(p.Screen, p.Store.Pools)
	p.census = newCensus(p.Book, p.narrator.agent)
	return p, nil
}

// begin starts the background work.
func (p *play) begin(ctx context.Context) error {
	if err := p.census.recall(); err != nil {
		return err
	}
	if p.Done.Tasks {
		if err := p.setTasks(taskCount); err != nil {
			return err
		}
	}
	within := p.Background()
	p.Go(within, "the cluster", p.cluster.Run)
	p.Go(within, "the workload", p.workload.Run)
	p.Go(within, "the care of nodes", p.sweepNodes)
	p.Count(within, p.census.Counter)
	stage.Follow(within, p.Stage, p.Store.Pools, p.narrator.leaving)
	stage.Follow(within, p.Stage, p.Nodes, nil)
	m, err := p.newManager(manager.Hooks{Event: p.narrator.event, Transition: p.narrator.transition, Effect: p.Calls.Effect})
	if err != nil {
		return err
	}
	p.StartManager(m)
	return p.provider.Revive(ctx)
}

// leave stops only what this program does, so that another program can go on.
func (p *play) leave() error {
	p.stop()
	p.Screen.Text(fmt.Sprintf("\nthe group goes on for %s, for the same command to go on with it", agent.Abandonment))
	return p.Close()
}

// stop ends the manager, and then the background work.
func (p *play) stop() {
	p.StopManager()
	p.EndBackground()
}

// close ends everything, in any state, and reports what it found.
func (p *play) close(ctx context.Context, failed error) error {
	if failed == nil {
		failed = p.Await(ctx, p.unended)
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
		p.Screen.Text(fmt.Sprintf("\nkilled %d processes that were still running", left))
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
	}{{"agents", p.Book}, {"supervisors", p.keepers}} {
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
	agents, err := p.Book.Account()
	if err != nil {
		return err
	}
	keepers, err := p.keepers.Account()
	if err != nil {
		return err
	}
	p.Screen.Text(fmt.Sprintf("\nsupervisors: %d created, %d ended, %d duplicates", keepers.Created, keepers.Deleted, keepers.Duplicates))
	p.Screen.Text(fmt.Sprintf("settled: %d created, %d deleted, %d left, %d duplicates", agents.Created, agents.Deleted, left, agents.Duplicates))
	if left > 0 || agents.Duplicates+keepers.Duplicates > 0 || agents.Created != agents.Deleted || keepers.Created != keepers.Deleted {
		return errors.New("the books don't add up")
	}
	return nil
}
