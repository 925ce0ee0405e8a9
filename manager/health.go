package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// ErrStuck is in the error of Health.
var ErrStuck = errors.New("manager: stuck")

// stuckAfter is how long a call may be overdue, or a pass may last, before the process counts as stuck. A
// pass may last for callsOfAPass calls in addition.
const (
	stuckAfter   = time.Hour
	callsOfAPass = 8
)

// Health returns an error that is an ErrStuck if a restart of the process would help: a call of a driver
// has been overdue for more than an hour, so many are overdue that no more are made for a class, or a
// pass of Run has lasted longer than an hour and the time of eight calls. It is for a liveness check. Nil:
// none of this is so. A new process forgets overdue calls, and makes them again as after a crash.
func (m *Manager) Health() error {
	now, t := m.options.Runtime.Now(), &m.options.Tuning
	if refused := m.calls.Refused(); len(refused) > 0 {
		return fmt.Errorf("%w: so many calls of the driver have not returned that none is made for class %s", ErrStuck, refused[0])
	}
	longest := t.CallTimeout + t.CallGrace
	for _, c := range m.calls.Overdue() {
		if now.Sub(c.Began) > longest+stuckAfter {
			return fmt.Errorf("%w: %w", ErrStuck, &LeftError{Calls: []driver.OverdueCall{c}})
		}
	}
	long := m.activities.places(func(p Place, since time.Time) bool {
		return p.In == engine.InPass && now.Sub(since) > stuckAfter+callsOfAPass*longest
	})
	if len(long) > 0 {
		return fmt.Errorf("%w: %w", ErrStuck, &LeftError{Places: long})
	}
	return nil
}

// probe asks each collection for each index that is needed, so that a missing
// one is an error at the start and not a change that wakes nothing.
func (o *Options) probe(ctx context.Context) error {
	err := probeAll(ctx, o.Store.Machines, "Store.Machines", IndexOwner, IndexClass, IndexNode, IndexVM)
	if o.Store.Secrets != nil {
		err = errors.Join(err, probeAll(ctx, o.Store.Classes, "Store.Classes", IndexSecret))
	}
	if o.Store.Sets != nil {
		err = errors.Join(err, probeAll(ctx, o.Store.Sets, "Store.Sets", IndexOwner, IndexNamespace))
	}
	if o.Store.Deployments != nil {
		err = errors.Join(err, probeAll(ctx, o.Store.Deployments, "Store.Deployments", IndexNamespace))
	}
	if o.Cluster != nil {
		err = errors.Join(err, probeAll(ctx, o.Cluster.Nodes(), "Cluster.Nodes", IndexMachine))
	}
	return errors.Join(err, o.probePools(ctx), o.probeClasses(ctx))
}

// probePools asks for the indexes that pools are reconciled by.
func (o *Options) probePools(ctx context.Context) error {
	if !o.managesPools() {
		return nil
	}
	err := probeAll(ctx, o.Store.Pools, "Store.Pools", IndexClass, IndexVM)
	if o.Cluster != nil {
		err = errors.Join(err, probeAll(ctx, o.Cluster.Nodes(), "Cluster.Nodes", IndexVM))
	}
	return err
}

// probeClasses asks for the indexes that classes are kept and migrated by.
func (o *Options) probeClasses(ctx context.Context) error {
	if !o.managesClasses() {
		return nil
	}
	if o.Store.Sets != nil {
		if err := probeAll(ctx, o.Store.Sets, "Store.Sets", IndexClass); err != nil {
			return err
		}
	}
	if o.Store.Deployments != nil {
		return probeAll(ctx, o.Store.Deployments, "Store.Deployments", IndexClass)
	}
	return nil
}

func probeAll[T object.Object[T]](ctx context.Context, c store.Collection[T], collection string, indexes ...store.Index) error {
	for _, name := range indexes {
		if _, err := c.List(ctx, store.Query{Index: name, Value: "-"}); err != nil {
			return fmt.Errorf("%w: %s, index %s: %w", ErrOptions, collection, name, err)
		}
	}
	return nil
}
