package manager

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// specs splits the specs of classes by what the driver declares, once a version
// of a class: all machines that are made from it share the strings.
type specs struct {
	fields []string // nil: the driver can't update VMs

	mu    sync.Mutex
	split map[object.Key]splitSpec
}

type splitSpec struct {
	uid, version string
	spec         *machine.VMSpec
}

func newSpecs(d driver.Driver) *specs {
	return &specs{fields: slices.Clone(driver.UpdatableFields(d)), split: make(map[object.Key]splitSpec)}
}

// of is the split spec of a class; nil: there is no class, or nothing can be
// updated.
func (s *specs) of(c *machine.Class) *machine.VMSpec {
	if c == nil || len(s.fields) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.split[c.Key]
	if known.spec == nil || known.uid != c.UID || known.version != c.Version {
		spec := machine.SplitSpec(c, s.fields)
		if known.spec != nil && *known.spec == spec {
			spec = *known.spec // for the strings that machines share
		}
		known = splitSpec{c.UID, c.Version, &spec}
		s.split[c.Key] = known
	}
	return known.spec
}

// updateVM has the driver change the VM to what the class says.
func (p *machinePass) updateVM(ctx context.Context, lastApplied string) (*machine.VM, error) {
	secret, err := p.secret(ctx)
	if err != nil {
		return refused(err)
	}
	got, err := p.Driver.UpdateMachine(ctx, &driver.UpdateMachineRequest{
		Machine: p.o.Machine, Class: p.o.Class, Secret: secret,
		LastApplied: []byte(lastApplied), Wanted: slices.Clone(p.o.Class.ProviderSpec),
	})
	return p.answer(ctx, codes.UpdateMachine, err, func(vm *machine.VM) {
		if got != nil {
			vm.LastKnown = got.LastKnownState
		}
	})
}

// hotUpdate finds out to what the VMs of a deployment can be brought without
// being replaced.
func (p *deploymentPass) hotUpdate(ctx context.Context, d *deployment.Deployment, sets []*machineset.Set, live bool) (*deployment.HotUpdate, error) {
	if len(p.specs.fields) == 0 {
		return nil, nil //nolint:nilnil // to nothing
	}
	classes := store.Reader[*machine.Class](p.Classes)
	if live {
		classes = p.Classes.Live()
	}
	wanted := &d.Spec.Template.Spec.Class
	to, err := p.classNamed(ctx, classes, d.Namespace, wanted)
	if err != nil || to == nil {
		return nil, err
	}
	hot := &deployment.HotUpdate{Spec: *p.specs.of(to)}
	for _, set := range sets {
		have := &set.Spec.Template.Spec.Class
		if have.Name == wanted.Name || have.APIGroup != wanted.APIGroup || slices.Contains(hot.From, have.Name) {
			continue
		}
		from, err := p.classNamed(ctx, classes, d.Namespace, have)
		if err != nil {
			return nil, err
		}
		if from != nil && reachable(from, to) && p.specs.of(from).Fixed == hot.Spec.Fixed {
			hot.From = append(hot.From, have.Name)
		}
	}
	return hot, nil
}

// classNamed is a class; nil: there is none, or none of ours.
func (p *deploymentPass) classNamed(ctx context.Context, classes store.Reader[*machine.Class], namespace string,
	ref *machine.ClassRef,
) (*machine.Class, error) {
	if ref.Name == "" || p.ForeignClasses != nil && ref.Foreign() {
		return nil, nil //nolint:nilnil // there is none of ours
	}
	class, err := classes.Get(ctx, object.Key{Namespace: namespace, Name: ref.Name})
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil //nolint:nilnil // there is none
	}
	return class, err
}

// reachable tells whether nothing but the provider spec stands against bringing
// VMs of a class to another one. Secrets must be the same: what a VM has booted
// with can't be changed. So must what its node offers, but for what is written
// to nodes that exist.
func reachable(from, to *machine.Class) bool {
	return from.Provider == to.Provider && sameSecret(from, from.SecretRef, to, to.SecretRef) &&
		sameSecret(from, from.CredentialsRef, to, to.CredentialsRef) && sameShape(from.NodeTemplate, to.NodeTemplate)
}

func sameSecret(a *machine.Class, of *object.Key, b *machine.Class, with *object.Key) bool {
	if of == nil || with == nil {
		return of == with
	}
	return secretKey(a, of) == secretKey(b, with)
}

func sameShape(a, b *machine.NodeShape) bool {
	if a == nil || b == nil {
		return a == b
	}
	return maps.Equal(a.Capacity, b.Capacity) && a.InstanceType == b.InstanceType && a.Region == b.Region &&
		a.Zone == b.Zone && a.Architecture == b.Architecture
}

// deploymentsOfClass wakes the deployments whose template names a class, which
// may be that VMs can be updated to it.
func (o *Options) deploymentsOfClass(ctx context.Context, old, new any) []object.Key {
	keys := self[*machine.Class](ctx, old, new)
	if len(keys) == 0 {
		return nil
	}
	return keysOf(o.Deployments.List(ctx, store.Query{Index: IndexClass, Value: keys[0].String()}))
}
