package main

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// fleetCreated is when the imagined fleet was created. The preview begins a month later.
var fleetCreated = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// fleet returns an imagined deployment, with its set and machines before the rollout.
func (o *options) fleet() (*deployment.Deployment, []deployment.Children) {
	web := &deployment.Deployment{}
	web.Name, web.UID, web.CreatedAt = "web", "web", fleetCreated
	web.Spec.Replicas = int32(o.replicas)
	web.Spec.MinReady = o.minReady
	web.Spec.Strategy = deployment.Rolling(o.surge, o.unavailable)
	web.Spec.Selector.Labels = map[string]string{"app": "web"}
	web.Spec.Template = template("v1")
	if o.from == 0 {
		return web, nil
	}
	sets := []deployment.Children{running(web, o.from)}
	if o.newTemplate {
		web.Spec.Template = template("v2")
	}
	return web, sets
}

func template(class string) machineset.Template {
	t := machineset.Template{Labels: map[string]string{"app": "web"}}
	t.Spec.Class.Name = class
	return t
}

// running returns a set of the deployment with n running machines.
func running(web *deployment.Deployment, n int) deployment.Children {
	set := &machineset.Set{Meta: object.Meta{
		Key: object.Key{Name: "web-v1"}, UID: "web-v1", CreatedAt: fleetCreated,
		Labels:     web.Spec.Template.Labels,
		Finalizers: []string{machineset.Finalizer},
		Owner:      &object.Owner{Kind: deployment.OwnerKind, Name: web.Name, UID: web.UID},
	}}
	set.Spec = machineset.Spec{
		Replicas: int32(n), Selector: web.Spec.Selector, Template: web.Spec.Template, MinReady: web.Spec.MinReady,
	}
	set.Instructions.Reservation = machineset.Reservation{Settled: int64(n), Reserved: int64(n), At: fleetCreated}
	children := deployment.Children{Set: set}
	for i := range n {
		m := &machine.Machine{
			Meta: object.Meta{
				Key: object.Key{Name: set.MachineName(int64(i) + 1)}, UID: fmt.Sprint("m", i+1), CreatedAt: fleetCreated,
				Labels: web.Spec.Template.Labels,
				Owner:  &object.Owner{Kind: machineset.OwnerKind, Name: set.Name, UID: set.UID},
			},
			Spec:   web.Spec.Template.Spec,
			Status: machine.Status{Phase: machine.PhaseRunning, Since: fleetCreated},
		}
		children.Machines = append(children.Machines, m)
	}
	return children
}
