package manager

import (
	"context"
	"maps"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/internal/classes"
	"github.com/millwright-go/millwright/manager/internal/index"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/orphan"
	"github.com/millwright-go/millwright/store"
)

// Wakes returns which changes are a reason to reconcile which objects. Keys are found in the caches: what
// the caches lack wakes nothing.
func (m *Manager) Wakes() []Wake {
	o := &m.options
	wakes := []Wake{
		{From: KindMachine, To: KindMachine, Keys: self[*machine.Machine]},
		{From: KindClass, To: KindMachine, Keys: o.machinesOfClass},
	}
	if o.Store.Secrets != nil {
		wakes = append(wakes, Wake{From: KindSecret, To: KindMachine, Keys: o.machinesOfSecret})
	}
	if o.Cluster != nil {
		wakes = append(wakes,
			Wake{From: KindNode, To: KindMachine, Keys: o.machinesOfReadyNode, Urgent: true},
			Wake{From: KindNode, To: KindMachine, Keys: o.machinesOfNode})
	}
	if o.Drainer != nil {
		wakes = append(wakes, Wake{From: KindWorkload, To: KindMachine, Keys: o.machinesOfWorkload, Settle: drainSettle})
	}
	if o.Store.Sets != nil {
		wakes = append(wakes,
			Wake{From: KindSet, To: KindSet, Keys: self[*machineset.Set]},
			Wake{From: KindSet, To: KindMachine, Keys: o.machinesOfSet},
			Wake{From: KindMachine, To: KindSet, Keys: o.setsOfMachine, Settle: o.Tuning.Settle},
			Wake{From: KindClass, To: KindSet, Keys: o.setsOfClass, Settle: o.Tuning.Settle})
	}
	if o.Store.Deployments != nil {
		wakes = append(wakes,
			Wake{From: KindDeployment, To: KindDeployment, Keys: self[*deployment.Deployment]},
			Wake{From: KindSet, To: KindDeployment, Keys: o.deploymentsOfSet, Settle: o.Tuning.Settle},
			Wake{From: KindMachine, To: KindDeployment, Keys: o.deploymentsOfMachine, Settle: o.Tuning.Settle})
		if len(driver.UpdatableFields(o.Driver)) > 0 {
			wakes = append(wakes, Wake{From: KindClass, To: KindDeployment, Keys: o.deploymentsOfClass, Settle: o.Tuning.Settle})
		}
	}
	if o.Policies.Safety != nil {
		wakes = append(wakes,
			Wake{From: KindMachine, To: KindOrphans, Keys: m.orphansOfMachine, Settle: o.Tuning.Settle},
			Wake{From: KindClass, To: KindOrphans, Keys: newClass, Settle: o.Tuning.Settle})
		wakes = append(wakes, o.ownerlessWakes()...)
	}
	wakes = append(wakes, o.poolWakes()...)
	return append(wakes, o.classWakes()...)
}

// WakeMachines sets a function that is called for machines whose VMs a listing lacks or calls unhealthy,
// since no watch reports that. It is for programs that drive the reconcilers by themselves, without a
// cluster: otherwise such a machine waits for its next pass. Run sets its own. wake must not block, nor
// call the manager.
func (m *Manager) WakeMachines(wake func(key object.Key)) { m.missing.wakes(wake) }

// orphansOfMachine wakes the search for orphans when a machine has disappeared, with a hint for its class,
// or was found to have several VMs.
func (m *Manager) orphansOfMachine(_ context.Context, old, new any) []object.Key {
	a, b := both[*machine.Machine](old, new)
	switch {
	case b == nil && a != nil:
		m.hints.add(orphan.Hint{Class: classKey(a), At: m.options.Runtime.Now()})
	case b == nil || b.Status.LastOperation.Code != codes.OutOfRange || a != nil && a.Status.LastOperation == b.Status.LastOperation:
		return nil
	}
	return []object.Key{Fleet}
}

// newClass wakes the search for orphans when a class is seen for the first time.
func newClass(_ context.Context, old, _ any) []object.Key {
	if old != nil {
		return nil
	}
	return []object.Key{Fleet}
}

// both returns the two sides of a change as T. The zero T stands for nothing.
func both[T any](old, new any) (T, T) {
	a, _ := old.(T)
	b, _ := new.(T)
	return a, b
}

// self wakes the object that changed.
func self[T object.Object[T]](_ context.Context, old, new any) []object.Key {
	var none T
	a, b := both[T](old, new)
	if b != none {
		return []object.Key{b.ObjectMeta().Key}
	}
	if a != none {
		return []object.Key{a.ObjectMeta().Key}
	}
	return nil
}

func keysOf[T object.Object[T]](list []T, err error) []object.Key {
	if err != nil {
		return nil // a cache in memory fails only during a shutdown
	}
	keys := make([]object.Key, len(list))
	for i := range list {
		keys[i] = list[i].ObjectMeta().Key
	}
	return keys
}

// compact drops each key that is the same as the one before it.
func compact(keys []object.Key) []object.Key {
	out := keys[:0]
	for i, k := range keys {
		if i == 0 || k != keys[i-1] {
			out = append(out, k)
		}
	}
	return out
}

// classWakes returns the reasons to look at classes and secrets.
func (o *Options) classWakes() []Wake {
	if !o.managesClasses() {
		return nil
	}
	wakes := []Wake{
		{From: KindClass, To: KindClass, Keys: self[*machine.Class]},
		{From: KindMachine, To: KindClass, Keys: classesOf(classes.UseOfMachine), Settle: o.Tuning.Settle},
	}
	if o.Store.Sets != nil {
		wakes = append(wakes, Wake{From: KindSet, To: KindClass, Keys: classesOf(classes.UseOfSet), Settle: o.Tuning.Settle})
	}
	if o.Store.Deployments != nil {
		wakes = append(wakes, Wake{From: KindDeployment, To: KindClass, Keys: classesOf(classes.UseOfDeployment), Settle: o.Tuning.Settle})
	}
	if o.managesPools() {
		wakes = append(wakes, Wake{From: KindPool, To: KindClass, Keys: classesOf(useOfPool), Settle: o.Tuning.Settle})
	}
	if o.keepsSecrets() {
		wakes = append(wakes,
			Wake{From: KindSecret, To: KindSecret, Keys: self[*machine.Secret]},
			Wake{From: KindClass, To: KindSecret, Keys: secretsOfClass})
	}
	return wakes
}

// classesOf wakes the classes that an object has begun or ended to use.
func classesOf[T object.Object[T]](of func(T) classes.Use) func(context.Context, any, any) []object.Key {
	var none T
	return func(_ context.Context, old, new any) []object.Key {
		a, b := both[T](old, new)
		var before, after classes.Use
		if a != none {
			before = of(a)
		}
		if b != none {
			after = of(b)
		}
		if before == after {
			return nil
		}
		var keys []object.Key
		for _, u := range []classes.Use{before, after} {
			if u.Class.Name != "" {
				keys = append(keys, u.Class)
			}
		}
		return compact(keys)
	}
}

// useOfPool: a pool needs its class until it is gone.
func useOfPool(p *machinepool.Pool) classes.Use {
	ref := p.Spec.Template.Class
	return classes.Use{Class: object.Key{Namespace: p.Namespace, Name: ref.Name}, Ref: ref, Counts: true}
}

// secretsOfClass wakes the secrets that a class refers to, or did before.
func secretsOfClass(_ context.Context, old, new any) []object.Key {
	a, b := both[*machine.Class](old, new)
	if a != nil && b != nil && sameRef(a.SecretRef, b.SecretRef) && sameRef(a.CredentialsRef, b.CredentialsRef) {
		return nil
	}
	var keys []object.Key
	for _, c := range []*machine.Class{a, b} {
		if c == nil {
			continue
		}
		for _, ref := range []*object.Key{c.SecretRef, c.CredentialsRef} {
			if ref != nil && ref.Name != "" {
				keys = append(keys, secretKey(c, ref))
			}
		}
	}
	return keys
}

func sameRef(a, b *object.Key) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// setsOfMachine wakes the owners of a machine whose change matters to them,
// and, when it has none, the sets that might adopt it.
func (o *Options) setsOfMachine(ctx context.Context, old, new any) []object.Key {
	a, b := both[*machine.Machine](old, new)
	if !countsDiffer(a, b) {
		return nil
	}
	var keys []object.Key
	for _, m := range []*machine.Machine{a, b} {
		switch {
		case m == nil:
		case m.Owner == nil:
			keys = append(keys, keysOf(o.Store.Sets.List(ctx, store.Query{Index: IndexNamespace, Value: m.Namespace}))...)
		case m.Owner.Kind == machineset.OwnerKind:
			keys = append(keys, object.Key{Namespace: m.Namespace, Name: m.Owner.Name})
		}
	}
	return compact(keys)
}

// setsOfClass wakes the sets of a class, because a correction of the class may end their backoff.
func (o *Options) setsOfClass(ctx context.Context, old, new any) []object.Key {
	keys := self[*machine.Class](ctx, old, new)
	if len(keys) == 0 {
		return nil
	}
	return keysOf(o.Store.Sets.List(ctx, store.Query{Index: IndexClass, Value: keys[0].String()}))
}

// machinesOfSet wakes the machines of a set whose rollout marks have changed.
func (o *Options) machinesOfSet(ctx context.Context, old, new any) []object.Key {
	a, b := both[*machineset.Set](old, new)
	var before machine.RolloutMarks
	if a != nil {
		before = a.Instructions.Marks
	}
	if b == nil || b.Instructions.Marks == before {
		return nil
	}
	return keysOf(o.Store.Machines.List(ctx, store.Query{Index: IndexOwner, Value: b.UID}))
}

// countsDiffer reports whether a change of a machine may change what its set and
// deployment decide or report.
func countsDiffer(a, b *machine.Machine) bool {
	if a == nil || b == nil {
		return true
	}
	if a.Deleted() != b.Deleted() || a.Ready() != b.Ready() || failed(a) != failed(b) {
		return true
	}
	if a.Status.Phase != b.Status.Phase && !isFirstStep(a, b) || !index.SameOwner(a.Owner, b.Owner) {
		return true
	}
	if requestsDiffer(a, b) {
		return true
	}
	if a.Generation != b.Generation && !(a.Spec.NodeTemplate.Equal(&b.Spec.NodeTemplate) && a.Spec.Config.Equal(&b.Spec.Config)) {
		return true
	}
	return a.Status.VMSpec != b.Status.VMSpec || metaDiffers(&a.Meta, &b.Meta)
}

func metaDiffers(a, b *object.Meta) bool {
	return !maps.Equal(a.Labels, b.Labels) || !maps.Equal(a.Annotations, b.Annotations)
}

// requestsDiffer reports whether a request to a machine has changed, or how it is followed, so that a
// rollout must take that into account.
func requestsDiffer(a, b *machine.Machine) bool {
	return a.Spec.InPlace != b.Spec.InPlace || !a.Status.Preservation.Equal(&b.Status.Preservation)
}

// isFirstStep reports whether a change is the first step of every creation, which no owner needs to see.
func isFirstStep(a, b *machine.Machine) bool {
	return a.Status.Phase == machine.PhaseNew && b.Status.Phase == machine.PhasePending
}

func failed(m *machine.Machine) bool { return m.Status.LastOperation.State == machine.StateFailed }

func (o *Options) deploymentsOfSet(ctx context.Context, old, new any) []object.Key {
	a, b := both[*machineset.Set](old, new)
	var keys []object.Key
	for _, s := range []*machineset.Set{a, b} {
		switch {
		case s == nil:
		case s.Owner == nil:
			keys = append(keys, keysOf(o.Store.Deployments.List(ctx, store.Query{Index: IndexNamespace, Value: s.Namespace}))...)
		case s.Owner.Kind == deployment.OwnerKind:
			keys = append(keys, object.Key{Namespace: s.Namespace, Name: s.Owner.Name})
		}
	}
	return compact(keys)
}

// deploymentsOfMachine wakes the deployment over a machine's set.
func (o *Options) deploymentsOfMachine(ctx context.Context, old, new any) []object.Key {
	a, b := both[*machine.Machine](old, new)
	if !countsDiffer(a, b) {
		return nil
	}
	var keys []object.Key
	for _, m := range []*machine.Machine{a, b} {
		if m == nil || m.Owner == nil || m.Owner.Kind != machineset.OwnerKind {
			continue
		}
		set, err := o.Store.Sets.Get(ctx, object.Key{Namespace: m.Namespace, Name: m.Owner.Name})
		if err == nil && set.Owner != nil && set.Owner.Kind == deployment.OwnerKind {
			keys = append(keys, object.Key{Namespace: set.Namespace, Name: set.Owner.Name})
		}
	}
	return compact(keys)
}

// deploymentsOfClass wakes the deployments whose template names a class: VMs may have to be updated to it.
func (o *Options) deploymentsOfClass(ctx context.Context, old, new any) []object.Key {
	keys := self[*machine.Class](ctx, old, new)
	if len(keys) == 0 {
		return nil
	}
	return keysOf(o.Store.Deployments.List(ctx, store.Query{Index: IndexClass, Value: keys[0].String()}))
}

func (o *Options) machinesOfClass(ctx context.Context, old, new any) []object.Key {
	keys := self[*machine.Class](ctx, old, new)
	if len(keys) == 0 {
		return nil
	}
	return keysOf(o.Store.Machines.List(ctx, store.Query{Index: IndexClass, Value: keys[0].String()}))
}

func (o *Options) machinesOfSecret(ctx context.Context, old, new any) []object.Key {
	var keys []object.Key
	for _, class := range o.classesOfSecret(ctx, old, new) {
		keys = append(keys, o.machinesOfClass(ctx, nil, class)...)
	}
	return keys
}

// classesOfSecret returns the classes that refer to a secret.
func (o *Options) classesOfSecret(ctx context.Context, old, new any) []*machine.Class {
	keys := self[*machine.Secret](ctx, old, new)
	if len(keys) == 0 {
		return nil
	}
	all, err := o.Store.Classes.List(ctx, store.Query{Index: IndexSecret, Value: keys[0].String()})
	if err != nil {
		return nil
	}
	return all
}

// machinesOfNode wakes the machines that claim a node, by name or by label.
func (o *Options) machinesOfNode(ctx context.Context, old, new any) []object.Key {
	a, b := both[*machine.Node](old, new)
	if b == nil {
		b = a
	}
	if b == nil {
		return nil
	}
	keys := keysOf(o.Store.Machines.List(ctx, store.Query{Index: IndexNode, Value: b.Name}))
	if name := b.Labels[o.Policies.Machine.Keys.NodeMachine]; name != "" {
		keys = append(keys, keysOf(o.Store.Machines.List(ctx, store.Query{Index: IndexNode, Value: nodeOf(name)}))...)
	}
	return keys
}

// machinesOfReadyNode wakes the machines of a node that has become ready: rollouts wait for them.
func (o *Options) machinesOfReadyNode(ctx context.Context, old, new any) []object.Key {
	ready := func(n *machine.Node) bool {
		c := object.FindCondition(n.Conditions, machine.NodeReady)
		return c != nil && c.Status == object.True
	}
	if a, b := both[*machine.Node](old, new); b == nil || !ready(b) || a != nil && ready(a) {
		return nil
	}
	return o.machinesOfNode(ctx, old, new)
}

// machinesOfWorkload wakes the machines of a node that is being drained. At other times, what runs on the
// node does not matter.
func (o *Options) machinesOfWorkload(ctx context.Context, _, new any) []object.Key {
	node, _ := new.(string)
	machines, err := o.Store.Machines.List(ctx, store.Query{Index: IndexNode, Value: node})
	if err != nil {
		return nil
	}
	var keys []object.Key
	for _, m := range machines {
		if m.Deleted() || m.Status.Phase == machine.PhaseInPlaceUpdating || drainsPreserved(m) {
			keys = append(keys, m.Key)
		}
	}
	return keys
}

// drainsPreserved reports whether a machine has failed, is kept for inspection, and is still to be drained.
func drainsPreserved(m *machine.Machine) bool {
	p := &m.Status.Preservation
	return m.Status.Phase == machine.PhaseFailed && !p.Since.IsZero() && !p.Drained
}

// ownerlessWakes wake the search for ownerless objects when an object is seen for the first time and the
// cache does not have its owner.
func (o *Options) ownerlessWakes() []Wake {
	if o.Store.Sets == nil {
		return nil
	}
	wakes := []Wake{{From: KindMachine, To: KindOwnerless, Settle: o.Tuning.Settle, Keys: func(ctx context.Context, old, new any) []object.Key {
		a, b := both[*machine.Machine](old, new)
		if a != nil || b == nil {
			return nil
		}
		return ifOwnerUnknown(ctx, &b.Meta, machineset.OwnerKind, o.Store.Sets)
	}}}
	if o.Store.Deployments == nil {
		return wakes
	}
	return append(wakes, Wake{From: KindSet, To: KindOwnerless, Settle: o.Tuning.Settle, Keys: func(ctx context.Context, old, new any) []object.Key {
		a, b := both[*machineset.Set](old, new)
		if a != nil || b == nil {
			return nil
		}
		return ifOwnerUnknown(ctx, &b.Meta, deployment.OwnerKind, o.Store.Deployments)
	}})
}

// ifOwnerUnknown returns the key Fleet if the cache does not have an object's owner.
func ifOwnerUnknown[O object.Object[O]](
	ctx context.Context, m *object.Meta, kind string, owners store.Reader[O],
) []object.Key {
	if m.Owner == nil || m.Owner.Kind != kind {
		return nil
	}
	owner, err := index.MetaOf(owners.Get(ctx, object.Key{Namespace: m.Namespace, Name: m.Owner.Name}))
	if err == nil && owner != nil && owner.UID == m.Owner.UID {
		return nil
	}
	return []object.Key{Fleet}
}

// poolWakes returns the changes that pools are looked at for.
func (o *Options) poolWakes() []Wake {
	if !o.managesPools() {
		return nil
	}
	wakes := []Wake{
		{From: KindPool, To: KindPool, Keys: self[*machinepool.Pool]},
		{From: KindClass, To: KindPool, Keys: o.poolsOfClass, Settle: o.Tuning.Settle},
	}
	if o.Store.Secrets != nil {
		wakes = append(wakes, Wake{From: KindSecret, To: KindPool, Keys: o.poolsOfSecret})
	}
	if o.Cluster != nil {
		wakes = append(wakes, Wake{From: KindNode, To: KindPool, Keys: o.poolsOfNode, Settle: o.Tuning.Settle})
	}
	return wakes
}

func (o *Options) poolsOfClass(ctx context.Context, old, new any) []object.Key {
	var keys []object.Key
	for _, class := range self[*machine.Class](ctx, old, new) {
		keys = append(keys, keysOf(o.Store.Pools.List(ctx, store.Query{Index: IndexClass, Value: class.String()}))...)
	}
	return keys
}

// poolsOfSecret wakes the pools of the classes that take a secret: a call that failed may succeed now.
func (o *Options) poolsOfSecret(ctx context.Context, old, new any) []object.Key {
	var keys []object.Key
	for _, class := range o.classesOfSecret(ctx, old, new) {
		keys = append(keys, o.poolsOfClass(ctx, nil, class)...)
	}
	return keys
}

// poolsOfNode wakes the pool of a node's instance, if what it counts may have changed.
func (o *Options) poolsOfNode(ctx context.Context, old, new any) []object.Key {
	a, b := both[*machine.Node](old, new)
	if a != nil && b != nil && samePoolNode(a, b, o.Policies.Pool.Keys.Replace) {
		return nil
	}
	var keys []object.Key
	for i, n := range []*machine.Node{a, b} {
		if n == nil || n.ProviderID == "" || i == 1 && a != nil && a.ProviderID == b.ProviderID {
			continue
		}
		keys = append(keys, keysOf(o.Store.Pools.List(ctx, store.Query{Index: IndexVM, Value: n.ProviderID}))...)
	}
	return keys
}

// samePoolNode reports whether two states of a node are the same for its pool. replace is the annotation that
// asks for a replacement.
func samePoolNode(a, b *machine.Node, replace string) bool {
	status := func(n *machine.Node) object.ConditionStatus {
		if c := object.FindCondition(n.Conditions, machine.NodeReady); c != nil {
			return c.Status
		}
		return object.Unknown
	}
	return a.ProviderID == b.ProviderID && a.UID == b.UID && a.Deleted() == b.Deleted() && status(a) == status(b) &&
		a.Annotations[replace] == b.Annotations[replace]
}
