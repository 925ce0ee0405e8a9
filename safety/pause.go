package safety

import "github.com/millwright-go/millwright/machine"

// This package leaves a paused machine (machine.Paused) alone too. No VM of its name is an orphan.
// Its clocks are restarted when the pause ends and not before. It takes no place in the budget of
// replacements, even if it has failed, because no set replaces it.

func isPaused(m *machine.Machine, key string) bool {
	paused, _ := machine.Paused(&m.Meta, key)
	return paused
}
