package sim

import (
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// event is something that happens in a world, of one of the types below. The world emits it at the
// moment at which it happens, so that an invariant sees the world as it is then.
type event any

// What is stored. seen is what is known of the object from before the change.
type (
	// machineChanged: the manager that lives has changed a machine.
	machineChanged struct {
		seen *record[*machine.Machine]
		now  *machine.Machine
	}
	// machineDeleted: it has deleted one, and no user has.
	machineDeleted struct {
		seen *record[*machine.Machine]
		now  *machine.Machine
	}
	// machineGone: the record of a machine is gone.
	machineGone struct{ name string }
	// setCreated, setChanged: something has made a set, or changed one.
	setCreated struct{ now *machineset.Set }
	setChanged struct {
		seen *record[*machineset.Set]
		now  *machineset.Set
	}
	// nodeStored: something has made or changed a node.
	nodeStored struct{ now *machine.Node }
	// poolStored, poolGone: something has made or changed a pool, or its record is gone.
	poolStored struct{ now *machinepool.Pool }
	poolGone   struct{ key object.Key }
)

// What becomes of machines, as seen after an effect.
type (
	// machineBorn: a fleet has another machine.
	machineBorn struct{ machine *machine.Machine }
	// machineFailed: a machine was marked failed for its health. fleet has all machines of its
	// deployment.
	machineFailed struct {
		machine *machine.Machine
		fleet   []*machine.Machine
	}
	// updateBegun: the manager has begun to change a machine's VM.
	updateBegun struct{ machine *machine.Machine }
)

// What is ordered of the workload, and what becomes of it.
type (
	// evictionTried: an eviction was ordered. podEvicted: the pod was told to terminate. podDeleted:
	// its deletion was ordered, and it had not been told to terminate before.
	evictionTried struct{ pod *pod }
	podEvicted    struct{ pod *pod }
	podDeleted    struct{ pod *pod }
	// volumeMoved: a volume is attached or detached, or about to be. detachOrdered: the manager has
	// ordered that it is taken off its node.
	volumeMoved   struct{ volume *volume }
	detachOrdered struct{ volume *volume }
)

// What is asked of the provider, and what becomes of VMs.
type (
	// called: a process calls the driver. answered: the call has ended, with err or without.
	called struct {
		by   *process
		call driver.CallInfo
	}
	answered struct {
		by   *process
		call driver.CallInfo
		err  error
	}
	// vmsCollected: orphans were deleted; before are the VMs that there were.
	vmsCollected struct{ before []drivertest.MemoryVM }
	// vmGone: the VM of a node is gone, and so many pods ran on it.
	vmGone struct {
		node    string
		running int
	}
	// poolCalled: a process calls the driver of groups about a pool. to is the size that it orders,
	// ids are the instances that are to go.
	poolCalled struct {
		pool *machinepool.Pool
		call machinepool.Call
		to   int32
		ids  []string
	}
	// dataDeleted: the bootstrap data of a pool are deleted.
	dataDeleted struct{ pool object.Key }
)

// scalerChose: a scaler took machines out of a deployment by their names; began is when it read
// them. atRest: nothing else was requested of the fleet then.
type scalerChose struct {
	deployment *deployment.Deployment
	names      []string
	atRest     bool
	began      time.Time
}

// effect is the end of any change to what is stored, or to VMs. machines are all that there are.
type effect struct{ machines []*machine.Machine }
