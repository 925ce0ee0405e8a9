package manager

import (
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/store"
)

// InMemory returns options whose objects are kept in memory, all kinds of
// them, by the clock now; nil: time.Now. Driver is still to be set.
func InMemory(now func() time.Time) Options {
	return Options{
		Store: Store{
			Machines:    store.NewMemory(now, MachineIndexes()),
			Classes:     store.NewMemory(now, ClassIndexes()),
			Secrets:     store.NewMemory[*machine.Secret](now, nil),
			Sets:        store.NewMemory(now, SetIndexes()),
			Deployments: store.NewMemory(now, DeploymentIndexes()),
			Pools:       store.NewMemory(now, PoolIndexes()),
		},
		Runtime: Runtime{Now: now},
	}
}
