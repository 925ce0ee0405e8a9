package drains

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/store"
)

// Options of a drainer.
type Options struct {
	// Nodes are those of the Cluster.
	Nodes    store.Collection[*machine.Node]
	Workload Workload
	Policy   *drain.Policy // nil: drain.DefaultPolicy; a setting that is zero: its default
	// Known returns the IDs by which the provider knows those of some volumes
	// that it knows (GetVolumeIDs); the others are not waited for. Nil: all
	// are.
	Known func(ctx context.Context, volumes []*drain.Volume) ([]string, error)
	// Limit holds drains back while too many are under way.
	Limit Limit

	Now func() time.Time
	// Each carries out n orders and returns when all have ended; nil: up to 16
	// at a time.
	Each func(ctx context.Context, n int, do func(i int))
}

// Limit bounds how many nodes of a group are drained at a time. Force does
// not wait for it.
type Limit struct {
	// Max in each group; zero: any number. As many more may be under way, no further, whose last
	// pass panicked: those let others go on.
	Max int
	// Group of a node, for example its zone or its pool. Nil: all are one.
	Group func(*machine.Node) string
}

// ErrOptions is what every error of New is, for errors.Is.
var ErrOptions = errors.New("drains: options")

// complete checks options and fills in their defaults.
func (o *Options) complete() error {
	switch {
	case o.Nodes == nil:
		return fmt.Errorf("%w: no Nodes", ErrOptions)
	case o.Workload.Pods == nil:
		return fmt.Errorf("%w: no Workload.Pods", ErrOptions)
	case o.Limit.Max < 0:
		return fmt.Errorf("%w: negative Limit.Max", ErrOptions)
	}
	o.Policy = o.Policy.WithDefaults()
	if err := o.Policy.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Each == nil {
		o.Each = engine.Parallel
	}
	o.Each = engine.Contain(o.Each)
	return nil
}
