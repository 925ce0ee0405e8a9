package fsm

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machine"
)

// What storage holds is anybody's text. The library adds a state it is asked
// about to its table for good, so one machine a table would grow without end.
func TestUnknownStatesAreNotAddedToTheSharedMachine(t *testing.T) {
	c, err := NewChecker(machine.PhaseTable())
	require.NoError(t, err)
	before := c.machines["phase"].machine.ToGraph()
	for i := range 100 {
		move := machine.Move{Table: "phase", From: fmt.Sprintf("junk%d", i), On: "delete", To: "Terminating"}
		require.ErrorIs(t, c.Fire(context.Background(), move), ErrIllegal)
	}
	assert.Equal(t, before, c.machines["phase"].machine.ToGraph())
}

// The library asks for the state with a context of its own when it draws.
func TestAContextWithoutCellIsAnError(t *testing.T) {
	_, err := read(context.Background())
	assert.ErrorIs(t, err, errNoCell)
	assert.ErrorIs(t, write(context.Background(), "Running"), errNoCell)
}

func TestMoveErrorUnwraps(t *testing.T) {
	cause := errors.New("cause")
	assert.ErrorIs(t, &MoveError{Err: cause}, cause)
}
