package manager

import (
	"context"
	"errors"
	"fmt"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/manager/deployments"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// commandTries bounds how often a command begins again when somebody else
// writes the object meanwhile.
const commandTries = 10

// ErrNoDeployments is the answer to commands about deployments where
// Options.Deployments is not set.
var ErrNoDeployments = errors.New("manager: no Deployments")

// ScaleDown takes replicas away from a deployment, down to to, and has the
// machines named go for them, in one write: see deployment.ScaleDown for what is
// refused and with which errors. What an autoscaler has found to be idle goes so,
// and nothing else in its place. It returns when that is stored; the machines
// go as reconcilers get to it. It may be called again when its answer was lost.
func (m *Manager) ScaleDown(ctx context.Context, key object.Key, names []string, to int32) error {
	o := &m.options
	if o.Deployments == nil {
		return ErrNoDeployments
	}
	var err error
	for range commandTries {
		if err = o.scaleDown(ctx, key, names, to); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return err
}

func (o *Options) scaleDown(ctx context.Context, key object.Key, names []string, to int32) error {
	began := o.Now()
	d, err := o.Deployments.Live().Get(ctx, key)
	if err != nil {
		return fmt.Errorf("scaling deployment %s: %w", key, err)
	}
	sets, err := o.Sets.Live().List(ctx, store.Query{Index: IndexOwner, Value: d.UID})
	if err != nil {
		return fmt.Errorf("scaling deployment %s: %w", key, err)
	}
	seen := &deployment.Observation{Deployment: d, Read: decision.Freshness{Began: began}}
	if seen.Sets, err = deployments.WithMachines(ctx, sets, o.Machines.Live()); err != nil {
		return fmt.Errorf("scaling deployment %s: %w", key, err)
	}
	changed, err := deployment.ScaleDown(seen, names, to, o.DeploymentPolicy, o.Now())
	if err != nil || changed == d {
		return err
	}
	if _, err = o.Deployments.Update(ctx, changed); err != nil {
		return fmt.Errorf("scaling deployment %s: %w", key, err)
	}
	return nil
}
