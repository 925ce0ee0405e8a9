package sim

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// meddle does what a step says of other programs and people.
func (w *World) meddle(s *Step) {
	switch s.Do {
	case FlickerNodes:
		w.flicker(s)
	case RegisterNode:
		w.registerAnew(s)
	case StripNode:
		w.strip(s)
	case FightOverNodes:
		w.actions[s.Do]++
		w.fight(s)
	case TouchObjects:
		w.actions[s.Do]++
		w.touch(w.Now().Add(s.For))
	case SelectNodes:
		w.selectByHand(s)
	case RemakeClass, RollBriefly, SpoilTemplate, SpoilClass:
		w.changeBriefly(s)
	case HoldDrain:
		w.hook(s, w.machinePolicy().Keys.PreDrainHook)
	case HoldVM:
		w.hook(s, w.machinePolicy().Keys.PreTerminateHook)
	case ForceDeletion:
		w.forceDeletion(s)
	}
}

// flickering is how long nodes flicker, and flickers is how often each of them does in that time.
const (
	flickering = 30 * time.Minute
	flickers   = 6
)

// flicker makes nodes silent for moments, as kubelets are whose machines are short of memory.
func (w *World) flicker(s *Step) {
	nodes := w.nodes.all()
	for _, n := range nodes[:min(max(s.N, 0), len(nodes))] {
		w.actions[s.Do]++
		for range flickers {
			d := w.upTo(s.For)
			w.After(w.upTo(flickering), func() { w.kubelets.waver(n.Name, w.kubelets.vmOf(n), d) })
		}
	}
}

// registerAnew removes a node whose VM runs, and lets its kubelet register again.
func (w *World) registerAnew(s *Step) {
	n, found := nthOf(w.nodes, s.N)
	if !found || w.removed[w.kubelets.vmOf(n)] || n.Deleted() {
		return
	}
	w.actions[s.Do]++
	ctx := context.Background()
	bare := n.Clone()
	bare.Finalizers = nil
	_, _ = w.nodes.Update(ctx, bare) // read in the same instant: no conflict
	_ = w.nodes.Delete(ctx, n.Key, n.UID)
	w.After(w.upTo(s.For), func() {
		if !w.removed[w.kubelets.vmOf(n)] {
			w.kubelets.join(&machine.Node{Meta: object.Meta{Key: n.Key}, ProviderID: w.kubelets.vmOf(n)})
			w.check()
		}
	})
}

// patrolLabel is what a program that strips nodes leaves on them.
const patrolLabel = "patrol"

// patrolled: a node has that label now.
type patrolled struct{ uid string }

// strip takes labels of the manager's and all taints off a node, and puts the labels back after a while.
func (w *World) strip(s *Step) {
	n, found := nthOf(w.nodes, s.N)
	if !found || n.Deleted() || !n.HasFinalizer(machine.NodeFinalizer) {
		return
	}
	w.actions[s.Do]++
	n = n.Clone()
	taken := map[string]string{}
	for _, key := range append(slices.Sorted(maps.Keys(n.Applied.Labels)), w.machinePolicy().Keys.NodeMachine) {
		if value, has := n.Labels[key]; has && w.chance(2) == 0 {
			taken[key] = value
			delete(n.Labels, key)
		}
	}
	n.Labels, n.Taints = withLabel(n.Labels, patrolLabel, "yes"), nil
	_, _ = w.nodes.Update(context.Background(), n) // read in the same instant: no conflict
	w.emit(patrolled{n.UID})
	if s.For == 0 {
		return
	}
	w.After(s.For, func() {
		now, err := w.nodes.Get(context.Background(), n.Key)
		if err != nil || now.UID != n.UID {
			return
		}
		now = now.Clone()
		for key, value := range taken {
			now.Labels = withLabel(now.Labels, key, value)
		}
		_, _ = w.nodes.Update(context.Background(), now) // read in the same instant: no conflict
		w.check()
	})
}

// selectByHand selects nodes for an update in place, as somebody does for whom a rollout is too slow.
func (w *World) selectByHand(s *Step) {
	key := w.machinePolicy().Keys.SelectedForUpdate
	nodes := w.nodes.all()
	for _, n := range nodes[:min(max(s.N, 0), len(nodes))] {
		if !n.HasFinalizer(machine.NodeFinalizer) {
			continue // no machine's
		}
		w.actions[s.Do]++
		n = n.Clone()
		n.Labels = withLabel(n.Labels, key, "true")
		_, _ = w.nodes.Update(context.Background(), n) // read in the same instant: no conflict
	}
}

// changeBriefly removes a class or changes a template, and takes that back after a while.
func (w *World) changeBriefly(s *Step) {
	var back func()
	switch s.Do {
	case RemakeClass:
		back = w.removeClass(s.Class)
	case RollBriefly:
		back = w.rollBriefly(s.Name, s.Class)
	case SpoilTemplate:
		back = w.spoil(s.Name)
	case SpoilClass:
		back = w.spoilClass(s.Class)
	}
	if back == nil {
		return
	}
	w.actions[s.Do]++
	w.After(s.For, func() {
		back()
		w.check()
	})
}

// removeClass removes a class, as somebody does who applies it again. It returns what makes it again.
// Nil: there is none.
func (w *World) removeClass(name string) func() {
	ctx, key := context.Background(), object.Key{Namespace: Namespace, Name: name}
	class, err := w.classes.Get(ctx, key)
	if err != nil || class.Deleted() {
		return nil
	}
	again, bare := class.Clone(), class.Clone()
	again.Meta, bare.Finalizers = object.Meta{Key: key}, nil
	_, _ = w.classes.Update(ctx, bare) // read in the same instant: no conflict
	_ = w.classes.Delete(ctx, key, class.UID)
	w.emit(classTurns{name, true})
	return func() {
		_, _ = w.classes.Create(ctx, again) // nothing else makes it
		w.emit(classTurns{name, false})
	}
}

// rollBriefly asks for another class of machines. It returns what asks for the former one. Nil: there
// is no such deployment, or it has that class.
func (w *World) rollBriefly(name, class string) func() {
	d := w.deployment(name)
	if d == nil || d.Spec.Template.Spec.Class.Name == class {
		return nil
	}
	to := func(class string) {
		w.edit(name, func(spec *deployment.Spec) { spec.Template.Spec.Class.Name = class })
	}
	former := d.Spec.Template.Spec.Class.Name
	to(class)
	return func() { to(former) }
}

// badLabel is too long for the value of a label.
var badLabel = strings.Repeat("x", 70)

// spoil makes a deployment's node template invalid. It returns what mends it. Nil: there is no such
// deployment.
func (w *World) spoil(name string) func() {
	if w.deployment(name) == nil {
		return nil
	}
	w.edit(name, func(spec *deployment.Spec) {
		t := &spec.Template.Spec.NodeTemplate
		t.Labels = withLabel(maps.Clone(t.Labels), "spoilt", badLabel)
	})
	return func() {
		w.edit(name, func(spec *deployment.Spec) {
			t := &spec.Template.Spec.NodeTemplate
			t.Labels = maps.Clone(t.Labels)
			delete(t.Labels, "spoilt")
		})
	}
}

// unreadable is what a class says that somebody has edited by hand.
var unreadable = []byte("{size: ")

// spoilClass makes a class unreadable. It returns what mends it, if need be once it is made again. Nil:
// there is no such class, or somebody has spoilt it already.
func (w *World) spoilClass(name string) func() {
	ctx, key := context.Background(), object.Key{Namespace: Namespace, Name: name}
	class, err := w.classes.Get(ctx, key)
	if err != nil || class.Deleted() || bytes.Equal(class.ProviderSpec, unreadable) {
		return nil
	}
	to := func(class *machine.Class, spec []byte) {
		class = class.Clone()
		class.ProviderSpec = spec
		_, _ = w.classes.Update(ctx, class) // read in the same instant: no conflict
	}
	to(class, unreadable)
	var mend func()
	mend = func() {
		if now, err := w.classes.Get(ctx, key); err == nil {
			to(now, class.ProviderSpec)
			return
		}
		w.After(time.Minute, mend)
	}
	return mend
}

// touchEvery is how often a program writes objects that it has found to be old.
const touchEvery = 10 * time.Second

// touch writes what means nothing to the manager on objects, again and again until then.
func (w *World) touch(until time.Time) {
	if w.Now().After(until) || w.faultsStopped {
		return
	}
	value := w.Now().Format(time.TimeOnly)
	touchAll(w.machines, value)
	touchAll(w.sets, value)
	touchAll(w.classes, value)
	touchAll(w.secrets, value)
	w.check()
	w.After(touchEvery, func() { w.touch(until) })
}

func touchAll[T object.Object[T]](of *trackedStore[T], value string) {
	for _, o := range of.all() {
		annotated(of, o, "seen-at", value)
	}
}
