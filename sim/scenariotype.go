package sim

import (
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machinepool"
)

// Scenario is a world, what is in it, and what is done to it, as plain data. Faults go on until the
// last step and Calm are over. Then everything has to converge, and is deleted in the end. The zero
// value is an empty world.
type Scenario struct {
	Options Options
	// Classes exist besides "small".
	Classes     []string
	Deployments []*deployment.Deployment
	// Pools exist besides them. If there are any, Options.Pools may be nil: the provider of groups
	// is then the simplest one.
	Pools []*machinepool.Pool
	// Apps are started before anything else happens.
	Apps []App
	// Lone adds a machine that belongs to no set and that no selector picks. It is deleted with the
	// deployments.
	Lone bool
	// Steps are done one after another.
	Steps []Step
	// Calm is how long after the last step the faults stop.
	Calm time.Duration
	// Limit is how long convergence may take once the faults have stopped, and then the deletion.
	// Zero: 48 h.
	Limit time.Duration
	// Keep leaves the deployments at the end. Without it they are deleted, and the run shows
	// whether anything stays behind.
	Keep bool

	needs []string // the code that a written scenario had
}

// These tell how far a scenario has come.
type (
	// allAtRest: all has converged, and nothing is to be done.
	allAtRest struct{}
	// allGone: all was deleted, and nothing is left.
	allGone struct{}
)
