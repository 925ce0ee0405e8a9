package remote

import (
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/lead"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/store"
)

// openKinds opens the collections of all kinds.
func (db *DB) openKinds() {
	label := machine.DefaultPolicy().Keys.NodeMachine
	db.classes = collection(db, "class", manager.ClassIndexes(), nil)
	db.secrets = collection[*machine.Secret](db, "secret", nil, db.Seal)
	db.deployments = collection(db, "deployment", manager.DeploymentIndexes(), nil)
	db.sets = collection(db, "set", manager.SetIndexes(), nil)
	db.machines = collection(db, "machine", manager.MachineIndexes(), nil)
	db.pools = collection(db, "pool", manager.PoolIndexes(), nil)
	db.nodes = collection(db, "node", manager.NodeIndexes(label), nil)
}

// Machines returns the collection of machines, with manager.MachineIndexes. Its writes belong to no term, as
// those of the collections below: they are for programs that change what the fleet should be.
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

// Nodes returns a collection of nodes, with manager.NodeIndexes of the default label, for clusters without another
// store for nodes. It makes the DB a manager.Cluster, for programs that do not manage the fleet; a manager
// takes Cluster.
func (db *DB) Nodes() store.Collection[*machine.Node] { return db.nodes }

// Cluster returns a cluster whose nodes are in db. Its writes belong to term.
func (db *DB) Cluster(term *lead.Held) manager.Cluster { return cluster{db, term} }

type cluster struct {
	db   *DB
	term *lead.Held
}

// Nodes implements manager.Cluster.
func (c cluster) Nodes() store.Collection[*machine.Node] { return c.db.nodes.Under(c.term) }

// ManagerOptions returns options with db's collections and clock, for a manager that acts in term: all of its
// writes are refused once another process leads. Set Driver. Machines join no cluster unless you set Cluster,
// which may be that of db.
func (db *DB) ManagerOptions(term *lead.Held) manager.Options {
	return manager.Options{
		Store: manager.Store{
			Machines:    db.machines.Under(term),
			Classes:     db.classes.Under(term),
			Secrets:     db.secrets.Under(term),
			Sets:        db.sets.Under(term),
			Deployments: db.deployments.Under(term),
			Pools:       db.pools.Under(term),
		},
		Term:    term,
		Runtime: manager.Runtime{Now: db.Now},
	}
}

var _ manager.Cluster = (*DB)(nil)
