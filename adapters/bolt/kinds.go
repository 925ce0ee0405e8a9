package bolt

import (
	"context"
	"errors"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/record"
)

// anyCollection is a Collection of any kind.
type anyCollection interface {
	name() string
	bucketName() []byte
	damaged() []*DamagedError
	discard(ctx context.Context, d *DamagedError) error

	// The committer calls these. After writeLastVersion, stagedSummary returns the kind's summary with
	// the staged writes. finish makes the staged writes visible, or drops them if they were not committed.
	writeLastVersion() error
	stagedSummary() kindSummary
	finish(committed bool)
}

// openCollections opens the collections of all kinds.
func (db *DB) openCollections() error {
	label := machine.DefaultPolicy().Keys.NodeMachine
	return errors.Join(
		openInto(db, &db.classes, "class", manager.ClassIndexes(), nil),
		openInto(db, &db.secrets, "secret", nil, db.options.Seal),
		openInto(db, &db.deployments, "deployment", manager.DeploymentIndexes(), nil),
		openInto(db, &db.sets, "set", manager.SetIndexes(), nil),
		openInto(db, &db.machines, "machine", manager.MachineIndexes(), nil),
		openInto(db, &db.pools, "pool", manager.PoolIndexes(), nil),
		openInto(db, &db.nodes, "node", manager.NodeIndexes(label), nil),
	)
}

// openInto opens the collection of a kind, and stores it in *at.
func openInto[T object.Object[T]](db *DB, at **Collection[T], kind string, indexes map[store.Index]func(T) []string, seal record.Sealer) (err error) {
	*at, err = collection(db, kind, indexes, seal)
	return err
}

// Machines returns the collection of machines, with manager.MachineIndexes.
func (db *DB) Machines() store.Collection[*machine.Machine] { return db.machines }

// Classes returns the collection of classes, with manager.ClassIndexes.
func (db *DB) Classes() store.Collection[*machine.Class] { return db.classes }

// Secrets returns the collection of secrets, without indexes. Options.Seal encrypts them.
func (db *DB) Secrets() store.Collection[*machine.Secret] { return db.secrets }

// Sets returns the collection of sets, with manager.SetIndexes.
func (db *DB) Sets() store.Collection[*machineset.Set] { return db.sets }

// Deployments returns the collection of deployments, with manager.DeploymentIndexes.
func (db *DB) Deployments() store.Collection[*deployment.Deployment] { return db.deployments }

// Pools returns the collection of pools, with manager.PoolIndexes.
func (db *DB) Pools() store.Collection[*machinepool.Pool] { return db.pools }

// Nodes returns a collection of nodes, with manager.NodeIndexes of the default label. It makes the DB a
// manager.Cluster, for clusters without another store for nodes.
func (db *DB) Nodes() store.Collection[*machine.Node] { return db.nodes }

// ManagerOptions returns options with db's collections and clock. Set Driver. Machines join no cluster
// unless you set Cluster, which may be db itself.
func (db *DB) ManagerOptions() manager.Options {
	return manager.Options{
		Store: manager.Store{
			Machines:    db.Machines(),
			Classes:     db.Classes(),
			Secrets:     db.Secrets(),
			Sets:        db.Sets(),
			Deployments: db.Deployments(),
			Pools:       db.Pools(),
		},
		Runtime: manager.Runtime{Now: db.options.Now},
	}
}

var _ manager.Cluster = (*DB)(nil)
