package main

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/millwright-go/millwright/adapters/bolt"
	"github.com/millwright-go/millwright/examples/quickstart/heartbeat"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/store"
)

// stores keep the objects of each kind.
type stores struct {
	pools    store.Collection[*machinepool.Pool]
	machines store.Collection[*machine.Machine] // there are none
	classes  store.Collection[*machine.Class]
	secrets  store.Collection[*machine.Secret]
	nodes    store.Collection[*machine.Node]
	closes   func() error
}

// inMemory keeps objects as long as this program runs.
func inMemory() stores {
	in := manager.InMemory(time.Now)
	return stores{
		pools: in.Pools, machines: in.Machines, classes: in.Classes, secrets: in.Secrets,
		nodes:  store.NewMemory(time.Now, manager.NodeIndexes(machine.DefaultPolicy().Keys.NodeMachine)),
		closes: func() error { return nil },
	}
}

// inFile keeps objects in a file that only one program at a time can open. A program that was just
// killed has some seconds to release it.
func inFile(path string) (stores, error) {
	db, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		return stores{}, err
	}
	return stores{
		pools: db.Pools(), machines: db.Machines(), classes: db.Classes(), secrets: db.Secrets(), nodes: db.Nodes(),
		closes: db.Close,
	}, nil
}

// join returns the token of the cluster: the stored one, or else a new one.
func (s stores) join(ctx context.Context) (token string, err error) {
	secret, err := s.secrets.Get(ctx, secretKey)
	if errors.Is(err, store.ErrNotFound) {
		return rand.Text(), nil
	}
	if err != nil {
		return "", err
	}
	join, ok := heartbeat.ParseJoin(secret.Data[machine.UserData])
	if !ok {
		return "", errors.New("the secret that is stored says nothing of the cluster")
	}
	return join.Token, nil
}
