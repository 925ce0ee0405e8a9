package manager

import (
	"time"

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
	recorded time.Time // of a machine: when its VM was
}

// failed counts one more failure in a row of one stage and returns how many
// there are now.
func (m *memo) failed(key object.Key, kind machine.OperationKind, stage machine.Stage) int {
	return m.Failed(key, string(kind)+"/"+string(stage))
}

// forget drops what is known of an object that is gone, or has succeeded.
func (m *memo) forget(key object.Key) {
	m.Forget(key)
	m.notes.Forget(key)
}
