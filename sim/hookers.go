package sim

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/machine"
)

// hookers are programs that put hooks on machines, and take them off some time after the deletion of
// the machine has begun.
type hookers struct {
	*ground
	machines *trackedStore[*machine.Machine]
	waits    map[string]hookWait // by UID of the machine
}

// hookWait is a hook that is to be taken off.
type hookWait struct {
	key string
	d   time.Duration // after the deletion began; zero: it stays
}

// off takes a hook off a machine.
func (h *hookers) off(m *machine.Machine, key string) {
	m = m.Clone()
	delete(m.Annotations, key)
	_, _ = h.machines.Update(context.Background(), m) // read in the same instant: no conflict
}

// hookName is what the annotation of a hook ends with.
const hookName = "sim"

// see takes hooks off.
func (h *hookers) see(e event) {
	s, ok := e.(stored[*machine.Machine])
	if !ok || s.now == nil || !s.now.Deleted() {
		return
	}
	wait, waits := h.waits[s.now.UID]
	if !waits {
		return
	}
	delete(h.waits, s.now.UID)
	if wait.d > 0 {
		key := s.now.Key
		h.After(wait.d, func() {
			if m, err := h.machines.Get(context.Background(), key); err == nil && m.Annotations[wait.key] != "" {
				h.off(m, wait.key)
				h.check()
			}
		})
	}
}
