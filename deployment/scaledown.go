package deployment

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// Why a scale-down is refused, for errors.Is. The error names the object.
var (
	// ErrGoing: the deployment is being deleted.
	ErrGoing = errors.New("it is being deleted")
	// ErrSize: the size is negative, or above the present one.
	ErrSize = errors.New("it can only be scaled down, to 0 at the least")
	// ErrTooMany: more machines are named than replicas are removed.
	ErrTooMany = errors.New("more machines are named than replicas are taken away")
	// ErrNotMember: a named machine is not the deployment's.
	ErrNotMember = errors.New("it is no machine of the deployment")
	// ErrLeaving: a named machine is being deleted already, or was chosen to go with an earlier
	// reduction. It can't go twice.
	ErrLeaving = errors.New("it is on its way out already")
	// ErrNamedTwice: a machine is named twice.
	ErrNamedTwice = errors.New("it is named twice")
	// ErrNoKey: Keys.DeletionCandidates is empty, so machines can't be named.
	ErrNoKey = errors.New("the policy has no key for it")
)

// ScaleDown returns the deployment of the observation with to replicas, and with the named machines
// chosen to go. Both are one update, so that neither is ever seen without the other. The update
// also says when (Keys.ScaledAt). The observation must be read live; only Deployment and Sets are
// used. If the deployment already has this size and these names, it comes back unchanged, so that a
// caller whose answer was lost may ask again.
//
// The named machines are deleted first, within the bounds of the deployment's strategy. If one can't
// be deleted because availability would fall below the floor, another one is.
func ScaleDown(o *Observation, names []string, to int32, p *Policy, now time.Time) (*Deployment, error) {
	if o == nil || o.Deployment == nil {
		return nil, ErrNoDeployment
	}
	d, p := o.Deployment, p.WithDefaults()
	refuse := func(err error) (*Deployment, error) {
		return nil, fmt.Errorf("scaling deployment %s from %d to %d: %w", d.Key, d.Spec.Replicas, to, err)
	}
	if d.Deleted() {
		return refuse(ErrGoing)
	}
	listed, _ := parseDeletionCandidates(d.Annotations[p.Keys.DeletionCandidates])
	if to == d.Spec.Replicas && allListed(listed, names) {
		return d, nil
	}
	if bad := o.mayLose(names, to, p.Keys.DeletionCandidates, listed); bad != nil {
		return refuse(bad)
	}
	changed := d.Clone()
	changed.Spec.Replicas = to
	if len(names) > 0 {
		at := now.Truncate(time.Second)
		if before := d.scaledAt(p); before.After(at) { // another scaler's clock is ahead
			at = before
		}
		for _, name := range names {
			listed = append(listed, machineset.DeletionCandidate{Name: name, At: at})
		}
		changed.Annotations = withDeletionCandidates(d.Annotations, p.Keys.DeletionCandidates, listed)
		if p.Keys.ScaledAt != "" {
			changed.Annotations[p.Keys.ScaledAt] = at.UTC().Format(time.RFC3339)
		}
	}
	return changed, nil
}

func allListed(listed []machineset.DeletionCandidate, names []string) bool {
	for _, name := range names {
		if !slices.ContainsFunc(listed, func(v machineset.DeletionCandidate) bool { return v.Name == name }) {
			return false
		}
	}
	return true
}

// mayLose returns why the named machines can't be chosen to go when the deployment is scaled down
// to to. Nil: they can.
func (o *Observation) mayLose(names []string, to int32, key string, listed []machineset.DeletionCandidate) error {
	replicas := o.Deployment.Spec.Replicas
	switch {
	case to < 0 || to > replicas:
		return ErrSize
	case len(names) > 0 && key == "":
		return ErrNoKey
	case int64(len(names)) > int64(replicas)-int64(to):
		return ErrTooMany
	}
	for i, name := range names {
		bad := o.mayLeave(name, listed)
		if slices.Contains(names[:i], name) {
			bad = ErrNamedTwice
		}
		if bad != nil {
			return fmt.Errorf("machine %s: %w", name, bad)
		}
	}
	return nil
}

// mayLeave returns why a machine can't be chosen to go. Nil: it can.
func (o *Observation) mayLeave(name string, listed []machineset.DeletionCandidate) error {
	owner, m := o.find(name)
	switch {
	case m == nil:
		return ErrNotMember
	case m.Deleted() || owner.Deleted():
		return ErrLeaving
	}
	named := func(v machineset.DeletionCandidate) bool { return v.Name == name }
	if slices.ContainsFunc(listed, named) || slices.ContainsFunc(owner.Instructions.DeletionCandidates, named) {
		return ErrLeaving
	}
	return nil
}

// find returns the machine of that name and its set. Nil: the deployment has none.
func (o *Observation) find(name string) (*machineset.Set, *machine.Machine) {
	key := object.Key{Namespace: o.Deployment.Namespace, Name: name}
	for _, c := range o.Sets {
		if c.Set == nil || !c.Set.OwnedBy(o.Deployment.UID) {
			continue
		}
		for _, m := range c.Machines {
			if m != nil && m.Key == key && m.OwnedBy(c.Set.UID) {
				return c.Set, m
			}
		}
	}
	return nil, nil
}
