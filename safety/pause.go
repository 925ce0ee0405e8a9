package safety

import "github.com/millwright-go/millwright/machine"

// A machine that is paused (machine.Paused) is left alone here as well: no VM of
// its name is an orphan, its clocks are restarted when the pause ends and not
// before, and as nobody replaces it, it takes no place in the budget of
// replacements, also where it has failed.

func isPaused(m *machine.Machine, key string) bool {
	paused, _ := machine.Paused(&m.Meta, key)
	return paused
}
