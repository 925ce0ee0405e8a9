package machine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machine"
)

// TestMovesPrint: a move is read as the step that it is.
func TestMovesPrint(t *testing.T) {
	joined := machine.Move{Table: machine.PhaseTable().Name, From: "Pending", On: machine.EventJoined, To: "Running"}
	require.Equal(t, "Pending -> Running (joined)", joined.String())
	require.Equal(t, "Pending -> Running (joined)", fmt.Sprint(joined))
	require.Equal(t, "new -> Pending (create)", machine.Move{On: machine.EventCreate, To: "Pending"}.String())
}
