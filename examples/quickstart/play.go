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
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/examples/quickstart/stage"
	"github.com/millwright-go/millwright/manager"
)

// play is a fleet with an audience: it shows what happens, and counts processes without the
// library.
type play struct {
	*fleet
	*stage.Stage
	token    string
	narrator *narrator
	census   *census
	tasks    *taskCensus

	answering  sync.WaitGroup
	cutCluster context.CancelFunc // of those that reach it; nil while it is down
}

// perform plays all acts, in that directory or a temporary one, and then closes the ledgers. An
// error says which promise was not kept.
func perform(ctx context.Context, out io.Writer, state string) error {
	p, err := newPlay(out, state)
	if err != nil {
		return err
	}
	if err = p.begin(); err == nil {
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
	o, done, err := h.Open(clock)
	if err != nil {
		return nil, err
	}
	p := &play{}
	p.Stage = stage.New(h.Place, done, stage.NewScreen(out), ledger.Open(h.ledger()), "processes")
	tell := func(text string) { p.Screen.Line(text) }
	p.token, err = o.Token(context.Background(), secretKey)
	if err == nil {
		p.fleet, err = newFleet(h, o, p.token, tell)
	}
	if err != nil {
		return nil, errors.Join(err, o.Close(), h.Drop())
	}
	p.tasks = newTaskCensus(ledger.Open(h.taskLedger()))
	p.census = newCensus(p.Book, p.Store.Machines, p.host.Adopt)
	p.narrator = newNarrator(p.Screen)
	return p, nil
}

// begin starts the background work: the cluster and its workload, the censuses, the screen, and at
// first one manager.
func (p *play) begin() error {
	ctx := p.Background()
	if p.Lasts {
		lives, err := p.Book.Lives()
		if err != nil {
			return err
		}
		p.host.Adopt(lives)
	}
	if p.Done.Tasks {
		if err := p.setTasks(tasks, 1); err != nil {
			return err
		}
	}
	p.startCluster()
	p.Go(ctx, "the workload", p.workload.Run)
	p.Count(ctx, p.census.Counter)
	p.Count(ctx, p.tasks.Counter)
	stage.Follow(ctx, p.Stage, p.Store.Machines, nil)
	stage.Follow(ctx, p.Stage, p.Store.Sets, nil)
	stage.Follow(ctx, p.Stage, p.Store.Deployments, nil)
	stage.Follow(ctx, p.Stage, p.Nodes, nil)
	return p.startManager()
}

// startCluster lets the cluster answer.
func (p *play) startCluster() {
	ctx, cut := context.WithCancel(context.Background())
	p.cutCluster = cut
	p.answering.Go(func() {
		if err := p.cluster.Run(ctx); ctx.Err() == nil {
			p.Screen.Line("the cluster broke: " + err.Error())
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
		Event: p.narrator.event, Transition: p.narrator.transition, Effect: p.Calls.Effect,
	})
	if err != nil {
		return err
	}
	p.StartManager(m)
	return nil
}

// leave stops only what this program does, so that another program can go on.
func (p *play) leave() error {
	p.StopManager()
	p.stopBackground()
	p.Screen.Text(fmt.Sprintf("\nthe machines go on for %s, for the same command to go on with them", agent.Abandonment))
	return p.Close()
}

func (p *play) stopBackground() {
	p.stopCluster()
	p.EndBackground()
}

// close ends everything, in any state, and reports what it found.
func (p *play) close(ctx context.Context, failed error) error {
	p.StopManager()
	if failed == nil {
		failed = p.checkAccount(ctx)
	}
	killed, err := p.killAll()
	failed = errors.Join(failed, err)
	p.stopBackground()
	account, err := p.Book.Account()
	failed = errors.Join(failed, err)
	if len(killed) > 0 {
		p.Screen.Text(fmt.Sprintf("\nkilled %d processes that were still running", len(killed)))
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
	p.Screen.Text(fmt.Sprintf("\nsettled: %d created, %d deleted, %d orphans, %d duplicates",
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
	for _, book := range []*ledger.Book{p.Book, p.tasks.book} {
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
	return p.Await(ctx, func() string {
		a, err := p.Book.Account()
		if err != nil {
			return err.Error()
		}
		if a.Created != a.Deleted {
			return fmt.Sprintf("the end of %d of %d processes", a.Created-a.Deleted, a.Created)
		}
		return ""
	})
}
