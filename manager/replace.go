package manager

import (
	"context"
	"errors"
	"fmt"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/internal/deployments"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// Why a machine is not replaced, for errors.Is.
var (
	// ErrNoOwner: the machine has no set that would make another.
	ErrNoOwner = errors.New("no set owns it")
	// ErrDeleting: the machine is being deleted already.
	ErrDeleting = errors.New("it is being deleted")
	// ErrNoKey: the policy has no key for the request.
	ErrNoKey = errors.New("the policy has no key for it")
)

// Replace requests the replacement of a machine: its set creates another one first, if the deployment's
// strategy allows a surge, and deletes this one once availability permits. It returns when the request
// is stored, and also succeeds if it is there already. Of several requested machines, as many are replaced
// at a time as the bounds allow. During a rollout, and while the deployment is paused, they wait.
func (m *Manager) Replace(ctx context.Context, key object.Key) error {
	if _, err := store.Edit(ctx, m.options.Store.Machines, key, m.options.requestReplacement); err != nil {
		return fmt.Errorf("replacing machine %s: %w", key, err)
	}
	return nil
}

func (o *Options) requestReplacement(found *machine.Machine) error {
	request := o.Policies.Set.Keys.Replace
	switch {
	case request == "":
		return ErrNoKey
	case found.Deleted():
		return ErrDeleting
	case found.Owner == nil || found.Owner.Kind != machineset.OwnerKind || o.Store.Sets == nil:
		return ErrNoOwner
	case machineset.Requested(found, request):
		return nil
	}
	if found.Annotations == nil {
		found.Annotations = make(map[string]string, 1)
	}
	found.Annotations[request] = "true"
	return nil
}

// ErrNoDeployments is the answer to commands about deployments where
// Options.Store.Deployments is not set.
var ErrNoDeployments = errors.New("manager: no Deployments")

// ScaleDown lowers the replicas of a deployment (to is the new number) and names the machines
// that are deleted for it, in one write: see deployment.ScaleDown for what is refused
// and with which errors. So an autoscaler removes the machines that it found idle,
// and no others. It returns when that is stored; reconcilers delete the machines
// afterwards. It may be called again if its answer was lost.
func (m *Manager) ScaleDown(ctx context.Context, key object.Key, names []string, to int32) error {
	o := &m.options
	if o.Store.Deployments == nil {
		return ErrNoDeployments
	}
	_, err := store.Edit(ctx, o.Store.Deployments, key, func(d *deployment.Deployment) error {
		changed, err := o.scaledDown(ctx, d, names, to)
		if err == nil {
			*d = *changed
		}
		return err
	})
	return err
}

// scaledDown returns a deployment, which was read just now, as ScaleDown changes it.
func (o *Options) scaledDown(ctx context.Context, d *deployment.Deployment, names []string, to int32) (*deployment.Deployment, error) {
	seen := &deployment.Observation{Deployment: d}
	sets, err := o.Store.Sets.Live().List(ctx, store.Query{Index: IndexOwner, Value: d.UID})
	if err == nil {
		seen.Sets, err = deployments.WithMachines(ctx, sets, o.Store.Machines.Live())
	}
	if err != nil {
		return nil, fmt.Errorf("scaling deployment %s: %w", d.Key, err)
	}
	return deployment.ScaleDown(seen, names, to, o.Policies.Deployment, o.Runtime.Now())
}
