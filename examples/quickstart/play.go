package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"github.com/millwright-go/millwright/examples/quickstart/heartbeat"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/examples/quickstart/screen"
	"github.com/millwright-go/millwright/manager"
)

// play is a fleet with an audience: what happens is shown, and counted by
// other means than the library's.
type play struct {
	*fleet
	token    string
	screen   *screen.Screen
	narrator *narrator
	book     *ledger.Book
	census   *census
	tasks    *taskCensus

	changed    chan struct{} // filled when an object has changed
	background sync.WaitGroup
	end        context.CancelFunc // of the background

	managing sync.WaitGroup
	dismiss  context.CancelFunc // of the manager; nil: there is none
}

// perform plays all acts, and then closes the books. An error says which
// promise was not kept.
func perform(ctx context.Context, out io.Writer, options screen.Options) error {
	p, err := newPlay(out, options)
	if err != nil {
		return err
	}
	if err = p.begin(); err == nil {
		err = p.run(ctx)
	}
	return p.close(ctx, err)
}

func newPlay(out io.Writer, options screen.Options) (*play, error) {
	dir, err := shortDir()
	if err != nil {
		return nil, err
	}
	token := rand.Text()
	p := &play{token: token, changed: make(chan struct{}, 1)}
	f, err := newFleet(dir, token, func(text string) { p.screen.Line(screen.Plain, text) })
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	p.fleet, p.book = f, ledger.Open(f.ledger())
	p.tasks = &taskCensus{book: ledger.Open(f.taskLedger())}
	p.census = &census{book: p.book, machines: f.machines}
	p.screen = screen.New(out, options, p.table)
	p.narrator = newNarrator(p.screen)
	return p, nil
}

// shortDir makes a directory in which the path of a socket is short enough.
func shortDir() (string, error) {
	dir, err := os.MkdirTemp("", "mw")
	if err == nil && len(filepath.Join(dir, "s")) > heartbeat.MaxSocketPath {
		err = os.Remove(dir)
		if err == nil {
			dir, err = os.MkdirTemp("/tmp", "mw")
		}
	}
	return dir, err
}

// begin starts what goes on all the time: the cluster and its workload, the
// censuses, the screen, and at first one manager. It is independent of what ends the acts, since
// cleaning up needs it.
func (p *play) begin() error {
	ctx, end := context.WithCancel(context.Background())
	p.end = end
	p.background.Go(func() {
		if err := p.cluster.Run(ctx); ctx.Err() == nil {
			p.screen.Line(screen.Bad, "the cluster broke: "+err.Error())
		}
	})
	p.background.Go(func() {
		if err := p.workload.Run(ctx); ctx.Err() == nil {
			p.screen.Line(screen.Bad, "the workload broke: "+err.Error())
		}
	})
	p.background.Go(func() { p.census.run(ctx) })
	p.background.Go(func() { p.tasks.run(ctx) })
	p.background.Go(func() { p.screen.Run(ctx) })
	p.watchStores(ctx)
	return p.startManager()
}

// startManager makes a manager and lets it run.
func (p *play) startManager() error {
	m, err := p.newManager(manager.Hooks{
		Event: p.narrator.event, Transition: p.narrator.transition, Effect: p.narrator.effect, Pass: p.narrator.pass,
	})
	if err != nil {
		return err
	}
	ctx, dismiss := context.WithCancel(context.Background())
	p.dismiss = dismiss
	p.managing.Go(func() { _ = m.Run(ctx) }) // its error is that ctx has ended
	return nil
}

// stopManager ends the manager. Calls that it has under way are cancelled.
func (p *play) stopManager() {
	if p.dismiss != nil {
		p.dismiss()
		p.managing.Wait()
		p.dismiss = nil
	}
}

func (p *play) run(ctx context.Context) error {
	for i, act := range acts {
		p.screen.Headline(fmt.Sprintf("%d. %s", i+1, act.headline))
		if err := p.runAct(ctx, act); err != nil {
			return fmt.Errorf("act %d, %q: %w", i+1, act.headline, err)
		}
	}
	return nil
}

func (p *play) runAct(ctx context.Context, a act) error {
	before, err := p.book.Account()
	if err != nil {
		return err
	}
	if err := a.do(p, ctx); err != nil {
		return err
	}
	after, err := p.book.Account()
	if err != nil {
		return err
	}
	created := after.Created - before.Created
	p.say("processes created: %d; calls: %s", created, p.narrator.tellCalls())
	if created != a.creates {
		return fmt.Errorf("%d processes were created where %d were needed", created, a.creates)
	}
	return nil
}

func (p *play) say(format string, args ...any) {
	p.screen.Line(screen.Good, fmt.Sprintf(format, args...))
}

// close ends everything, in whatever state it is, and says what it found.
func (p *play) close(ctx context.Context, failed error) error {
	p.stopManager()
	if failed == nil {
		failed = p.checkAccount(ctx)
	}
	killed, err := p.killAll()
	failed = errors.Join(failed, err)
	if p.end != nil {
		p.end()
		p.background.Wait()
	}
	account, err := p.book.Account()
	failed = errors.Join(failed, err, os.RemoveAll(p.dir))
	if len(killed) > 0 {
		p.screen.Text(fmt.Sprintf("\nkilled %d processes that were still running", len(killed)))
	}
	if failed != nil {
		return failed
	}
	// Whoever survived all machines is an orphan, and who was seen without one.
	maps.Copy(killed, p.census.orphans)
	p.screen.Text(fmt.Sprintf("\nsettled: %d created, %d deleted, %d orphans, %d duplicates",
		account.Created, account.Deleted, len(killed), account.Duplicates))
	if len(killed) > 0 || account.Duplicates > 0 {
		return fmt.Errorf("%d orphans and %d duplicates", len(killed), account.Duplicates)
	}
	return nil
}

// killAll kills whatever still runs: by the ledgers, and what has not come to
// enter itself; a task ends with its agent. It returns the instances.
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
