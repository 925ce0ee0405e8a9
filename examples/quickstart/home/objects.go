package home

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/millwright-go/millwright/adapters/bolt"
	"github.com/millwright-go/millwright/examples/quickstart/heartbeat"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// Objects are what a manager works on, and the nodes of its cluster.
type Objects struct {
	manager.Options // where each kind of object is kept, and the clock
	Nodes           store.Collection[*machine.Node]
	Close           func() error
}

// inMemory keeps objects as long as this program runs.
func inMemory(now func() time.Time) Objects {
	return Objects{
		Options: manager.InMemory(now),
		Nodes:   store.NewMemory(now, manager.NodeIndexes(machine.DefaultPolicy().Keys.NodeMachine)),
		Close:   func() error { return nil },
	}
}

// inFile keeps objects in a file that only one program at a time can open. A program that was just
// killed has some seconds to release it.
func inFile(path string, now func() time.Time) (Objects, error) {
	db, err := bolt.Open(path, bolt.Options{Now: now})
	if err != nil {
		return Objects{}, err
	}
	return Objects{Options: db.ManagerOptions(), Nodes: db.Nodes(), Close: db.Close}, nil
}

// Token returns the token of the cluster that machines join: the one in the stored secret, or else a
// new one.
func (o Objects) Token(ctx context.Context, secret object.Key) (string, error) {
	stored, err := o.Store.Secrets.Get(ctx, secret)
	if errors.Is(err, store.ErrNotFound) {
		return rand.Text(), nil
	}
	if err != nil {
		return "", err
	}
	join, ok := heartbeat.ParseJoin(stored.Data[machine.UserData])
	if !ok {
		return "", errors.New("the secret that is stored says nothing of the cluster")
	}
	return join.Token, nil
}
