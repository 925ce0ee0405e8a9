package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/history"
	"github.com/millwright-go/millwright/sim/internal/groups"
)

// Step is something that users, or other programs, do. If its object is gone, nothing happens.
type Step struct {
	// After is the time since the step before.
	After time.Duration
	Do    Action
	// Name is the deployment's for Roll to Delete, ScaleDown and Retag, the app's for Resize, the
	// pool's for steps that change pools.
	Name string
	// Class is the one that Roll and RollBriefly ask for, that RemakeClass removes, or whose tags Tag
	// changes.
	Class string
	// N is the number of replicas for Scale and Resize, the revision for
	// Rollback, and which machine, VM, node or zone for the others: it is taken
	// modulo their number.
	N int
	// Value is what Preserve, PreserveNode and Prioritize write.
	Value string
	// For is how long an outage or a pause lasts, and how far the clock jumps.
	For time.Duration
}

// Action is what a step does. The zero value only waits.
type Action string

// These are the actions.
const (
	// Roll asks for another class of machines.
	Roll Action = "roll"
	// Scale asks for another number of machines.
	Scale Action = "scale"
	// Rollback asks for an earlier revision; 0: the one before.
	Rollback Action = "rollback"
	// Pause and Resume stop and start rollouts.
	Pause  Action = "pause"
	Resume Action = "resume"
	// Delete deletes a deployment.
	Delete Action = "delete"
	// Resize changes how many pods an app has.
	Resize Action = "resize"

	// DeleteMachine deletes a machine.
	DeleteMachine Action = "delete machine"
	// DeleteNode deletes a node.
	DeleteNode Action = "delete node"
	// DeleteNodes deletes N nodes at the same moment, as a mistaken program does.
	DeleteNodes Action = "delete nodes"
	// CordonNode cordons a node that is not cordoned.
	CordonNode Action = "cordon node"
	// RemoveVM removes a VM at the provider.
	RemoveVM Action = "remove VM"
	// OrphanVM makes an orphan VM, every other time under the name of a machine that has one.
	OrphanVM Action = "stray"

	// StopControl and StopTarget make an API stop answering, StopZone a zone.
	StopControl Action = "stop control"
	StopTarget  Action = "stop target"
	StopZone    Action = "stop zone"
	// JumpClock sets the manager's clock ahead, or back if For is negative.
	JumpClock Action = "jump clock"
)

// These are the requests that users make for single machines and sets, and for existing VMs.
const (
	// PauseMachine and PauseSet pause a machine or a set for For. Zero: until the faults stop.
	PauseMachine Action = "pause machine"
	PauseSet     Action = "pause set"
	// Preserve and PreserveNode write Value as the request to keep a machine for inspection, on it
	// or on its node. If Value is empty, they remove the request.
	Preserve     Action = "preserve machine"
	PreserveNode Action = "preserve by node"
	// Prioritize writes Value as a machine's deletion priority.
	Prioritize Action = "prioritize machine"
	// Replace asks for the replacement of a machine.
	Replace Action = "replace machine"
	// ScaleDown is what an autoscaler does: the deployment Name loses one or two machines, and
	// those from the Nth on are to be deleted.
	ScaleDown Action = "scale down"
	// Tag changes the tags of class Class, the Nth time. Retag makes the deployment Name ask for a
	// class that differs from its own in its tags only.
	Tag   Action = "tag class"
	Retag Action = "retag"
)

// These are the steps that change pools. Name is the pool's.
const (
	// ScalePool asks for N instances, RollPool for a class of machines.
	ScalePool Action = "scale pool"
	RollPool  Action = "roll pool"
	// SpreadPool asks for N failure domains.
	SpreadPool Action = "spread pool"
	// BoundPool has a pool updated with N instances more than wanted, or with N fewer if Value is
	// "missing". N 0: as the provider likes.
	BoundPool Action = "bound pool"
	// Autoscale gives the size of a pool to the provider, with Value "true", or takes it back.
	// ResizeGroup sets the group's size to N, as its autoscaler does, or a person by hand.
	Autoscale   Action = "autoscale pool"
	ResizeGroup Action = "resize group"
	// ReplaceNode makes the node of the Nth instance ask for a replacement.
	ReplaceNode Action = "replace node"
	// AskDrain makes the provider request the drain of the Nth instance and wait for it.
	AskDrain Action = "ask drain"
	// LoseInstance removes the Nth instance at the provider. LoseGroup removes the group.
	LoseInstance Action = "lose instance"
	LoseGroup    Action = "lose group"
	// FailGroup makes the provider report for For that a group can't work.
	FailGroup Action = "fail group"
	// StopGroups makes the provider answer no call about groups for For.
	StopGroups Action = "stop groups"
	// DeletePool deletes a pool. RemakePool also makes one of the same name once it is gone.
	DeletePool Action = "delete pool"
	RemakePool Action = "remake pool"
	// ForgetPool removes the record of a pool with its finalizer. Its group is then an orphan.
	ForgetPool Action = "forget pool"
)

// These are what other programs and people do to objects that the manager works on.
const (
	// FlickerNodes makes up to N nodes silent for up to For, again and again for half an hour.
	FlickerNodes Action = "flicker nodes"
	// RegisterNode removes the Nth node with its finalizer. Its kubelet registers it again within For,
	// with another UID and without anything that others have put on it.
	RegisterNode Action = "register node again"
	// StripNode takes labels of the manager's and all taints off the Nth node, puts the labels back
	// after For unless it is zero, and leaves a label of its own.
	StripNode Action = "strip node"
	// FightOverNodes has another program undo on sight, for For, what the manager writes on nodes: the
	// Nth of a label, a changed label, a taint, the finalizer and the startup taint's removal.
	FightOverNodes Action = "fight over nodes"
	// TouchObjects writes an annotation that means nothing to the manager on all machines, sets,
	// classes and secrets, every ten seconds for For.
	TouchObjects Action = "touch objects"
	// SelectNodes puts the label on up to N nodes of machines by which a user selects a machine for its update in place.
	SelectNodes Action = "select nodes"
	// RemakeClass removes class Class with its finalizer, and makes it again after For.
	RemakeClass Action = "remake class"
	// RollBriefly asks for class Class in deployment Name, and for the former one again after For.
	RollBriefly Action = "roll briefly"
	// SpoilTemplate gives the nodes of deployment Name a label that no API server accepts, for For.
	SpoilTemplate Action = "spoil template"
	// SpoilClass gives class Class a provider spec that no driver can read, for For.
	SpoilClass Action = "spoil class"
	// HoldDrain and HoldVM put a hook on all machines from the Nth on, which holds back the drain, or
	// the deletion of the VM. It is taken off For after the machine's deletion has begun. Zero: never.
	HoldDrain Action = "hold drain"
	HoldVM    Action = "hold VM"
	// ForceDeletion has a person force the Nth deletion that is under way.
	ForceDeletion Action = "force deletion"
)

// isPoolAction reports whether a step changes a pool.
func isPoolAction(d Action) bool {
	switch d {
	case ScalePool, RollPool, SpreadPool, BoundPool, Autoscale, ResizeGroup, ReplaceNode, AskDrain, LoseInstance, LoseGroup, FailGroup, StopGroups, DeletePool, RemakePool, ForgetPool:
		return true
	}
	return false
}

// String returns what a step does.
func (s *Step) String() string {
	switch s.Do {
	case Roll:
		return fmt.Sprintf("%s: class %s is wanted", s.Name, s.Class)
	case Scale, Resize:
		return fmt.Sprintf("%s: %d are wanted", s.Name, s.N)
	case Rollback:
		return fmt.Sprintf("%s: back to revision %d", s.Name, s.N)
	case Pause, Resume, Delete:
		return fmt.Sprintf("%s: %s", s.Name, s.Do)
	case StopControl, StopTarget, JumpClock:
		return fmt.Sprintf("%s for %s", s.Do, s.For)
	case PauseMachine, PauseSet:
		return fmt.Sprintf("%s %d for %s", s.Do, s.N, s.For)
	case Preserve, PreserveNode, Prioritize:
		return fmt.Sprintf("%s %d: %q", s.Do, s.N, s.Value)
	case ScaleDown, Retag:
		return fmt.Sprintf("%s: %s %d", s.Name, s.Do, s.N)
	case Tag:
		return fmt.Sprintf("%s %s %d", s.Do, s.Class, s.N)
	case RemakeClass, RollBriefly, SpoilTemplate, SpoilClass:
		return fmt.Sprintf("%s: %s %s for %s", s.Name, s.Do, s.Class, s.For)
	case StopZone, FlickerNodes, RegisterNode, StripNode, FightOverNodes, TouchObjects, HoldDrain, HoldVM:
		return fmt.Sprintf("%s %d for %s", s.Do, s.N, s.For)
	}
	if isPoolAction(s.Do) {
		return fmt.Sprintf("%s: %s %d%s%s %s", s.Name, s.Do, s.N, s.Class, s.Value, s.For)
	}
	return fmt.Sprintf("%s %d", s.Do, s.N)
}

// Do does a step at once. It ignores After.
func (w *World) Do(s *Step) {
	w.tell("step: %s", s)
	switch s.Do {
	case Roll:
		w.edit(s.Name, func(spec *deployment.Spec) { spec.Template.Spec.Class.Name = s.Class })
	case Scale:
		w.edit(s.Name, func(spec *deployment.Spec) { spec.Replicas = int32(s.N) })
	case Rollback:
		w.edit(s.Name, func(spec *deployment.Spec) { spec.RollbackTo = &deployment.Rollback{Revision: int64(s.N)} })
	case Pause, Resume:
		w.edit(s.Name, func(spec *deployment.Spec) { spec.Paused = s.Do == Pause })
	case Delete:
		if d := w.deployment(s.Name); d != nil {
			_ = w.deployments.Delete(context.Background(), d.Key, d.UID) // seen in the same instant: it is there
		}
	case Resize:
		w.apps.Resize(s.Name, s.N)
	default:
		w.disturb(s)
		w.request(s)
		w.otherActors(s)
		w.actOnPool(s)
	}
	w.check()
}

// disturb does to machines, nodes and VMs what a step says.
func (w *World) disturb(s *Step) {
	switch s.Do {
	case DeleteMachine:
		if m, found := nthOf(w.machines, s.N); found {
			_ = w.machines.Delete(context.Background(), m.Key, m.UID) // seen in the same instant: it is there
		}
	case DeleteNode:
		if n, found := nthOf(w.nodes, s.N); found {
			w.deleteNode(n)
		}
	case DeleteNodes:
		all := w.nodes.all()
		for _, n := range all[:min(max(s.N, 0), len(all))] {
			w.deleteNode(n)
		}
	case CordonNode:
		w.cordon(s.N)
	case RemoveVM:
		w.removeVM(s.N)
	case OrphanVM:
		w.addOrphanVM(s.N)
	case StopControl:
		w.StopControl(s.For)
	case StopTarget:
		w.StopTarget(s.For)
	case StopZone:
		w.StopZone(s.N, s.For)
	case JumpClock:
		w.JumpClock(s.For)
	}
}

// deleteNode deletes a node, as somebody does who is not the manager.
func (w *World) deleteNode(n *machine.Node) {
	w.excuseNode(n.Name)
	_ = w.nodes.Delete(context.Background(), n.Key, n.UID)
}

// excuseNode records that a user asks for the deletion of a node's machine by deleting the node.
func (w *World) excuseNode(node string) {
	for _, m := range w.machines.all() {
		if m.Name == node {
			w.excuses.excused[m.UID] = true
		}
	}
}

// removeVM deletes the nth VM at the provider, without the manager.
func (w *World) removeVM(n int) {
	vms := w.provider.VMs()
	if len(vms) == 0 { // also with a driver whose VMs are elsewhere
		return
	}
	w.provider.Remove(vms[n%len(vms)].ID)
	w.count(VMLost)
	w.changed()
	w.lookAtVMs()
}

// addOrphanVM adds an orphan VM: under a name of its own, or under that of a machine that has one.
func (w *World) addOrphanVM(n int) {
	if w.o.Class != nil { // the driver does not see it
		return
	}
	if m, found := nthOf(w.machines, n); found && n%2 == 1 && m.Status.Phase == machine.PhaseRunning {
		w.AddOrphanVM(m.Name)
		return
	}
	w.orphans++
	w.AddOrphanVM(fmt.Sprint("stray-", w.orphans))
}

// lone is a machine that belongs to no set, and that no selector picks.
var lone = object.Key{Namespace: Namespace, Name: "by-hand"}

// madeByHand: a user has made that machine.
type madeByHand struct{}

// addLone makes a machine that belongs to no set, as a user would by hand.
func (w *World) addLone() error {
	m := &machine.Machine{Meta: object.Meta{
		Key: lone, Labels: map[string]string{"made": "by hand"},
		Finalizers: []string{machine.Finalizer},
	}}
	m.Spec.Class.Name = "small"
	_, err := w.machines.Create(context.Background(), m)
	if err == nil {
		w.emit(madeByHand{})
	}
	return err
}

// removeLone deletes that machine.
func (w *World) removeLone() {
	if m, err := w.machines.Get(context.Background(), lone); err == nil {
		_ = w.machines.Delete(context.Background(), m.Key, m.UID) // seen in the same instant: it is there
	}
}

// cordon marks the nth node unschedulable, as a user would, unless it is so already.
func (w *World) cordon(n int) {
	node, found := nthOf(w.nodes, n)
	if !found || node.Unschedulable || node.Drain != nil || !node.Applied.Update.Since.IsZero() {
		return
	}
	node = node.Clone()
	node.Unschedulable = true
	if _, err := w.nodes.Update(context.Background(), node); err == nil {
		w.excuses.cordoned[node.UID] = true
	}
}

// Groups returns the simulated provider of groups, to be wrapped by
// Options.PoolDriver.
func (w *World) Groups() pooldriver.Driver { return w.groups }

// AddPool stores a pool, which should be in Namespace. If its template names a bootstrap config,
// the data come after a while.
func (w *World) AddPool(p *machinepool.Pool) error {
	made, err := w.pools.Create(context.Background(), p)
	if err == nil {
		w.bootstrapOf(made)
	}
	return err
}

// actOnPool does what a step does to a pool.
func (w *World) actOnPool(s *Step) {
	if w.o.Pools == nil || !isPoolAction(s.Do) {
		return
	}
	done := false
	key := w.poolPolicy().Keys.Autoscaled
	switch n := int32(s.N); s.Do {
	case ScalePool:
		done = w.editPool(s.Name, func(p *machinepool.Pool) { p.Spec.Replicas = &n })
	case RollPool:
		done = w.editPool(s.Name, func(p *machinepool.Pool) { p.Spec.Template.Class.Name = s.Class })
	case SpreadPool:
		done = w.editPool(s.Name, func(p *machinepool.Pool) { p.Spec.FailureDomains = []string{"a", "b", "c"}[:min(max(s.N, 0), 3)] })
	case BoundPool:
		done = w.o.Pools.Features.RollingUpdate && w.editPool(s.Name, func(p *machinepool.Pool) { p.Spec.RollingUpdate = s.bounds() })
	case Autoscale:
		done = w.editPool(s.Name, func(p *machinepool.Pool) { p.Annotations = map[string]string{key: s.Value} })
	case StopGroups:
		w.poolCalls.silent, done = w.Now().Add(s.For), true
	case DeletePool, RemakePool:
		if p := w.pool(object.Key{Namespace: Namespace, Name: s.Name}); p != nil && !p.Deleted() {
			w.remade[p.Key] = s.Do == RemakePool
			done = w.pools.Delete(context.Background(), p.Key, p.UID) == nil
		}
	case ForgetPool:
		done = w.forgetPool(object.Key{Namespace: Namespace, Name: s.Name})
	default:
		done = w.actOnGroup(s)
	}
	if done {
		w.actions[s.Do]++
	}
}

// bounds are those that BoundPool asks for.
func (s *Step) bounds() *machinepool.RollingUpdate {
	n := rollout.IntOrPercent{Value: int32(max(s.N, 0))}
	switch {
	case n.Value == 0:
		return nil
	case s.Value == "missing":
		return &machinepool.RollingUpdate{MaxUnavailable: n}
	}
	return &machinepool.RollingUpdate{MaxSurge: n}
}

// forgetPool removes a pool's record.
func (w *World) forgetPool(k object.Key) bool {
	p := w.pool(k)
	if p == nil {
		return false
	}
	delete(w.remade, k)
	w.excuses.forgotten[p.UID] = true
	w.expectOwnerlessGroup(k)
	bare := p.Clone()
	bare.Finalizers = nil
	bare, err := w.pools.Update(context.Background(), bare)
	if err == nil && !p.Deleted() {
		err = w.pools.Delete(context.Background(), k, bare.UID)
	}
	return err == nil
}

// actOnGroup does what a step does at the provider, and reports whether there is a group or instance
// that it can be done to.
func (w *World) actOnGroup(s *Step) bool {
	g := w.groups.Of(object.Key{Namespace: Namespace, Name: s.Name})
	if g == nil || g.Going {
		return false
	}
	w.changed()
	switch s.Do {
	case ResizeGroup:
		w.groups.Resize(g, int32(max(s.N, 0)))
	case FailGroup:
		w.groups.Fail(g, s.For)
	case LoseGroup:
		w.groups.Lose(g)
	default:
		return len(g.Instances) > 0 && w.actOnInstance(s, g.Instances[max(s.N, 0)%len(g.Instances)])
	}
	return true
}

func (w *World) actOnInstance(s *Step, i *groups.Instance) bool {
	switch s.Do {
	case AskDrain:
		return w.groups.AskDrain(i)
	case LoseInstance:
		w.groups.LoseInstance(i.ProviderID)
		return true
	}
	n, err := w.nodes.Get(context.Background(), object.Key{Name: i.Name})
	if err == nil {
		annotated(w.nodes, n, w.poolPolicy().Keys.Replace, "true")
	}
	return err == nil
}

// poolGone makes pools again that are gone.
func (w *World) poolGone(e event) {
	if e, ok := e.(stored[*machinepool.Pool]); ok && e.now == nil {
		w.remake(e.key)
	}
}

// remake makes a pool again that is gone, if a step asked for that.
func (w *World) remake(k object.Key) {
	if !w.remade[k] {
		return
	}
	delete(w.remade, k)
	w.After(w.upTo(time.Minute), func() {
		p := Pool(k.Name, int32(w.chance(4)))
		p.Spec.Template.Bootstrap = machinepool.Bootstrap{Config: "join"}
		_ = w.AddPool(p) // its name is free
		w.check()
	})
}

// specChanges returns the differences between two specs, in words.
func specChanges(before, now *deployment.Spec) (out []string) {
	if before.Replicas != now.Replicas {
		out = append(out, machinesInWords(now.Replicas)+" wanted")
	}
	old, new := before.Template, now.Template
	switch {
	case old.Spec.Class != new.Spec.Class:
		out = append(out, "class "+new.Spec.Class.Name+" wanted")
	case !old.Equal(&new):
		out = append(out, "another template wanted")
	}
	if before.Strategy != now.Strategy {
		out = append(out, "strategy changed")
	}
	if before.Paused != now.Paused {
		out = append(out, map[bool]string{true: "paused", false: "resumed"}[now.Paused])
	}
	if before.RollbackTo == nil && now.RollbackTo != nil {
		out = append(out, "rollback asked for")
	}
	if len(out) == 0 {
		out = append(out, "edited")
	}
	return out
}

func machinesInWords(n int32) string {
	if n == 1 {
		return "1 machine"
	}
	return fmt.Sprint(n, " machines")
}

// recording is a history that is being recorded: marks of an instant, and spans.
type recording struct {
	now  func() time.Time
	h    history.History
	open []*openSpan
}

// openSpan is a span that has not ended yet.
type openSpan struct{ mark history.Mark }

// after is the time since the beginning.
func (t *recording) after() time.Duration { return t.now().Sub(t.h.Start) }

// note implements marker.
func (t *recording) note(kind history.Kind, what string) {
	t.h.Note(history.Mark{After: t.after(), Kind: kind, What: what})
}

// span implements marker.
func (t *recording) span(kind history.Kind, what string) (end func()) {
	s := t.begin(kind, what)
	return func() { t.finish(s) }
}

func (t *recording) begin(kind history.Kind, what string) *openSpan {
	s := &openSpan{history.Mark{After: t.after(), Kind: kind, What: what}}
	t.open = append(t.open, s)
	return s
}

func (t *recording) finish(s *openSpan) {
	i := slices.Index(t.open, s)
	if i < 0 {
		return
	}
	t.open = slices.Delete(t.open, i, i+1)
	s.mark.Until = t.after()
	t.h.Note(s.mark)
}

// App is a workload of equal pods with a disruption budget. A controller keeps their number.
type App struct {
	Name     string
	Replicas int
	// MinAvailable is how many pods the budget keeps healthy during evictions. Zero means no
	// budget.
	MinAvailable int
	Grace        time.Duration // of each pod
	// Boot is how long a pod takes from its binding to being healthy.
	Boot time.Duration
	// Volumes is how many persistent volumes each pod has. If it is zero, all pods are alike.
	// Otherwise each pod has a number, which gives its name and its volumes, and a pod that is gone
	// is replaced by one with the same number.
	Volumes int
	// Work makes the app a Job: each of its pods completes at most that long after it became
	// healthy, and another takes its place. If Work is zero, pods run until they are told to
	// terminate.
	Work time.Duration
	// Tolerates says that the pods tolerate everything, so that they are bound to cordoned nodes too.
	Tolerates bool
}
