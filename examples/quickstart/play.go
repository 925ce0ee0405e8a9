package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"

	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/command"
	"github.com/millwright-go/millwright/examples/quickstart/home"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/examples/quickstart/screen"
	"github.com/millwright-go/millwright/manager"
)

// play is a fleet with an audience: it shows what happens, and counts processes without the
// library.
type play struct {
	*fleet
	token    string
	done     home.Progress
	screen   *screen.Screen
	narrator *narrator
	book     *ledger.Book
	census   *census
	tasks    *taskCensus

	changed    chan struct{} // filled when an object has changed
	background sync.WaitGroup
	end        context.CancelFunc // of the background

	answering  sync.WaitGroup
	cutCluster context.CancelFunc // of those that reach it; nil while it is down

	managing sync.WaitGroup
	dismiss  context.CancelFunc // of the manager, or nil
}

// perform plays all acts, in that directory or a temporary one, and then closes the ledgers. An
// error says which promise was not kept.
func perform(ctx context.Context, out io.Writer, options screen.Options, state string) error {
	p, err := newPlay(out, options, state)
	if err != nil {
		return err
	}
	if err = p.begin(); err == nil {
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
	o, done, err := h.Open(clock)
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
	p.book = ledger.Open(h.ledger())
	p.tasks = newTaskCensus(ledger.Open(h.taskLedger()))
	p.census = newCensus(p.book, p.Machines, p.host.Adopt)
	p.narrator = newNarrator(p.screen)
	return p, nil
}

// begin starts the background work: the cluster and its workload, the censuses, the screen, and at
// first one manager. It does not depend on what ends the acts, because the cleanup needs it.
func (p *play) begin() error {
	ctx, end := context.WithCancel(context.Background())
	p.end = end
	if p.Lasts {
		lives, err := p.book.Lives()
		if err != nil {
			return err
		}
		p.host.Adopt(lives)
	}
	if p.done.Tasks {
		if err := p.setTasks(tasks, 1); err != nil {
			return err
		}
	}
	p.startCluster()
	p.background.Go(func() {
		if err := p.workload.Run(ctx); ctx.Err() == nil {
			p.screen.Line(screen.Bad, "the workload broke: "+err.Error())
		}
	})
	p.background.Go(func() { p.census.Run(ctx) })
	p.background.Go(func() { p.tasks.Run(ctx) })
	p.background.Go(func() { p.screen.Run(ctx) })
	p.watchStores(ctx)
	return p.startManager()
}

// startCluster lets the cluster answer.
func (p *play) startCluster() {
	ctx, cut := context.WithCancel(context.Background())
	p.cutCluster = cut
	p.answering.Go(func() {
		if err := p.cluster.Run(ctx); ctx.Err() == nil {
			p.screen.Line(screen.Bad, "the cluster broke: "+err.Error())
		}
	})
}

// stopCluster disconnects the cluster, with its socket.
func (p *play) stopCluster() {
	if p.cutCluster != nil {
		p.cutCluster()
		p.answering.Wait()
		p.cutCluster = nil
	}
}

// startManager makes a manager and runs it.
func (p *play) startManager() error {
	m, err := p.newManager(manager.Hooks{
		Event: p.narrator.event, Transition: p.narrator.transition, Effect: p.narrator.effect, Pass: p.narrator.pass,
	})
	if err != nil {
		return err
	}
	ctx, dismiss := context.WithCancel(context.Background())
	p.dismiss = dismiss
	p.managing.Go(func() {
		if err := m.Run(ctx); err != nil {
			p.screen.Line(screen.Bad, "the manager can't run: "+err.Error())
		}
	})
	return nil
}

// stopManager ends the manager. Its calls under way are cancelled.
func (p *play) stopManager() {
	if p.dismiss != nil {
		p.dismiss()
		p.managing.Wait()
		p.dismiss = nil
	}
}

func (p *play) run(ctx context.Context) error {
	if alive, err := p.book.Alive(); err != nil || len(alive) > 0 || p.done != (home.Progress{}) {
		p.say("an earlier program has left %d processes running: the play goes on", len(alive))
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
	if err := a.do(p, ctx); err != nil {
		return err
	}
	account, err := p.book.Account()
	if err != nil {
		return err
	}
	created := account.Created - p.done.Created
	p.say("processes created: %d; calls: %s", created, p.narrator.tellCalls())
	if created != a.creates {
		return fmt.Errorf("%d processes were created where %d were needed", created, a.creates)
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

// leave stops only what this program does, so that another program can go on.
func (p *play) leave() error {
	p.stopManager()
	p.stopBackground()
	p.screen.Text(fmt.Sprintf("\nthe machines go on for %s, for the same command to go on with them", agent.Abandonment))
	return p.Close()
}

func (p *play) stopBackground() {
	p.stopCluster()
	if p.end != nil {
		p.end()
		p.background.Wait()
	}
}

// close ends everything, in any state, and reports what it found.
func (p *play) close(ctx context.Context, failed error) error {
	p.stopManager()
	if failed == nil {
		failed = p.checkAccount(ctx)
	}
	killed, err := p.killAll()
	failed = errors.Join(failed, err)
	p.stopBackground()
	account, err := p.book.Account()
	failed = errors.Join(failed, err)
	if len(killed) > 0 {
		p.screen.Text(fmt.Sprintf("\nkilled %d processes that were still running", len(killed)))
	}
	if failed == nil {
		failed = p.settle(account, killed)
	}
	return errors.Join(failed, p.Clear(), p.Close())
}

// settle reports how the ledgers were closed.
func (p *play) settle(account ledger.Account, killed map[string]bool) error {
	// A process that survived all machines is an orphan, and so is one that was seen without a
	// machine.
	maps.Copy(killed, p.census.orphans)
	p.screen.Text(fmt.Sprintf("\nsettled: %d created, %d deleted, %d orphans, %d duplicates",
		account.Created, account.Deleted, len(killed), account.Duplicates))
	if len(killed) > 0 || account.Duplicates > 0 {
		return fmt.Errorf("%d orphans and %d duplicates", len(killed), account.Duplicates)
	}
	return nil
}

// killAll kills what still runs: what the ledgers know, and what has not entered itself yet. A task
// ends with its agent. It returns the instances.
func (p *play) killAll() (map[string]bool, error) {
	killed := make(map[string]bool)
	var failed error
	for _, book := range []*ledger.Book{p.book, p.tasks.book} {
		survivors, err := book.Kill()
		failed = errors.Join(failed, err)
		for _, life := range survivors {
			killed[life.Instance] = true
		}
	}
	for _, instance := range p.host.Close() {
		killed[instance] = true
	}
	return killed, failed
}

// checkAccount waits until the end of every process was seen.
func (p *play) checkAccount(ctx context.Context) error {
	return p.await(ctx, func() string {
		a, err := p.book.Account()
		if err != nil {
			return err.Error()
		}
		if a.Created != a.Deleted {
			return fmt.Sprintf("the end of %d of %d processes", a.Created-a.Deleted, a.Created)
		}
		return ""
	})
}
