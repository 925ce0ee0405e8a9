package procdriver

import (
	"syscall"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
)

// look is how often a host looks whether a process that is not its child has
// ended.
const look = 10 * time.Millisecond

// Adopt has the host look after processes that the ledger knows and whose
// program has died: it sees when they end and enters that, as it does for its
// children. Those that it has or had already, and those that ended, are passed
// over. It does nothing once the host was closed.
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

// take has a process known. The caller holds the lock.
func (h *Host) take(c *child) {
	h.children[c.order.Instance] = c
	h.known[c.order.Instance] = true
}

// outlast returns when a process that was adopted is gone. It is not waited for:
// only its parent can do that.
func (c *child) outlast() {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for c.id.Alive() {
		<-ticker.C
	}
}

// kill ends a process, whoever its parent is.
func (c *child) kill() error {
	if c.cmd == nil {
		return c.id.Signal(syscall.SIGKILL)
	}
	return c.cmd.Process.Kill() // not waited for yet, so that its PID is still its own
}
