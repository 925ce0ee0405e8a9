package manager

import (
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machine/fsm"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/fleet"
	"github.com/millwright-go/millwright/manager/internal/pace"
	"github.com/millwright-go/millwright/manager/machines"
)

// shell is what all reconcilers share.
type shell struct {
	*Options
	engine  *engine.Engine
	objects objects
	reach   *fleet.Reach
	hints   *hints
	backoff *machines.Backoff
	paces   *pace.Paces // nil: nothing is paced
	permits *permits
	specs   *specs
	// watched is shared with Manager.Run.
	watched *watched
	missing *missing // likewise
}

// objects are the objects of all kinds as reconcilers see them.
type objects struct {
	machines    *engine.Objects[*machine.Machine]
	classes     *engine.Objects[*machine.Class]
	sets        *engine.Objects[*machineset.Set]
	deployments *engine.Objects[*deployment.Deployment]
	pools       *engine.Objects[*machinepool.Pool]
}

// newObjects gives machines and pools their states. The other kinds have none.
func newObjects(e *engine.Engine, o *Options) (objects, error) {
	machines, err := fsm.New(fsm.Machines(o.Policies.Machine)...)
	if err != nil {
		return objects{}, err
	}
	pools, err := fsm.New(fsm.Pools()...)
	if err != nil {
		return objects{}, err
	}
	return objects{
		machines:    engine.NewObjects(e, string(KindMachine), o.Store.Machines, machines),
		classes:     engine.NewObjects(e, string(KindClass), o.Store.Classes, nil),
		sets:        engine.NewObjects(e, string(KindSet), o.Store.Sets, nil),
		deployments: engine.NewObjects(e, string(KindDeployment), o.Store.Deployments, nil),
		pools:       engine.NewObjects(e, string(KindPool), o.Store.Pools, pools),
	}, nil
}
