package manager

import (
	"errors"
	"fmt"
	"time"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/manager/engine"
)

// ErrStuck is in the error of Health.
var ErrStuck = errors.New("manager: stuck")

// stuckAfter is for how long a call may be overdue, and a pass under way, before the process counts as
// stuck. A pass has the time of several calls besides.
const (
	stuckAfter   = time.Hour
	callsOfAPass = 8
)

// Health returns an error that is an ErrStuck if a restart of the process would help: a call of a driver
// has been overdue for more than an hour, so many are overdue that no more are made for a class, or a
// pass of Run has lasted longer than an hour and eight calls may. It is for a liveness check. Nil: none
// of this is so. A new process forgets overdue calls, and makes them again as after a crash.
func (m *Manager) Health() error {
	now, t := m.options.Runtime.Now(), &m.options.Tuning
	if refused := m.calls.Refused(); len(refused) > 0 {
		return fmt.Errorf("%w: so many calls of the driver have not returned that none is made for class %s", ErrStuck, refused[0])
	}
	longest := t.CallTimeout + t.CallGrace
	for _, c := range m.calls.Overdue() {
		if now.Sub(c.Began) > longest+stuckAfter {
			return fmt.Errorf("%w: %w", ErrStuck, &LeftError{Calls: []driver.OverdueCall{c}})
		}
	}
	long := m.doing.places(func(p Place, since time.Time) bool {
		return p.In == engine.InPass && now.Sub(since) > stuckAfter+callsOfAPass*longest
	})
	if len(long) > 0 {
		return fmt.Errorf("%w: %w", ErrStuck, &LeftError{Places: long})
	}
	return nil
}
