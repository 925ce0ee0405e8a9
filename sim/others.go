package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// otherActors does a step of other programs or of people.
func (w *World) otherActors(s *Step) {
	switch s.Do {
	case FlickerNodes:
		w.flicker(s)
	case RegisterNode:
		w.reregisterNode(s)
	case StripNode:
		w.stripNode(s)
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

// flickerPeriod is how long nodes flicker, and flickersPerNode is how often each node does so in that
// time.
const (
	flickerPeriod   = 30 * time.Minute
	flickersPerNode = 6
)

// flicker makes nodes NotReady for short times, as kubelets do when memory is short.
func (w *World) flicker(s *Step) {
	nodes := w.nodes.all()
	for _, n := range nodes[:min(max(s.N, 0), len(nodes))] {
		w.actions[s.Do]++
		for range flickersPerNode {
			d := w.upTo(s.For)
			w.After(w.upTo(flickerPeriod), func() { w.kubelets.flicker(n.Name, w.kubelets.vmOf(n), d) })
		}
	}
}

// reregisterNode removes a node whose VM runs, and makes its kubelet register it again.
func (w *World) reregisterNode(s *Step) {
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

// patrolLabel is the label that a program which strips nodes leaves on them.
const patrolLabel = "patrol"

// stripped: a node was stripped, and has patrolLabel now.
type stripped struct{ uid string }

// stripNode removes some of the manager's labels and all taints from a node, and puts the labels back
// after a while.
func (w *World) stripNode(s *Step) {
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
	w.emit(stripped{n.UID})
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

// selectByHand selects nodes for an update in place, as a user does for whom a rollout is too slow.
func (w *World) selectByHand(s *Step) {
	key := w.machinePolicy().Keys.SelectedForUpdate
	nodes := w.nodes.all()
	for _, n := range nodes[:min(max(s.N, 0), len(nodes))] {
		if !n.HasFinalizer(machine.NodeFinalizer) {
			continue // not the node of a machine
		}
		w.actions[s.Do]++
		n = n.Clone()
		n.Labels = withLabel(n.Labels, key, "true")
		_, _ = w.nodes.Update(context.Background(), n) // read in the same instant: no conflict
	}
}

// changeBriefly removes a class, or changes a class or a template, and undoes that after a while.
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

// removeClass removes a class, as a user does to apply it again. It returns a function that creates it
// again, or nil if the class does not exist.
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
	w.emit(classPresence{name, true})
	return func() {
		_, _ = w.classes.Create(ctx, again) // nothing else makes it
		w.emit(classPresence{name, false})
	}
}

// rollBriefly asks for another class of machines. It returns a function that asks for the former class,
// or nil if there is no such deployment or it has that class.
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

// spoil makes a deployment's node template invalid. It returns a function that undoes this, or nil if
// there is no such deployment.
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

// unreadable is a provider spec that no driver can read.
var unreadable = []byte("{size: ")

// spoilClass makes a class unreadable. It returns a function that undoes this, or nil if there is no
// such class or it is unreadable already. If the class does not exist when that function is called, it
// waits until the class is created again.
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

// touchEvery is the time between two writes to all objects by TouchObjects.
const touchEvery = 10 * time.Second

// touch writes an annotation that means nothing to the manager on all machines, sets, classes and
// secrets, again and again until the given time.
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

// request does a step that asks something of single machines, sets or VMs.
func (w *World) request(s *Step) {
	keys := w.machinePolicy().Keys
	switch s.Do {
	case PauseMachine:
		pauseNth(w, w.machines, s)
	case PauseSet:
		pauseNth(w, w.sets, s)
	case Preserve:
		annotateNth(w, w.machines, s, keys.Preserve, s.Value)
	case PreserveNode:
		annotateNth(w, w.nodes, s, keys.Preserve, s.Value)
	case Prioritize:
		annotateNth(w, w.machines, s, w.setPolicy().Keys.Priority, s.Value)
	case Replace:
		annotateNth(w, w.machines, s, w.setPolicy().Keys.Replace, "true")
	case ScaleDown:
		w.scaleDown(s)
	case Tag:
		w.retag(s, s.Class, s.Class)
	case Retag:
		if d := w.deployment(s.Name); d != nil {
			like := d.Spec.Template.Spec.Class.Name
			if w.sizeOf(like) == "" {
				return // the class is not there
			}
			name := fmt.Sprint(w.sizeOf(like), "-", s.N%3)
			w.retag(s, name, like)
			w.edit(s.Name, func(spec *deployment.Spec) { spec.Template.Spec.Class.Name = name })
		}
	}
}

// annotateNth writes an annotation on the nth object of a kind, or removes it if the value is
// empty. found is false if there is no object, or it has the annotation already.
func annotateNth[T object.Object[T]](w *World, of *trackedStore[T], s *Step, key, value string) (changed T, found bool) {
	o, found := nthOf(of, s.N)
	if !found || o.ObjectMeta().Annotations[key] == value {
		return o, false
	}
	w.actions[s.Do]++
	return annotated(of, o, key, value), true
}

func annotated[T object.Object[T]](of *trackedStore[T], o T, key, value string) T {
	o = o.Clone()
	meta := o.ObjectMeta()
	if meta.Annotations = maps.Clone(meta.Annotations); meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	meta.Annotations[key] = value
	if value == "" {
		delete(meta.Annotations, key)
	}
	o, _ = of.Update(context.Background(), o) // read in the same instant: no conflict
	return o
}

// pauseNth pauses the nth object for a while.
func pauseNth[T object.Object[T]](w *World, of *trackedStore[T], s *Step) {
	key := w.machinePolicy().Keys.Paused
	o, found := annotateNth(w, of, s, key, "true")
	if !found || s.For == 0 {
		return
	}
	name := o.ObjectMeta().Key
	w.After(s.For, func() {
		now, err := of.Get(context.Background(), name)
		if err == nil && now.ObjectMeta().Annotations[key] != "" {
			annotated(of, now, key, "")
			w.check()
		}
	})
}

// resumeAll ends all pauses.
func resumeAll[T object.Object[T]](w *World, of *trackedStore[T]) {
	key := w.machinePolicy().Keys.Paused
	for _, o := range of.all() {
		if o.ObjectMeta().Annotations[key] != "" {
			annotated(of, o, key, "")
		}
	}
}

// scaleDown removes machines from a deployment with Manager.ScaleDown. If it gets no answer, it tries
// again.
func (w *World) scaleDown(s *Step) {
	d := w.deployment(s.Name)
	if d == nil {
		return
	}
	fleet := slices.DeleteFunc(w.fleetOf(d), func(m *machine.Machine) bool { return m.Deleted() })
	n := min(1+s.N%2, len(fleet))
	to := d.Spec.Replicas - int32(n)
	if n == 0 || to < 0 {
		return
	}
	var names []string
	for i := range n {
		names = append(names, fleet[(s.N+i)%len(fleet)].Name)
	}
	atRest := w.atRest(d, fleet)
	began := w.Now()
	w.clock.Begin(func() { w.commandScaleDown(d, names, to, atRest, began) })
}

// scaleDownTries is how often ScaleDown is tried, and scaleDownRetry is the wait before the next try.
const (
	scaleDownTries = 5
	scaleDownRetry = 10 * time.Second
)

func (w *World) commandScaleDown(d *deployment.Deployment, names []string, to int32, atRest bool, began time.Time) {
	for range scaleDownTries {
		p := w.process
		if p.dead {
			w.clock.Pause(scaleDownRetry)
			continue
		}
		err := p.manager.ScaleDown(context.Background(), d.Key, names, to)
		switch {
		case err == nil && !p.dead:
			w.actions[ScaleDown]++
			w.emit(scalerChose{d, names, atRest, began})
			return
		case isFinalRefusal(err):
			return
		}
		w.clock.Pause(scaleDownRetry)
	}
}

// isFinalRefusal reports whether an error of ScaleDown says that its request is refused, so that trying
// again is useless.
func isFinalRefusal(err error) bool {
	for _, refusal := range []error{
		deployment.ErrDeleting, deployment.ErrSize, deployment.ErrTooMany, deployment.ErrNotMember, deployment.ErrMachineDeleting,
		deployment.ErrNamedTwice, deployment.ErrNoKey, manager.ErrNoDeployments, store.ErrNotFound,
	} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

// retag changes the tags of a class. If the class does not exist, it is created like another one.
func (w *World) retag(s *Step, name, like string) {
	if _, err := w.classes.Get(context.Background(), object.Key{Namespace: Namespace, Name: name}); err == nil {
		like = name
	}
	if err := w.TagClass(name, like, map[string]string{"round": fmt.Sprint(s.N), fmt.Sprint("only-", s.N): "yes"}); err == nil {
		w.actions[s.Do]++
	}
}

// scalerChose: a scaler removed machines from a deployment by their names. began is when it read them,
// and atRest says whether the fleet was at rest then.
type scalerChose struct {
	deployment *deployment.Deployment
	names      []string
	atRest     bool
	began      time.Time
}

// fieldConflict is a part of nodes that another program and the manager want to be different.
type fieldConflict struct {
	managerWins func(*World, *machine.Node) bool // reports whether it is as the manager wants it
	undo        func(*World, *machine.Node)      // makes it as the other program wants it
}

// disputes are the conflicts that FightOverNodes chooses from.
var disputes = [...]fieldConflict{
	{ // a label removed
		func(_ *World, n *machine.Node) bool { return n.Labels["team"] != "" },
		func(_ *World, n *machine.Node) { delete(n.Labels, "team") },
	},
	{ // a label changed
		func(_ *World, n *machine.Node) bool { return n.Labels["tier"] == "web" },
		func(_ *World, n *machine.Node) { n.Labels["tier"] = "db" },
	},
	{ // a taint removed
		func(_ *World, n *machine.Node) bool { return slices.ContainsFunc(n.Taints, isDedicated) },
		func(_ *World, n *machine.Node) { n.Taints = slices.DeleteFunc(n.Taints, isDedicated) },
	},
	{ // the finalizer removed
		func(_ *World, n *machine.Node) bool { return !n.Deleted() && n.HasFinalizer(machine.NodeFinalizer) },
		func(_ *World, n *machine.Node) { n.RemoveFinalizer(machine.NodeFinalizer) },
	},
	{ // the startup taint put back, once its machine runs
		func(w *World, n *machine.Node) bool { return !w.hasStartupTaint(n) && w.serves(n) },
		func(w *World, n *machine.Node) {
			n.Taints = append(n.Taints, object.Taint{Key: w.machinePolicy().Keys.NotReadyTaint, Effect: object.NoSchedule})
		},
	},
}

func isDedicated(t object.Taint) bool { return t.Key == "dedicated" }

func (w *World) hasStartupTaint(n *machine.Node) bool {
	return slices.ContainsFunc(n.Taints, func(t object.Taint) bool { return t.Key == w.machinePolicy().Keys.NotReadyTaint })
}

// serves reports whether a node belongs to a machine that is ready.
func (w *World) serves(n *machine.Node) bool {
	return slices.ContainsFunc(w.machines.all(), func(m *machine.Machine) bool { return m.Spec.NodeName == n.Name && m.Ready() })
}

// reactionTime is the longest time until a program undoes what it sees.
const reactionTime = 2 * time.Second

// fight makes another program undo one entry of all nodes for a while, as soon as it sees it.
func (w *World) fight(s *Step) {
	d, until := disputes[max(s.N, 0)%len(disputes)], w.Now().Add(s.For)
	over := func() bool { return w.faultsStopped || !w.Now().Before(until) }
	look := func(n *machine.Node) {
		if over() || !d.managerWins(w, n) {
			return
		}
		w.After(w.upTo(reactionTime), func() {
			now, err := w.nodes.Get(context.Background(), n.Key)
			if err != nil || over() || now.UID != n.UID || !d.managerWins(w, now) {
				return
			}
			now = now.Clone()
			d.undo(w, now)
			_, _ = w.nodes.Update(context.Background(), now) // read in the same instant: no conflict
			w.check()
		})
	}
	for _, n := range w.nodes.all() {
		look(n)
	}
	w.subscribe(func(e event) {
		if e, ok := e.(stored[*machine.Node]); ok && e.now != nil {
			look(e.now)
		}
	})
}

// hookOwners simulates programs that put hooks on machines, and remove them some time after the
// machine's deletion has begun.
type hookOwners struct {
	*base
	machines *trackedStore[*machine.Machine]
	pending  map[string]pendingHook // by UID of the machine
}

// pendingHook is a hook on a machine whose deletion has not begun yet.
type pendingHook struct {
	key string
	d   time.Duration // how long after the deletion began it is removed; zero: never
}

// removeHook removes a hook from a machine.
func (h *hookOwners) removeHook(m *machine.Machine, key string) {
	m = m.Clone()
	delete(m.Annotations, key)
	_, _ = h.machines.Update(context.Background(), m) // read in the same instant: no conflict
}

// hookName is the end of the key of a hook's annotation.
const hookName = "sim"

// see schedules the removal of a machine's hook when the machine's deletion begins.
func (h *hookOwners) see(e event) {
	s, ok := e.(stored[*machine.Machine])
	if !ok || s.now == nil || !s.now.Deleted() {
		return
	}
	wait, waits := h.pending[s.now.UID]
	if !waits {
		return
	}
	delete(h.pending, s.now.UID)
	if wait.d > 0 {
		key := s.now.Key
		h.After(wait.d, func() {
			if m, err := h.machines.Get(context.Background(), key); err == nil && m.Annotations[wait.key] != "" {
				h.removeHook(m, wait.key)
				h.check()
			}
		})
	}
}

// hook puts hooks on the machines from the Nth on.
func (w *World) hook(s *Step, prefix string) {
	all := slices.DeleteFunc(w.machines.all(), (*machine.Machine).Deleted)
	for _, m := range all[min(s.N, len(all)):] {
		w.actions[s.Do]++
		w.hookOwners.pending[m.UID] = pendingHook{prefix + hookName, s.For}
		annotated(w.machines, m, prefix+hookName, "held")
	}
}

// forceDeletion forces the Nth deletion of a machine that is under way, as a user does.
func (w *World) forceDeletion(s *Step) {
	all := slices.DeleteFunc(w.machines.all(), func(m *machine.Machine) bool { return !m.Deleted() })
	if len(all) == 0 {
		return
	}
	w.actions[s.Do]++
	m := all[s.N%len(all)].Clone()
	m.Labels = withLabel(maps.Clone(m.Labels), w.machinePolicy().Keys.ForceDeletion, "true")
	_, _ = w.machines.Update(context.Background(), m) // read in the same instant: no conflict
}
