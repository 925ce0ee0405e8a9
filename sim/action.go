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

// Step is something that users or other programs do. If its object does not exist, nothing happens.
type Step struct {
	// After is the time since the step before.
	After time.Duration
	Do    Action
	// Name is the name of a deployment, of an app (Resize), or of a pool (steps that change pools).
	Name string
	// Class is the name of the class that Roll and RollBriefly ask for, that RemakeClass removes, that
	// SpoilClass spoils, or whose tags Tag changes.
	Class string
	// N is a size (Scale, Resize, ScalePool, ResizeGroup), the revision for Rollback, or what the action
	// says. For steps about one machine, VM, node, instance or zone it says which one, modulo their number.
	N int
	// Value is what Preserve, PreserveNode and Prioritize write, and what BoundPool and Autoscale say.
	Value string
	// For is how long the effect of a step lasts (an outage, a pause), how far the clock jumps, or what
	// the action says.
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
	// Rollback asks for an earlier revision. 0 is the previous one.
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
	// OrphanVM creates a VM without a machine. If N is odd, it has the name of a machine with a VM.
	OrphanVM Action = "stray"

	// StopControl and StopTarget make the API of the control plane or of the target cluster stop
	// answering during For. StopZone makes a zone of the provider fail for that time.
	StopControl Action = "stop control"
	StopTarget  Action = "stop target"
	StopZone    Action = "stop zone"
	// JumpClock sets the manager's clock ahead by For, or back if For is negative.
	JumpClock Action = "jump clock"
)

// These are the steps by which users change single machines, sets, and existing VMs.
const (
	// PauseMachine and PauseSet pause a machine or a set during For. Zero: until the faults stop.
	PauseMachine Action = "pause machine"
	PauseSet     Action = "pause set"
	// Preserve and PreserveNode request that a machine is kept for inspection. They write Value to the
	// annotation of the machine or of its node, or remove the annotation if Value is empty.
	Preserve     Action = "preserve machine"
	PreserveNode Action = "preserve by node"
	// Prioritize writes Value as a machine's deletion priority.
	Prioritize Action = "prioritize machine"
	// Replace asks for the replacement of a machine.
	Replace Action = "replace machine"
	// ScaleDown is what an autoscaler does: it removes one or two machines from the deployment Name,
	// and chooses them by name: the Nth machine and the one after it.
	ScaleDown Action = "scale down"
	// Tag changes the tags of class Class; N makes them differ. Retag makes the deployment Name ask
	// for a class that differs from its own in its tags only.
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
	// BoundPool sets the bounds of a pool's updates: N instances more than wanted, or N fewer if Value
	// is "missing". If N is 0, the provider chooses the bounds.
	BoundPool Action = "bound pool"
	// Autoscale lets the provider decide the size of a pool if Value is "true", and else the pool's
	// spec. ResizeGroup sets the group's size to N at the provider, as an autoscaler or a person does.
	Autoscale   Action = "autoscale pool"
	ResizeGroup Action = "resize group"
	// ReplaceNode makes the node of the Nth instance ask for a replacement.
	ReplaceNode Action = "replace node"
	// AskDrain makes the provider request the drain of the Nth instance, and wait until it is drained.
	AskDrain Action = "ask drain"
	// LoseInstance removes the Nth instance at the provider. LoseGroup removes the group.
	LoseInstance Action = "lose instance"
	LoseGroup    Action = "lose group"
	// FailGroup makes the provider report during For that a group has failed.
	FailGroup Action = "fail group"
	// StopGroups makes the provider answer no call about groups during For.
	StopGroups Action = "stop groups"
	// DeletePool deletes a pool. RemakePool also creates another one of the same name after that.
	DeletePool Action = "delete pool"
	RemakePool Action = "remake pool"
	// ForgetPool removes the record of a pool with its finalizer. Its group is then an orphan.
	ForgetPool Action = "forget pool"
)

// These are the steps by which other programs and people change objects that the manager works on.
const (
	// FlickerNodes makes up to N nodes NotReady for up to For, again and again for half an hour.
	FlickerNodes Action = "flicker nodes"
	// RegisterNode removes the Nth node with its finalizer. Its kubelet registers it again within For,
	// with another UID and without the labels and taints that others had added.
	RegisterNode Action = "register node again"
	// StripNode removes some of the manager's labels and all taints from the Nth node, and adds another
	// label. It puts the removed labels back after For, unless For is zero.
	StripNode Action = "strip node"
	// FightOverNodes makes another program undo during For what the manager writes on nodes, as soon as it
	// sees it. N chooses what: a label, a changed label, a taint, the finalizer, or the removal of the
	// startup taint.
	FightOverNodes Action = "fight over nodes"
	// TouchObjects writes an annotation that means nothing to the manager on all machines, sets,
	// classes and secrets, every ten seconds during For.
	TouchObjects Action = "touch objects"
	// SelectNodes puts the label that selects a machine for its update in place on up to N nodes.
	SelectNodes Action = "select nodes"
	// RemakeClass removes class Class with its finalizer, and creates it again after For.
	RemakeClass Action = "remake class"
	// RollBriefly makes deployment Name ask for class Class. After For, it asks for its former class again.
	RollBriefly Action = "roll briefly"
	// SpoilTemplate gives the nodes of deployment Name a label that no API server accepts, during For.
	SpoilTemplate Action = "spoil template"
	// SpoilClass gives class Class a provider spec that no driver can read, during For.
	SpoilClass Action = "spoil class"
	// HoldDrain and HoldVM put a hook on all machines from the Nth on, which holds back the drain, or
	// the deletion of the VM. The hook is removed For after the machine's deletion has begun, or never
	// if For is zero.
	HoldDrain Action = "hold drain"
	HoldVM    Action = "hold VM"
	// ForceDeletion forces the Nth deletion of a machine that is under way.
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

// String returns in words what a step does.
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

// disturb does a step that deletes or disturbs machines, nodes, VMs or APIs.
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

// deleteNode deletes a node, as a user does.
func (w *World) deleteNode(n *machine.Node) {
	w.excuseNode(n.Name)
	_ = w.nodes.Delete(context.Background(), n.Key, n.UID)
}

// excuseNode records that the deletion of a node's machine is a user's wish, because the user deletes
// the node.
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
	if len(vms) == 0 { // also if the driver's VMs are at another provider
		return
	}
	w.provider.Remove(vms[n%len(vms)].ID)
	w.count(VMLost)
	w.changed()
	w.handleVMChanges()
}

// addOrphanVM creates a VM without a machine, with a name of its own or with that of a machine with a VM.
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

// lone is the key of the machine of Scenario.Lone.
var lone = object.Key{Namespace: Namespace, Name: "by-hand"}

// madeByHand: a user has created the machine lone.
type madeByHand struct{}

// addLone creates a machine that belongs to no set, as a user would by hand.
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

// removeLone deletes the machine of addLone.
func (w *World) removeLone() {
	if m, err := w.machines.Get(context.Background(), lone); err == nil {
		_ = w.machines.Delete(context.Background(), m.Key, m.UID) // seen in the same instant: it is there
	}
}

// cordon cordons the nth node, as a user would, unless it is cordoned, drained or updated already.
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

// Groups returns the simulated provider of groups. A driver of Options.PoolDriver may wrap it.
func (w *World) Groups() pooldriver.Driver { return w.groups }

// AddPool stores a pool, which should be in Namespace. If its template names a bootstrap config, the
// bootstrap data are made some time later.
func (w *World) AddPool(p *machinepool.Pool) error {
	made, err := w.pools.Create(context.Background(), p)
	if err == nil {
		w.bootstrapOf(made)
	}
	return err
}

// actOnPool does a step about a pool.
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
			w.toRemake[p.Key] = s.Do == RemakePool
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

// bounds returns the bounds that BoundPool asks for.
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

// forgetPool removes a pool's record, and leaves its group.
func (w *World) forgetPool(k object.Key) bool {
	p := w.pool(k)
	if p == nil {
		return false
	}
	delete(w.toRemake, k)
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

// actOnGroup does a step about a group at the provider. It reports whether there was such a group or
// instance.
func (w *World) actOnGroup(s *Step) bool {
	g := w.groups.Of(object.Key{Namespace: Namespace, Name: s.Name})
	if g == nil || g.Deleting {
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

// poolGone makes a pool again once it is gone, if RemakePool asked for it.
func (w *World) poolGone(e event) {
	if e, ok := e.(stored[*machinepool.Pool]); ok && e.now == nil {
		w.remake(e.key)
	}
}

// remake creates a pool again some time after it is gone, if RemakePool asked for it.
func (w *World) remake(k object.Key) {
	if !w.toRemake[k] {
		return
	}
	delete(w.toRemake, k)
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

// recording is a history that is being recorded. It implements marker.
type recording struct {
	now  func() time.Time
	h    history.History
	open []*openSpan
}

// openSpan is a span that has not ended yet.
type openSpan struct{ mark history.Mark }

// after returns the time since the start of the recording.
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
	Grace        time.Duration // how long a pod takes to terminate
	// Boot is how long a pod takes from its binding to being healthy.
	Boot time.Duration
	// Volumes is how many persistent volumes each pod has. If it is not zero, the app is like a
	// StatefulSet: each pod has a number, which gives its name and its volumes, and a pod that is gone
	// is replaced by one with the same number.
	Volumes int
	// Work makes the app a Job: each pod completes at most this long after it became healthy, and
	// another takes its place. If Work is zero, pods run until they are told to terminate.
	Work time.Duration
	// Tolerates says that the pods tolerate every taint, so that they are bound to cordoned nodes, too.
	Tolerates bool
}
