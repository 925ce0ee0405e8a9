package classes

import (
	"context"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineclass"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
)

// Config is what classes need of the rest of a fleet.
type Config struct {
	Classes     *engine.Objects[*machine.Class]
	Machines    *engine.Objects[*machine.Machine]
	Sets        *engine.Objects[*machineset.Set]        // nil: there are none
	Deployments *engine.Objects[*deployment.Deployment] // nil: there are none
	Driver      driver.Driver
	// Keep has classes, and the secrets they refer to, stay while they are used.
	Keep bool
	// Foreign holds the classes that are migrated; nil: none is.
	Foreign ForeignClasses
	// OtherUsers counts what else needs a class until it is gone; nil: nothing does.
	OtherUsers func(ctx context.Context, class object.Key, live bool) (int, error)
}

func (c *Config) policy() machineclass.Policy {
	return machineclass.Policy{Keep: c.Keep, Migrate: c.Foreign != nil}
}

// ForeignClasses holds classes of the provider's own, older kinds. They are
// read, and marked once ours have taken their place, never deleted.
type ForeignClasses interface {
	// Get reads one, live. It answers store.ErrNotFound if there is none of
	// that kind and name, also where the kind itself is not known.
	Get(ctx context.Context, kind machine.ClassRef, key object.Key) (*ForeignClass, error)
	// MarkMigrated marks one for good, so that Get answers Migrated from then
	// on, in every process. It answers store.ErrConflict if the class has
	// another version now. To mark one twice is no error.
	MarkMigrated(ctx context.Context, kind machine.ClassRef, key object.Key, version string) error
}

// ForeignClass is a class of an older kind.
type ForeignClass struct {
	// Object is handed to the driver: of the Go type that it documents.
	Object any
	// Version is opaque and changes with the class.
	Version  string
	Migrated bool
}

type reconciler struct {
	Config
	policy machineclass.Policy
	// failed holds the last failure to fill a class. To lose it shortens a wait.
	failed engine.Notes[*machineclass.Failure]
}

// pass is one pass over one class.
type pass struct {
	*engine.Pass
	*reconciler
	o    machineclass.Observation
	plan machineclass.Plan
	old  any // the older class, for the driver
}
