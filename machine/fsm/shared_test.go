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

// TestUnknownStatesAreNotAddedToTheSharedMachine: a stored state can be any text. The library adds each state
// that it is asked about to its machine forever, so the shared machine of a table would grow without end.
func TestUnknownStatesAreNotAddedToTheSharedMachine(t *testing.T) {
	s, err := New(Machines(nil)...)
	require.NoError(t, err)
	before := s.states[0].machine.ToGraph()
	for i := range 100 {
		m := &machine.Machine{Status: machine.Status{Phase: machine.Phase(fmt.Sprintf("junk%d", i))}}
		move := machine.Move{Table: "phase", From: string(m.Status.Phase), On: "delete", To: "Terminating"}
		require.ErrorIs(t, s.Fire(context.Background(), m, m, nil, move), ErrIllegal)
		move.From = machine.Unrecognized
		require.ErrorIs(t, s.Fire(context.Background(), m, m, nil, move), ErrIllegal, "the phase does not change")
	}
	assert.Equal(t, before, s.states[0].machine.ToGraph())
}

// TestAContextWithoutCellIsAnError: the library reads the state with its own context when it draws.
func TestAContextWithoutCellIsAnError(t *testing.T) {
	_, err := read(context.Background())
	assert.ErrorIs(t, err, errNoCell)
	assert.ErrorIs(t, write(context.Background(), "Running"), errNoCell)
	assert.False(t, Guard(nil).allows(context.Background()))
}

func TestMoveErrorUnwraps(t *testing.T) {
	cause := errors.New("cause")
	assert.ErrorIs(t, &MoveError{Err: cause}, cause)
}
