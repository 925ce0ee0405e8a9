package machines

import (
	"time"

	"github.com/millwright-go/millwright/machine"
)

// answers are what the driver has answered in a pass that ended with a conflict, that could not make the
// call which follows yet, or that waits and would make the same call again. The next pass decides from
// them: it reads again what others may have written, and repeats no call.
type answers struct {
	o  machine.Observation // of that pass, as it ended
	at time.Time
	// waits says that the pass waits. They serve to wait on, and for nothing else.
	waits bool
}
