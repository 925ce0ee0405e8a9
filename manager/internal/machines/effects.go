package machines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/answer"
	"github.com/millwright-go/millwright/manager/internal/index"
	"github.com/millwright-go/millwright/manager/internal/secrets"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/orphan"
	"github.com/millwright-go/millwright/store"
)

// deleteTries bounds how often a node's deletion begins again when somebody
// else writes the node meanwhile.
const deleteTries = 5

// effectName returns the name of an effect's type.
func effectName(e machine.Effect) string {
	t := reflect.TypeOf(e)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

// do carries out an effect. A call that the provider throttled counts as not made.
func (p *pass) do(ctx context.Context, e machine.Effect) error {
	before, call := p.o, p.calls() > 0
	p.slowed, p.began = false, p.Now()
	err := p.carryOut(ctx, e)
	if p.slowed {
		p.o = before
	}
	if call {
		p.turn = false
	}
	return err
}

func (p *pass) carryOut(ctx context.Context, e machine.Effect) (err error) {
	ctx = p.confidential(ctx)
	switch e := e.(type) {
	case machine.GetVM:
		p.o.VM, err = p.getVM(ctx)
	case machine.CreateVM:
		p.o.Created, err = p.tryCreateVM(ctx)
	case machine.InitializeVM:
		p.o.Initialized, err = p.initializeVM(ctx)
	case machine.DeleteVM:
		p.o.VMDeleted, err = p.deleteVM(ctx, e.ProviderID)
	case machine.FindNode:
		err = p.lookAgain(ctx, e)
	case *machine.SyncNode:
		p.o.NodeSynced, err = p.syncNode(ctx, e)
	case *machine.MarkNode:
		p.o.NodeMarked, err = p.markNode(ctx, e)
	case machine.DeleteNode:
		p.o.NodeDeleted, err = p.deleteNode(ctx, e)
	case *machine.DrainNode:
		p.o.Drain, err = p.callDrainer(ctx, e.Node, func() (machine.DrainAnswer, error) { return p.Drainer.Drain(ctx, p.o.Machine, e) })
	case *machine.DetachVolumes:
		p.o.Detach, err = p.callDrainer(ctx, e.Node, func() (machine.DrainAnswer, error) { return p.Drainer.Detach(ctx, p.o.Machine, e) })
	case machine.AskGrant, machine.AskCreate, machine.AskUpdate:
		err = p.ask(ctx, e)
	case machine.EnsureToken, machine.RenewToken, machine.RemoveToken:
		err = p.callTokens(ctx, e)
	case machine.UpdateVM:
		p.o.Updated, err = p.updateVM(ctx, e.LastApplied)
	default:
		err = fmt.Errorf("unknown effect %T", e)
	}
	return err
}

// ask carries out an effect that asks for permission.
func (p *pass) ask(ctx context.Context, e machine.Effect) (err error) {
	switch e := any(e).(type) { // of all effects, only these are asked
	case machine.AskGrant:
		p.o.Grant, err = p.askGrant(ctx, e)
	case machine.AskCreate:
		p.o.CreatePermit = p.askCreate()
	case machine.AskUpdate:
		p.o.UpdateTurn, err = p.askUpdate(ctx)
	}
	return err
}

// lookAgain looks for the machine's node. If the node was registered anew meanwhile, it drops this pass's
// answers about the old one.
func (p *pass) lookAgain(ctx context.Context, e machine.FindNode) (err error) {
	before := p.o.Node
	p.o.Node, err = p.lookForNode(ctx, e)
	if err != nil || before == nil || before.Node == nil || p.o.Node.Node == nil || before.Node.UID == p.o.Node.Node.UID {
		return err
	}
	p.o.NodeSynced, p.o.NodeMarked, p.o.Drain, p.o.Detach = nil, nil, nil, nil
	return nil
}

// lookForNode reads the machine's node live.
func (p *pass) lookForNode(ctx context.Context, e machine.FindNode) (*machine.NodeAnswer, error) {
	began := p.Now()
	answer, err := p.findNode(ctx, p.Nodes.Live(), e.Name)
	if err != nil && e.Forced && engine.Interrupted(ctx, err) == nil {
		answer, err = &machine.NodeAnswer{Name: e.Name, Failure: err.Error()}, nil
	}
	if answer != nil {
		answer.Gone, answer.Read = e.Gone, p.Freshness(began, true)
	}
	return answer, err
}

// answer turns a driver's answer into an observation. When the pass's own
// context has ended, nothing is concluded from a failure: the manager is
// shutting down, and that is no error of the driver.
func (p *pass) answer(ctx context.Context, call codes.Call, err error, fill func(*machine.VM)) (*machine.VM, error) {
	if err := engine.Interrupted(ctx, err); err != nil {
		return nil, err
	}
	p.noteCall(err, p.began)
	vm := &machine.VM{Outcome: answer.Of(err)}
	fill(vm)
	if err != nil && p.Log.Enabled(ctx, slog.LevelDebug) {
		what := "driver call answered with an error"
		if codes.RecoveryFor(call, vm.Code).Class == codes.None { // the decision goes on with it
			what = "driver call answered"
		}
		p.Log.LogAttrs(ctx, slog.LevelDebug, what, slog.String("call", call.String()),
			slog.String("code", vm.Code.Contract()), logAttrs(p.o.Machine))
	}
	return vm, nil
}

// refused returns the answer to a call that is not made because the class may not take
// its secret. It passes any other error on.
func refused(err error) (*machine.VM, error) {
	if errors.Is(err, secrets.ErrNamespace) {
		return &machine.VM{Outcome: answer.Of(err)}, nil
	}
	return nil, err
}

// secret returns a copy of the merged secret of the machine's class, with the machine's name
// and token filled in. The driver may change the copy.
func (p *pass) secret(ctx context.Context) (*machine.Secret, error) {
	secret, err := p.secrets.Merged(ctx, p.o.Class)
	if err != nil {
		return nil, err
	}
	secrets.PlaceName(secret, p.o.Machine.Name)
	p.placeToken(secret)
	return secret, nil
}

func (p *pass) getVM(ctx context.Context) (*machine.VM, error) {
	secret, err := p.secret(ctx)
	if err != nil {
		return refused(err)
	}
	got, err := p.Driver.GetMachineStatus(ctx, &driver.GetMachineStatusRequest{
		Machine: p.o.Machine.Clone(), Class: p.o.Class.Clone(), Secret: secret, // the driver may change them
	})
	vm, err := p.answer(ctx, codes.GetMachineStatus, err, func(vm *machine.VM) {
		if got != nil {
			vm.ProviderID, vm.NodeName, vm.Addresses = got.ProviderID, got.NodeName, got.Addresses
			vm.Unhealthy = got.Unhealthy
		}
	})
	if err == nil {
		err = p.lookUp(ctx, vm)
	}
	switch {
	case err != nil:
	case p.o.Missing != nil, p.o.VMUnhealthy:
		p.Asked(p.Key, vm.Code)
	case vm.Code == codes.OutOfRange:
		p.Hint(orphan.Hint{Class: index.ClassKey(p.o.Machine), At: p.Now(), Several: p.Key.Name})
	}
	return vm, err
}

// tryCreateVM creates the VM, and notes the outcome in the class's backoff.
func (p *pass) tryCreateVM(ctx context.Context) (*machine.VM, error) {
	vm, err := p.createVM(ctx)
	if err == nil && !p.slowed {
		p.noteCreate(vm.Code)
	}
	return vm, err
}

func (p *pass) createVM(ctx context.Context) (*machine.VM, error) {
	p.warnOfSecret(ctx)
	p.warnOfTemplate(ctx)
	secret, err := p.secret(ctx)
	if err != nil {
		return refused(err)
	}
	if p.Nodes != nil && (secret == nil || len(secret.Data[machine.UserData]) == 0) {
		problem := "the secrets of class " + p.o.Class.Name + " hold no " + machine.UserData + ": the machine could not join a cluster"
		return &machine.VM{Outcome: machine.Outcome{Code: codes.InvalidArgument, Message: problem}}, nil
	}
	if err := checkTokenPlaced(secret); err != nil {
		return nil, err
	}
	made, err := p.Driver.CreateMachine(ctx, &driver.CreateMachineRequest{
		Machine: p.o.Machine.Clone(), Class: p.o.Class.Clone(), Secret: secret, // the driver may change them
	})
	vm, err := p.answer(ctx, codes.CreateMachine, err, func(vm *machine.VM) {
		if made != nil {
			vm.ProviderID, vm.NodeName, vm.Addresses = made.ProviderID, made.NodeName, made.Addresses
			vm.LastKnown = made.LastKnownState
		}
	})
	if err == nil {
		err = p.lookUp(ctx, vm)
	}
	return vm, err
}

// warnOfSecret warns once of a secret that the class refers to and that does not exist.
func (p *pass) warnOfSecret(ctx context.Context) {
	if key, missing := p.secrets.Missing(ctx, p.o.Class); missing {
		p.EmitOnce(ctx, engine.Warning, decision.Why{Reason: reasonSecretMissing, Name: p.o.Class.Name, Object: key})
	}
}

// warnOfTemplate warns once of a class whose node template has only a part of what an autoscaler needs to
// scale it up from zero.
func (p *pass) warnOfTemplate(ctx context.Context) {
	if p.Nodes == nil || p.o.Class == nil {
		return
	}
	if missing := p.o.Class.Unshaped(); len(missing) > 0 {
		p.EmitOnceFor(ctx, "class", p.o.Class.Key, engine.Warning, decision.Why{Reason: reasonTemplate, Name: p.o.Class.Name, Detail: strings.Join(missing, ", ")})
	}
}

func (p *pass) initializeVM(ctx context.Context) (*machine.VM, error) {
	secret, err := p.secret(ctx)
	if err != nil {
		return refused(err)
	}
	got, err := p.Driver.InitializeMachine(ctx, &driver.InitializeMachineRequest{
		Machine: p.o.Machine.Clone(), Class: p.o.Class.Clone(), Secret: secret, // the driver may change them
	})
	vm, err := p.answer(ctx, codes.InitializeMachine, err, func(vm *machine.VM) {
		if got != nil {
			vm.ProviderID, vm.NodeName, vm.Addresses = got.ProviderID, got.NodeName, got.Addresses
		}
	})
	if err == nil && vm.Code == codes.Unimplemented {
		p.uninitialized.Store(p.o.Class.Provider, true)
	}
	return vm, err
}

// deleteVM deletes the machine's VM; id, unless empty, says which one.
func (p *pass) deleteVM(ctx context.Context, id string) (*machine.VM, error) {
	secret, err := p.secret(ctx)
	if err != nil {
		return refused(err)
	}
	m := p.o.Machine
	if id != "" {
		m = m.Clone()
		m.Spec.ProviderID = id
	}
	gone, err := p.Driver.DeleteMachine(ctx, &driver.DeleteMachineRequest{
		Machine: m.Clone(), Class: p.o.Class.Clone(), Secret: secret,
	})
	return p.answer(ctx, codes.DeleteMachine, err, func(vm *machine.VM) {
		if gone != nil {
			vm.LastKnown = gone.LastKnownState
		}
	})
}

// findNode reads a node by name or, without one, by the machine that its label names.
func (p *pass) findNode(ctx context.Context, nodes store.Reader[*machine.Node], name string) (*machine.NodeAnswer, error) {
	if name != "" {
		node, err := nodes.Get(ctx, object.Key{Name: name})
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		return p.nodeOf(ctx, &machine.NodeAnswer{Name: name, Node: node})
	}
	carrying, err := nodes.List(ctx, store.Query{Index: index.Machine, Value: p.Key.Name})
	if err != nil || len(carrying) == 0 {
		return &machine.NodeAnswer{}, err
	}
	first := slices.MinFunc(carrying, func(a, b *machine.Node) int { return strings.Compare(a.Name, b.Name) })
	return p.nodeOf(ctx, &machine.NodeAnswer{Node: first})
}

// deleteNode takes our finalizer off a node and deletes it, if it is still the
// one that was meant.
func (p *pass) deleteNode(ctx context.Context, e machine.DeleteNode) (*machine.Outcome, error) {
	// A cached node with our finalizer saves a live read: the removal fails if the cache is stale.
	node, err := p.Nodes.Get(ctx, object.Key{Name: e.Name})
	if err == nil && node.UID == e.UID && node.HasFinalizer(machine.NodeFinalizer) {
		err = p.releaseNode(ctx, node)
	} else {
		err = store.ErrConflict
	}
	for n := 0; n < deleteTries && errors.Is(err, store.ErrConflict); n++ {
		err = p.tryDeleteNode(ctx, e)
	}
	switch {
	case err == nil:
		return &machine.Outcome{}, nil
	case engine.Interrupted(ctx, err) != nil:
		return nil, err
	}
	return &machine.Outcome{Code: engine.CodeOf(err), Message: codes.Message(err)}, nil
}

func (p *pass) tryDeleteNode(ctx context.Context, e machine.DeleteNode) error {
	nodes := p.Nodes
	node, err := nodes.Live().Get(ctx, object.Key{Name: e.Name})
	if errors.Is(err, store.ErrNotFound) || err == nil && node.UID != e.UID {
		return nil
	}
	if err != nil {
		return err
	}
	return p.releaseNode(ctx, node)
}

// releaseNode takes our finalizer off a node and deletes it. Both fail if it is another node by now.
func (p *pass) releaseNode(ctx context.Context, node *machine.Node) error {
	nodes, err := p.Nodes, error(nil)
	if node.HasFinalizer(machine.NodeFinalizer) {
		changed := *node // the store takes its own copy
		changed.RemoveFinalizer(machine.NodeFinalizer)
		if node, err = nodes.Update(ctx, &changed); err != nil {
			return index.IgnoreNotFound(err)
		}
		if node.Deleted() {
			return nil // it was being deleted already
		}
	}
	return index.IgnoreNotFound(nodes.Delete(ctx, node.Key, node.UID))
}

// updateVM asks the driver to change the VM to what the class says.
func (p *pass) updateVM(ctx context.Context, lastApplied string) (*machine.VM, error) {
	secret, err := p.secret(ctx)
	if err != nil {
		return refused(err)
	}
	p.warnOfSecret(ctx)
	got, err := p.Driver.UpdateMachine(ctx, &driver.UpdateMachineRequest{
		Machine: p.o.Machine.Clone(), Class: p.o.Class.Clone(), Secret: secret, // the driver may change them
		LastApplied: []byte(lastApplied), Wanted: slices.Clone(p.o.Class.ProviderSpec),
	})
	return p.answer(ctx, codes.UpdateMachine, err, func(vm *machine.VM) {
		if got != nil {
			vm.LastKnown = got.LastKnownState
		}
	})
}

// callDrainer makes one call of the drainer. If the drainer has written the node, it observes
// the node as it was stored.
func (p *pass) callDrainer(ctx context.Context, node *machine.Node, call func() (machine.DrainAnswer, error)) (*machine.DrainAnswer, error) {
	began := p.Now()
	answer, err := call()
	switch {
	case err == nil:
	case errors.Is(err, store.ErrConflict) || engine.Interrupted(ctx, err) != nil:
		return nil, err
	default:
		answer.Outcome = machine.Outcome{Code: engine.CodeOf(err), Message: codes.Message(err)}
	}
	if answer.Node != nil && answer.Node.UID == node.UID {
		p.o.Node = &machine.NodeAnswer{Name: p.o.Node.Name, Node: answer.Node, ClaimedBy: p.o.Node.ClaimedBy, Gone: p.o.Node.Gone, Read: p.Freshness(began, true)}
	}
	return &answer, nil
}

var (
	reasonSecretMissing = decision.NewReason("SecretMissing", "class {name} refers to secret {object}, which does not exist")
	reasonTemplate      = decision.NewReason("NodeTemplateIncomplete", "class {name}: the node template has no {detail}; machines are made from it, but an autoscaler can't scale it up from none")
)

// verb returns Mutate if an effect changes something outside of this process, else Read. AskGrant is Read: it
// runs a pass of its own, which a dry run ends before its writes.
func (p *pass) verb(e machine.Effect) engine.Verb {
	switch e.(type) {
	case machine.GetVM, machine.FindNode, machine.AskGrant, machine.AskCreate, machine.AskUpdate:
		return engine.Read
	case machine.CreateVM:
		if p.skipped.create {
			return engine.Read
		}
	case machine.InitializeVM, machine.DeleteVM, machine.UpdateVM:
		if p.skipped.any {
			return engine.Read
		}
	case *machine.SyncNode, *machine.MarkNode, machine.DeleteNode, *machine.DrainNode, *machine.DetachVolumes,
		machine.EnsureToken, machine.RenewToken, machine.RemoveToken:
	}
	return engine.Mutate
}

// mark identifies a mark of a node. One pass may mark a node as drained, and then as ready.
type mark struct{ typ, reason string }

// effectID returns Step.Key of an effect. A pointer counts by its type, except for MarkNode; any other
// effect by its value.
func effectID(e machine.Effect) any {
	if m, ok := e.(*machine.MarkNode); ok {
		return mark{string(m.Condition.Type), m.Condition.Reason}
	}
	if t := reflect.TypeOf(e); t.Kind() == reflect.Pointer {
		return t
	}
	return e
}

// Changes implements engine.Steps.
func (p *pass) Changes() []engine.Change {
	what := ""
	switch p.plan.Write.(type) {
	case *machine.Update:
		what = "update machine " + p.Key.String()
	case *machine.UpdateStatus:
		what = "update status of machine " + p.Key.String()
	case *machine.Delete:
		what = "delete machine " + p.Key.String()
	default:
		what = p.change(p.plan.Effect)
	}
	return []engine.Change{{What: what}}
}

// change names the first change that an effect would make.
func (p *pass) change(e machine.Effect) string {
	call := func(c codes.Call) string { return "call " + c.String() + " for machine " + p.Key.String() }
	switch e := e.(type) {
	case machine.CreateVM:
		return call(codes.CreateMachine)
	case machine.InitializeVM:
		return call(codes.InitializeMachine)
	case machine.DeleteVM:
		return call(codes.DeleteMachine)
	case machine.UpdateVM:
		return call(codes.UpdateMachine)
	case *machine.SyncNode:
		if e.Capacity {
			return "update status of node " + e.Node.Key.String()
		}
		return "update node " + e.Node.Key.String()
	case *machine.MarkNode:
		return "update status of node " + e.Node.Key.String()
	case machine.DeleteNode:
		return p.nodeDeletion(e)
	case *machine.DrainNode:
		return "drain node " + e.Node.Name
	case *machine.DetachVolumes:
		return "detach the volumes of node " + e.Node.Name
	case machine.EnsureToken, machine.RenewToken, machine.RemoveToken:
		return p.tokenChange(e)
	case machine.GetVM, machine.FindNode, machine.AskGrant, machine.AskCreate, machine.AskUpdate:
	}
	return ""
}

// tokenChange names the change that an effect on the bootstrap token would make.
func (p *pass) tokenChange(e machine.Effect) string {
	switch any(e).(type) { // of all effects, only these are about tokens
	case machine.EnsureToken:
		return "make a bootstrap token for machine " + p.Key.String()
	case machine.RenewToken:
		return "prolong the bootstrap token of machine " + p.Key.String()
	}
	return "delete the bootstrap token of machine " + p.Key.String()
}

// nodeDeletion names the first change of a node's deletion, which takes our finalizer off first.
func (p *pass) nodeDeletion(e machine.DeleteNode) string {
	if n := p.o.Node; n != nil && n.Node != nil && n.Node.UID == e.UID && n.Node.HasFinalizer(machine.NodeFinalizer) {
		return "update node " + e.Name
	}
	return "delete node " + e.Name
}

// syncNode writes a node, or as much of it as the server accepts.
func (p *pass) syncNode(ctx context.Context, e *machine.SyncNode) (*machine.Outcome, error) {
	began, version := p.Now(), e.Node.Version
	node, err := p.writeNode(ctx, e, e.Node, &version)
	refusal := err
	for _, rest := range e.Rest {
		if code := engine.CodeOf(err); code != codes.InvalidArgument && code != codes.PermissionDenied {
			break
		}
		less := *rest
		less.Applied.Refused.Code = engine.CodeOf(refusal)
		less.Applied.Refused.Message, _ = codes.Bounded(codes.Message(refusal))
		node, err = p.writeNode(ctx, e, &less, &version)
	}
	if err == nil {
		p.noteWrites(p.o.NodeWrites.With(e, began))
	}
	return p.nodeWritten(ctx, node, began, err)
}

// noteWrites remembers what was written to the node.
func (p *pass) noteWrites(all machine.NodeWrites) {
	p.o.NodeWrites = all
	p.written.Change(p.Key, func(w *machine.NodeWrites) { *w = all })
}

// writeNode writes those halves of a node that differ: capacity first, then the rest with the record of
// what was applied, so that the record never claims more than was done.
func (p *pass) writeNode(ctx context.Context, e *machine.SyncNode, node *machine.Node, version *string) (*machine.Node, error) {
	changed := *node // the store takes its own copy
	changed.Version = *version
	written := &changed
	var err error
	if e.Capacity {
		if written, err = p.Nodes.UpdateStatus(ctx, &changed); err != nil {
			return written, err
		}
		changed.Version, *version = written.Version, written.Version
	}
	if e.Spec {
		written, err = p.Nodes.Update(ctx, &changed)
	}
	return written, err
}

func (p *pass) markNode(ctx context.Context, e *machine.MarkNode) (*machine.Outcome, error) {
	changed := *e.Node // the store takes its own copy
	changed.Conditions = object.SetCondition(changed.Conditions, e.Condition)
	began := p.Now()
	node, err := p.Nodes.UpdateStatus(ctx, &changed)
	if err == nil {
		p.noteWrites(p.o.NodeWrites.Marked(e, began))
	}
	return p.nodeWritten(ctx, node, began, err)
}

// nodeWritten returns the outcome of a write of a node. After somebody else's write
// the pass begins again; all other failures are left to the decision.
func (p *pass) nodeWritten(ctx context.Context, node *machine.Node, began time.Time, err error) (*machine.Outcome, error) {
	switch {
	case err == nil:
		p.o.Node = &machine.NodeAnswer{Name: p.o.Node.Name, Node: node, ClaimedBy: p.o.Node.ClaimedBy, Gone: p.o.Node.Gone, Read: p.Freshness(began, true)}
		return &machine.Outcome{}, nil
	case errors.Is(err, store.ErrConflict) || engine.Interrupted(ctx, err) != nil:
		return nil, err
	case errors.Is(err, store.ErrNotFound):
		return nil, fmt.Errorf("node %s vanished: %w", p.o.Node.Name, store.ErrConflict)
	}
	return &machine.Outcome{Code: engine.CodeOf(err), Message: codes.Message(err)}, nil
}
