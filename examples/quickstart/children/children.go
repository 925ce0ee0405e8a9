// Package children starts processes, follows those that other programs have started, and enters the
// end of each in a ledger.
package children

import (
	"context"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/examples/quickstart/procid"
)

// look is the time between two checks whether an adopted process has ended.
const look = 10 * time.Millisecond

// Children are the processes of a program. New makes them. They are safe for concurrent use.
type Children struct {
	ledger  string
	running sync.WaitGroup

	mu     sync.Mutex
	all    map[string]*Child // by instance; those whose end was not seen yet
	known  map[string]bool   // by instance; those there were
	closed bool
}

// Child is a process that was started or adopted.
type Child struct {
	hand  ledger.Hand
	cmd   *exec.Cmd     // nil if it was adopted
	ended func()        // called when it was waited for; may be nil
	done  chan struct{} // closed once its end was entered
}

// New returns children whose ends are entered in the ledger of that path. If it is empty, none is
// kept.
func New(ledger string) *Children {
	return &Children{ledger: ledger, all: make(map[string]*Child), known: make(map[string]bool)}
}

// Start starts a process, and waits for it in the background. It calls ended, which may be nil, when
// the process has ended.
func (c *Children) Start(cmd *exec.Cmd, machine, instance string, ended func()) (*Child, error) {
	// It gets a process group of its own, because terminal input is not for it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.mu.Lock() // it enters itself, and nothing may adopt it before it is known here
	defer c.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	id, err := procid.Of(cmd.Process.Pid)
	if err != nil {
		id = procid.ID{PID: cmd.Process.Pid} // its instance is known nevertheless
	}
	return c.take(machine, instance, id, cmd, ended), nil
}

// Adopt follows processes that the ledger knows and whose program has died. It skips processes that
// it has or had already, and those that ended. It does nothing once Close was called.
func (c *Children) Adopt(lives []ledger.Life) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, life := range lives {
		if !life.Ended && !c.closed && !c.known[life.Instance] {
			c.take(life.Machine, life.Instance, life.ID, nil, nil)
		}
	}
}

// take adds a process and starts a goroutine that waits for it. The caller holds the lock.
func (c *Children) take(machine, instance string, id procid.ID, cmd *exec.Cmd, ended func()) *Child {
	one := &Child{
		hand: ledger.Hand{Path: c.ledger, Machine: machine, Instance: instance, ID: id},
		cmd:  cmd, ended: ended, done: make(chan struct{}),
	}
	c.all[instance], c.known[instance] = one, true
	c.running.Go(func() {
		how := one.wait()
		_ = one.hand.Enter(ledger.Ended, how) // a missing entry makes the account fail, which is what it is for
		c.mu.Lock()
		delete(c.all, instance)
		c.mu.Unlock()
		close(one.done)
	})
	return one
}

// wait returns how the process has ended. Only its parent can wait for it and be told.
func (o *Child) wait() string {
	if o.cmd != nil {
		_ = o.cmd.Wait() // the state says how it ended
		if o.ended != nil {
			o.ended()
		}
		return o.cmd.ProcessState.String()
	}
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for o.hand.ID.Alive() {
		<-ticker.C
	}
	return "gone; the program that started it has died before"
}

// Over reports whether the end of the process was entered.
func (o *Child) Over() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// Await waits until the end was entered of all processes that are meant. The parent of another process
// waits for that one.
func (c *Children) Await(ctx context.Context, meant func(ledger.Hand) bool) error {
	var of []*Child
	c.mu.Lock()
	for _, one := range c.all {
		if meant(one.hand) {
			of = append(of, one)
		}
	}
	c.mu.Unlock()
	for _, one := range of {
		select {
		case <-one.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Close kills the processes that still run, waits for all, and returns the instances that it had to
// kill.
func (c *Children) Close() (killed []string) {
	c.mu.Lock()
	c.closed = true
	for instance, one := range c.all {
		if one.kill() == nil {
			killed = append(killed, instance)
		}
	}
	c.mu.Unlock()
	c.running.Wait()
	return killed
}

// kill ends a process of any parent.
func (o *Child) kill() error {
	if o.cmd == nil {
		return o.hand.ID.Signal(syscall.SIGKILL)
	}
	return o.cmd.Process.Kill() // not waited for yet, so that its PID is still its own
}
