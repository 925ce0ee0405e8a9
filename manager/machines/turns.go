package machines

import (
	"sync"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
)

// turns limits how many VMs of a fleet are updated at a time. What it counts is
// in the machines too: a process that is new reads it from its cache once, so
// that right after a start a few more may be under way. That costs a provider
// some calls, and no machine anything.
type turns struct {
	mu     sync.Mutex
	fleets map[string]*engine.Permits[turn] // by UID of the deployment, or of a set without one
}

// turn is a permit to update a VM, by the UID of its machine.
type turn struct {
	key   object.Key
	since time.Time
	want  machine.VMSpec // what the VM is updated to
}

// of are the turns of a fleet.
func (t *turns) of(fleet string) *engine.Permits[turn] {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fleets == nil {
		t.fleets = make(map[string]*engine.Permits[turn])
	}
	if t.fleets[fleet] == nil {
		t.fleets[fleet] = new(engine.Permits[turn])
	}
	return t.fleets[fleet]
}
