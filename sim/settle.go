package sim

import (
	"slices"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/preview"
)

// settler fills a world with a fleet that there was before.
type settler struct {
	w        *World
	model    *preview.Model
	machines map[object.Key]*machine.Machine
	sets     map[object.Key]*machineset.Set
	nodes    map[object.Key]*machine.Node
	specs    map[object.Key]machine.VMSpec // of classes
	uids     map[string]string             // by those from before
}

// settle fills a world with a fleet, and returns the deployment as it is stored. It changes none of
// its arguments.
func (w *World) settle(d *deployment.Deployment, children []deployment.Children, m *preview.Model) *deployment.Deployment {
	s := &settler{
		w: w, model: m, machines: map[object.Key]*machine.Machine{}, sets: map[object.Key]*machineset.Set{}, nodes: map[object.Key]*machine.Node{},
		specs: map[object.Key]machine.VMSpec{}, uids: map[string]string{},
	}
	d = d.Clone()
	d.Spec.MaxAge = 0 // that is something other than a rollout
	s.rename(&d.Meta)
	s.class(d.Namespace, &d.Spec.Template.Spec)
	for _, c := range children {
		s.enroll(c)
	}
	w.deployments.load([]*deployment.Deployment{d})
	w.sets.load(inKeyOrder(s.sets))
	w.machines.load(inKeyOrder(s.machines))
	w.nodes.load(inKeyOrder(s.nodes))
	return d
}

// rename gives an object a UID that the stores give to no other, and its owner likewise.
func (s *settler) rename(m *object.Meta) {
	m.UID = s.renamed(m.UID)
	if m.Owner != nil {
		owner := *m.Owner
		owner.UID = s.renamed(owner.UID)
		m.Owner = &owner
	}
}

// renamed returns the UID that stands for one from before. Equal ones share their memory, so that
// comparing them is fast.
func (s *settler) renamed(uid string) string {
	if s.uids[uid] == "" {
		s.uids[uid] = "before/" + uid
	}
	return s.uids[uid]
}

// inKeyOrder returns objects in the order of their keys.
func inKeyOrder[T object.Object[T]](objects map[object.Key]T) []T {
	all := make([]T, 0, len(objects))
	for _, o := range objects {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b T) int { return compareKeys(a.ObjectMeta().Key, b.ObjectMeta().Key) })
	return all
}

// class stores a class that a fleet names, unless it is there: the model's, or one that differs from
// every other.
func (s *settler) class(namespace string, spec *machine.Spec) {
	key := object.Key{Namespace: namespace, Name: spec.Class.Name}
	if _, known := s.specs[key]; known || key.Name == "" {
		return
	}
	class := s.given(key)
	if class == nil {
		class = s.w.madeUp(key)
	}
	_ = s.w.addClass(class) // a store in memory, and it is not there yet
	s.specs[key] = machine.SplitSpec(class, s.model.Updatable)
}

// given returns a copy of a class of the model. Nil: the model has none of that key.
func (s *settler) given(k object.Key) *machine.Class {
	for _, c := range s.model.Classes {
		if c != nil && c.Key == k {
			c = c.Clone()
			c.Meta = object.Meta{Key: k}
			return c
		}
	}
	return nil
}

// enroll stores a set and its machines. Of two of a name, the first counts.
func (s *settler) enroll(c deployment.Children) {
	if c.Set == nil || s.sets[c.Set.Key] != nil {
		return
	}
	set := c.Set.Clone()
	set.Instructions.Marks, set.Spec.MaxAge = machine.RolloutMarks{}, 0
	s.rename(&set.Meta)
	s.sets[set.Key] = set
	s.class(set.Namespace, &set.Spec.Template.Spec)
	for _, m := range c.Machines {
		if m != nil && m.OwnedBy(c.Set.UID) && s.machines[m.Key] == nil {
			s.enlist(m.Clone())
		}
	}
}

// enlist stores a machine, with its VM and its node if it has them.
func (s *settler) enlist(m *machine.Machine) {
	s.rename(&m.Meta)
	s.machines[m.Key] = m
	s.class(m.Namespace, &m.Spec)
	m.Spec.Marks = machine.RolloutMarks{}
	switch m.Status.Phase {
	case machine.PhaseNew, machine.PhaseCrashLoopBackOff:
		m.Spec.ProviderID, m.Spec.NodeName = "", ""
		return
	case machine.PhaseAvailable:
		m.Status.Phase = machine.PhaseRunning // here, all machines join the cluster
	}
	m.AddFinalizer(machine.Finalizer)
	id := s.w.vms.found(m.Name, m.Spec.Class.Name)
	m.Spec.ProviderID, m.Spec.NodeName = id, m.Name
	if (m.Status.VMSpec == machine.VMSpec{}) && len(s.model.Updatable) > 0 {
		m.Status.VMSpec = s.specs[object.Key{Namespace: m.Namespace, Name: m.Spec.Class.Name}] // as it is noted of VMs of which nothing is known
	}
	switch m.Status.Phase {
	case machine.PhasePending:
		left := m.CreatedAt.Add(s.model.Create).Sub(s.w.Now())
		if left <= 0 || left > s.model.Create { // late, or from the future
			left = s.model.Create
		}
		s.w.kubelets.bootIn(left, m.Name, id)
	case machine.PhaseFailed, machine.PhaseTerminating:
	default:
		s.join(m)
	}
}

// join stores the node of a machine that has joined.
func (s *settler) join(m *machine.Machine) {
	n := &machine.Node{Meta: object.Meta{Key: object.Key{Name: m.Name}, UID: "before/" + m.Name, Generation: 1, CreatedAt: m.CreatedAt}}
	n.ProviderID = m.Spec.ProviderID
	ready := object.Condition{Type: machine.NodeReady, Status: object.True, Since: m.Status.Since}
	if m.Status.Phase == machine.PhaseUnknown {
		ready.Status = object.Unknown
	}
	n.Conditions = []object.Condition{ready}
	n.AddFinalizer(machine.NodeFinalizer)
	t := m.Spec.NodeTemplate.Clone()
	n.Applied.NodeTemplate, n.Applied.Generation = m.Spec.NodeTemplate.Clone(), m.Generation
	n.Labels, n.Annotations, n.Taints = t.Labels, t.Annotations, t.Taints
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[s.w.machinePolicy().Keys.NodeMachine] = m.Name
	m.Status.Conditions = []object.Condition{ready}
	s.nodes[n.Key] = n
}
