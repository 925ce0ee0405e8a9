package machines

import (
	"reflect"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
)

// verb says whether an effect changes something outside of this process. A question for a grant is a pass
// of its own, whose writes are held by themselves.
func (p *pass) verb(e machine.Effect) engine.Verb {
	switch e.(type) {
	case machine.GetVM, machine.FindNode, machine.AskGrant, machine.AskCreate, machine.AskUpdate:
		return engine.Look
	case machine.CreateVM:
		if p.mute.create {
			return engine.Look
		}
	case machine.InitializeVM, machine.DeleteVM, machine.UpdateVM:
		if p.mute.any {
			return engine.Look
		}
	case *machine.SyncNode, *machine.MarkNode, machine.DeleteNode, *machine.DrainNode, *machine.DetachVolumes,
		machine.EnsureToken, machine.RenewToken, machine.RemoveToken:
	}
	return engine.Act
}

// mark is what makes two marks of a node the same: it may be said to be drained, and then to be ready.
type mark struct{ typ, reason string }

// once is what makes two effects of a pass the same: their type, and what a value says.
func once(e machine.Effect) any {
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

// change is what an effect would change first.
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

// tokenChange is change for an effect on the bootstrap token.
func (p *pass) tokenChange(e machine.Effect) string {
	switch any(e).(type) { // of all effects, only these are about tokens
	case machine.EnsureToken:
		return "make a bootstrap token for machine " + p.Key.String()
	case machine.RenewToken:
		return "prolong the bootstrap token of machine " + p.Key.String()
	}
	return "delete the bootstrap token of machine " + p.Key.String()
}

// nodeDeletion is change for a node's deletion, which takes our finalizer off first.
func (p *pass) nodeDeletion(e machine.DeleteNode) string {
	if n := p.o.Node; n != nil && n.Node != nil && n.Node.UID == e.UID && n.Node.HasFinalizer(machine.NodeFinalizer) {
		return "update node " + e.Name
	}
	return "delete node " + e.Name
}
