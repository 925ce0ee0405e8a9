package main

import (
	"time"

	"github.com/millwright-go/millwright/adapters/bolt"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/store"
)

// stores keep the objects of each kind.
type stores struct {
	machines    store.Collection[*machine.Machine]
	sets        store.Collection[*machineset.Set]
	deployments store.Collection[*deployment.Deployment]
	classes     store.Collection[*machine.Class]
	secrets     store.Collection[*machine.Secret]
	nodes       store.Collection[*machine.Node]
	closes      func() error
}

// clock is the clock of objects and the manager. Tests start programs whose clock is behind, so
// that what they leave is as old as if time had passed.
var clock = time.Now

// inMemory keeps objects as long as this program runs.
func inMemory() stores {
	return stores{
		machines:    store.NewMemory(clock, manager.MachineIndexes()),
		sets:        store.NewMemory(clock, manager.SetIndexes()),
		deployments: store.NewMemory(clock, manager.DeploymentIndexes()),
		classes:     store.NewMemory(clock, manager.ClassIndexes()),
		secrets:     store.NewMemory[*machine.Secret](clock, nil),
		nodes:       store.NewMemory(clock, manager.NodeIndexes(machinePolicy().Keys.NodeMachine)),
		closes:      func() error { return nil },
	}
}

// inFile keeps objects in a file that only one program at a time can open. A program that was just
// killed has some seconds to release it.
func inFile(path string) (stores, error) {
	db, err := bolt.Open(path, bolt.Options{Now: clock})
	if err != nil {
		return stores{}, err
	}
	return stores{
		machines: db.Machines(), sets: db.Sets(), deployments: db.Deployments(),
		classes: db.Classes(), secrets: db.Secrets(), nodes: db.Nodes(),
		closes: db.Close,
	}, nil
}
