package manager

import (
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
)

// memo is what a reconciler remembers of its objects between passes.
type memo struct {
	engine.Memory
	notes engine.Notes[notes]
}

type notes struct {
	refusal    *deployment.Refusal // of an order
	generation int64               // that it was seen with

	statusWritten time.Time
	recorded      time.Time // of a machine: when its VM was
	gathering     time.Time // since when orders wait for others
}

// failed counts one more failure in a row of one stage and returns how many
// there are now.
func (m *memo) failed(key object.Key, kind machine.OperationKind, stage machine.Stage) int {
	return m.Failed(key, string(kind)+"/"+string(stage))
}

// refusal is what was refused last, if that was with this generation.
func (m *memo) refusal(key object.Key, generation int64) *deployment.Refusal {
	if n := m.notes.Of(key); n.generation == generation {
		return n.refusal
	}
	return nil
}

// forget drops what is known of an object that is gone, or has succeeded.
func (m *memo) forget(key object.Key) {
	m.Forget(key)
	m.notes.Forget(key)
}
