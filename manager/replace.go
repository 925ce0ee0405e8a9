package manager

import (
	"context"
	"errors"
	"fmt"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// Why a machine is not replaced, for errors.Is.
var (
	// ErrNoOwner: the machine has no set that would make another.
	ErrNoOwner = errors.New("no set owns it")
	// ErrGoing: the machine is being deleted already.
	ErrGoing = errors.New("it is being deleted")
	// ErrNoKey: the policy has no key for the request.
	ErrNoKey = errors.New("the policy has no key for it")
)

// Replace asks for a machine to be replaced: its set makes another first, where
// the deployment's strategy allows for more machines for a time, and lets it go
// once availability permits. It returns when the request is stored; that it is
// there already is fine. Machines that are asked for together are replaced as
// far as the bounds allow, the others after them; during a rollout, and while
// the deployment is paused, they wait.
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
		return ErrGoing
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
