package procdriver

import (
	"syscall"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
)

// look is the time between a host's checks whether a process that is not its child has ended.
const look = 10 * time.Millisecond

// Adopt makes the host follow processes that the ledger knows and whose program has died. It sees
// when they end and enters that, as it does for its children. It skips processes that it has or had
// already, and those that ended. It does nothing once the host was closed.
func (h *Host) Adopt(lives []ledger.Life) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, life := range lives {
		if life.Ended || h.closed || h.known[life.Instance] {
			continue
		}
		c := &child{
			order: agent.Order{Machine: life.Machine, Instance: life.Instance, Ledger: h.options.Ledger},
			id:    life.ID, done: make(chan struct{}),
		}
		h.take(c)
		h.running.Go(func() {
			c.outlast()
			h.bury(c, "gone; the program that started it has died before")
		})
	}
}

// take adds a process to the known ones. The caller holds the lock.
func (h *Host) take(c *child) {
	h.children[c.order.Instance] = c
	h.known[c.order.Instance] = true
}

// outlast returns when a process that was adopted is gone. It does not wait for it with wait: only
// its parent can do that.
func (c *child) outlast() {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for c.id.Alive() {
		<-ticker.C
	}
}

// kill ends a process of any parent.
func (c *child) kill() error {
	if c.cmd == nil {
		return c.id.Signal(syscall.SIGKILL)
	}
	return c.cmd.Process.Kill() // not waited for yet, so that its PID is still its own
}
