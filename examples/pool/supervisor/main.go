package supervisor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/millwright-go/millwright/examples/pool/group"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/examples/quickstart/life"
	"github.com/millwright-go/millwright/examples/quickstart/procdriver"
	"github.com/millwright-go/millwright/examples/quickstart/procid"
)

const (
	look     = 20 * time.Millisecond // how often it looks at record and agents
	patience = 2 * time.Second       // for the seat
	again    = time.Second           // after a failure to start or to end an agent
)

// Main is a supervisor's life. It returns the exit status.
func Main() int {
	order, err := readOrder()
	if err != nil {
		return life.Misuse("supervisor", err)
	}
	s := &supervisor{Order: order, dir: group.At(Groups(order.Root, order.Cluster)), agents: ledger.Open(order.Agents)}
	return life.End("supervisor of group "+order.Group, s.live())
}

type supervisor struct {
	Order
	self    procid.ID
	account ledger.Hand
	dir     *group.Dir
	agents  *ledger.Book
	host    *procdriver.Host
	driver  *procdriver.Driver

	provided time.Time // when a program last was the provider
	held     time.Time // until then nothing that failed is tried again
	left     bool      // there was no provider for too long
}

// live enters the ledger before anything else, and takes the seat.
func (s *supervisor) live() (err error) {
	if s.account, err = life.Begin(s.Ledger, s.Cluster+"/"+s.Group, s.Instance); err != nil {
		return err
	}
	s.self = s.account.ID
	ctx, cancel := context.WithTimeout(context.Background(), life.Longest)
	defer cancel()
	within, over := context.WithTimeout(ctx, patience)
	seat, err := s.dir.Seat(within, s.Group)
	over()
	if err != nil {
		return errors.Join(err, s.account.Enter(ledger.Turned, err.Error()))
	}
	defer seat.Release()
	if err := s.account.Seated(); err != nil {
		return err
	}
	s.host, err = procdriver.NewHost(procdriver.HostOptions{
		Program: s.Program, Env: s.Env, Ledger: s.Agents, Tasks: s.Tasks,
		Outlived: true, Alone: s.alone() + patience, // the supervisor ends them before
	})
	if err != nil {
		return err
	}
	s.driver, err = procdriver.New(procdriver.Options{Dir: Agents(s.Root), Host: s.host, Grace: s.Grace})
	if err != nil {
		return err
	}
	err = s.keep(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the directory is gone, and agents without a record end by themselves
	}
	if err == nil {
		err = seat.Remove()
	}
	return err
}

// keep goes on until the group is gone. If a pass fails, another one follows as long as there is a
// provider.
func (s *supervisor) keep(ctx context.Context) error {
	s.provided = time.Now()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		over, err := s.pass(ctx)
		if over || err != nil && (s.left || errors.Is(err, fs.ErrNotExist)) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// abandoned reports whether there was no provider for too long. Then the group ends, and the ledger
// has the reason.
func (s *supervisor) abandoned() error {
	text, err := os.ReadFile(Provider(s.Root))
	if err != nil {
		return err
	}
	now := time.Now()
	if provider, err := group.ParseProvider(text); err != nil || provider.Alive() {
		s.provided = now // a record that can't be read proves nothing
	}
	if s.left || now.Sub(s.provided) <= s.alone() {
		return nil
	}
	s.left = true
	return s.account.Enter(ledger.Abandoned, "")
}
