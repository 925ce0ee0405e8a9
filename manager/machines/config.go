package machines

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/pace"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/orphan"
	"github.com/millwright-go/millwright/store"
)

// Config is what machines need of the rest of a fleet.
type Config struct {
	Machines    *engine.Objects[*machine.Machine]
	Classes     *engine.Objects[*machine.Class]
	Secrets     store.Collection[*machine.Secret]       // nil: there are none
	Sets        *engine.Objects[*machineset.Set]        // nil: there are none
	Deployments *engine.Objects[*deployment.Deployment] // nil: there are none
	Nodes       store.Collection[*machine.Node]         // nil: there is no cluster
	// SecretNamespaces are those that classes may take secrets from beside their own. Nil: any.
	SecretNamespaces []string
	// MigratesClasses says that a class of another kind is not ours, even if one of ours has its name.
	MigratesClasses bool

	Driver      driver.Driver
	Tokens      Tokens  // nil: nothing makes bootstrap tokens
	Drainer     Drainer // nil: deletions do not wait for workload
	CallTimeout time.Duration

	Policy *machine.Policy
	// UpdateLimit is how many VMs of so many replicas may be updated at a time.
	UpdateLimit func(replicas int32) int
	// Safety limits replacements and slows creations; nil: nothing does.
	Safety *safety.Policy
	// Backoff is shared with all that create machines.
	Backoff *Backoff
	// Paces are shared with all that call the provider; they count only with Safety.
	Paces *pace.Paces

	// Hold reports whether no pass may be made yet. Nil: any time.
	Hold func() (engine.Result, bool)
	// Frozen reports whether an API server does not answer.
	Frozen func() bool
	// Thaw returns when to look again at what is frozen and would be looked at again at at.
	Thaw func(at time.Time) time.Time
	// WatchedSince returns since when this process has watched the fleet.
	WatchedSince func(now time.Time) time.Time
	// Split returns the split spec of a class; nil: there is no class, or nothing can be updated.
	Split func(*machine.Class) *machine.VMSpec
	// Missing returns what is known of a machine whose VM no listing names; nil: nothing.
	Missing func(*machine.Machine) *machine.MissingVM
	// Unhealthy reports whether the last listing named the VM of a machine as unhealthy.
	Unhealthy func(*machine.Machine) bool
	// Asked is told how the provider answered for such machines.
	Asked func(object.Key, codes.Code)
	// Hint is told of a reason to look for orphans.
	Hint func(orphan.Hint)

	// Lasted is told how long a part of a machine's life took; may be nil.
	Lasted func(object.Key, Span, time.Duration)
	// Panicked sets aside what a machine's drain holds; nil: nothing does.
	Panicked func(context.Context, object.Key)
}

// Drainer empties nodes before their VMs are deleted or updated in place. It is
// optional: without one, deletions and updates do not wait for pods and volumes.
//
// A call does what can be done now and answers; it does not wait for pods.
// While the answer is not Done, the machine asks again at the answer's At, when
// its node changes, and when its time is up. Both calls are made again after a
// crash, so what must survive is the implementation's to record on the node.
//
// An error counts as a failure of the drain and is tried again by the recovery
// table of package codes; store.ErrConflict has the pass begin again.
type Drainer interface {
	// Drain empties order.Node, which is m's.
	Drain(ctx context.Context, m *machine.Machine, order *machine.DrainNode) (machine.DrainAnswer, error)
	// Detach has the volumes detached that are still attached to order.Node
	// after a drain by force.
	Detach(ctx context.Context, m *machine.Machine, order *machine.DetachVolumes) (machine.DrainAnswer, error)
}

// Span is a part of a machine's life whose length is told, see Config.Lasted.
type Span string

// The spans. Where no time of the beginning is known, such as after a restart, that of the
// step recorded before counts.
const (
	SpanCreation       Span = "creation"       // from the machine's creation until its VM is recorded
	SpanInitialization Span = "initialization" // from then until the VM is initialized, if the driver does that
	SpanJoin           Span = "join"           // from then until its node is healthy for the first time
	SpanDrain          Span = "drain"          // from when nothing holds its drain back until its node is drained, or drained by force
	SpanDeletion       Span = "deletion"       // from the request to delete it until VM, node and record are gone
)
