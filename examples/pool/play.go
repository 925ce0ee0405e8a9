package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/examples/quickstart/stage"
	"github.com/millwright-go/millwright/manager"
)

// storeFile is the store of a play that lasts. These rosters are in its place, beside that of
// tasks.
const (
	storeFile  = "pool.db"
	groupsDir  = "groups"
	taskRoster = "tasks"
)

// play is a pool with an audience: it shows what happens, and counts processes without the library
// and the provider.
type play struct {
	*fleet
	narrator *narrator
	counter  *stage.Counter
	stop     func() // of the manager, and then the background work
}

// perform plays all acts, in that directory or a temporary one. An error says which promise was not
// kept.
func perform(ctx context.Context, out io.Writer, state string) error {
	p, err := newPlay(ctx, out, state)
	if err != nil {
		return err
	}
	if err = p.begin(ctx); err == nil {
		err = p.Play(ctx, p.acts(), p.created)
	}
	return p.close(ctx, err)
}

func newPlay(ctx context.Context, out io.Writer, state string) (*play, error) {
	place, err := stage.NewPlace(state, storeFile, groupsDir+"/supervisors", groupsDir+"/agents/"+clusterName, taskRoster)
	if err != nil {
		return nil, err
	}
	s, err := stage.New(ctx, out, place, time.Now)
	if err != nil {
		return nil, err
	}
	p := &play{stop: func() {}}
	if p.fleet, err = newFleet(s); err != nil {
		return nil, errors.Join(err, s.Release())
	}
	p.narrator = newNarrator(s, p.Store.Pools)
	p.counter = stage.NewCounter(p.agents, func(roster.Entry) bool { return true })
	return p, nil
}

// begin starts the background work.
func (p *play) begin(ctx context.Context) error {
	if 0 < p.Done.Act && p.Done.Act < len(p.acts())-1 {
		p.workload.Scale(taskCount)
	}
	m, err := p.newManager(manager.Hooks{Event: p.narrator.event, Transition: p.narrator.transition})
	if err != nil {
		return err
	}
	stops := []func(){
		p.Go("the manager", m.Run),
		p.Go("the cluster", p.cluster.Run),
		p.Go("the workload", p.workload.Run),
		p.Go("the count of agents", p.counter.Run),
		p.Go("the narrator", p.narrator.follow),
		p.Go("the sweep of nodes", func(ctx context.Context) error {
			return roster.Every(ctx, 100*time.Millisecond, p.sweepNodes)
		}),
	}
	p.stop = func() {
		for _, stop := range stops {
			stop()
		}
	}
	return p.provider.Revive(ctx)
}

// close ends everything, in any state, and reports what it found. If the play was interrupted and
// can go on, it leaves the processes alone.
func (p *play) close(ctx context.Context, failed error) error {
	p.stop()
	if p.Interrupted(ctx) {
		return errors.Join(failed, p.Close(ctx))
	}
	left := 0
	for _, of := range []*roster.Roster{p.supervisors, p.agents, p.tasks} {
		killed, err := of.End(context.Background())
		failed = errors.Join(failed, err)
		left += len(killed)
	}
	if failed == nil {
		failed = p.settle(left)
	}
	return errors.Join(failed, p.Close(ctx))
}

// settle reports how many processes there were. All have ended.
func (p *play) settle(left int) error {
	n, err := p.created()
	if err != nil {
		return err
	}
	keepers, err := joined(p.supervisors)
	if err != nil {
		return err
	}
	duplicates := p.counter.Duplicates()
	p.Text(fmt.Sprintf("\nsupervisors: %d created, %d ended", keepers, keepers))
	p.Text(fmt.Sprintf("settled: %d created, %d deleted, %d left, %d duplicates", n, n, left, duplicates))
	if left > 0 || duplicates > 0 {
		return fmt.Errorf("%d processes were left, and %d ran twice", left, duplicates)
	}
	return nil
}

// created returns how many agents there have been.
func (p *play) created() (int, error) { return joined(p.agents) }

func joined(r *roster.Roster) (n int, err error) {
	all, err := r.Entries()
	for _, e := range all {
		if e.PID != 0 {
			n++
		}
	}
	return n, err
}
