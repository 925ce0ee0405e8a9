package manager

import (
	"github.com/millwright-go/millwright/machine/fsm"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/fleet"
	"github.com/millwright-go/millwright/manager/machines"
)

// shell is what all reconcilers share.
type shell struct {
	*Options
	engine  *engine.Engine
	moves   *fsm.Checker
	reach   *fleet.Reach
	hints   *hints
	backoff *machines.Backoff
	permits *permits
	specs   *specs
	// watched is shared with Manager.Run.
	watched *watched
	missing *missing // likewise
}
