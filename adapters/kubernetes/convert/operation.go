package convert

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// extra is the part of an operation that has no field in the established kind. It counts only for the
// operation with the time At: once another manager has written a later operation, it is void.
type extra struct {
	At time.Time
	// Stage and Message are set if they can't be read exactly from the description.
	Stage   *machine.Stage
	Message *string
	Forced  bool
	Against machine.Inputs
	// NeverCreated and OnlyRefused are fields of a machine's status. They are here because another
	// manager may create the VM later, which must make them void.
	NeverCreated, OnlyRefused bool
}

// belongsTo reports whether e is about that operation.
func (e *extra) belongsTo(op *machine.Operation) bool { return e.At.Equal(op.Time) }

func readOperation(p *problems, field string, o *v1alpha1.LastOperation, e *extra) machine.Operation {
	op := machine.Operation{
		Kind: machine.OperationKind(o.Type), State: machine.OperationState(o.State), Time: instant(o.LastUpdateTime),
	}
	if o.ErrorCode != "" {
		code, known := codes.Parse(o.ErrorCode)
		if op.Code = code; !known {
			p.add(field+".errorCode", "is unknown: "+o.ErrorCode)
		}
	}
	op.Stage, op.Message = parseStage(op.Kind, op.State, o.Description)
	if !e.belongsTo(&op) {
		return op
	}
	if e.Stage != nil && e.Message != nil {
		exact := op
		exact.Stage, exact.Message = *e.Stage, *e.Message
		if formatStage(&exact) != o.Description {
			return op
		}
		op = exact
	}
	op.Forced, op.Against = e.Forced, e.Against
	return op
}

// writeOperation writes an operation to o, and returns the part that o has no field for, added to more.
func writeOperation(o *v1alpha1.LastOperation, was, now *machine.Operation, more extra) extra {
	put(&o.Type, v1alpha1.MachineOperationType(was.Kind), v1alpha1.MachineOperationType(now.Kind))
	put(&o.State, v1alpha1.MachineState(was.State), v1alpha1.MachineState(now.State))
	o.LastUpdateTime = metav1.NewTime(now.Time)
	put(&o.ErrorCode, storedCode(was.Code), storedCode(now.Code))

	e := more
	e.Forced, e.Against = now.Forced, now.Against
	stage, message := parseStage(now.Kind, now.State, o.Description)
	if stage != now.Stage || message != now.Message || o.Description == "" {
		o.Description = formatStage(now)
		stage, message = parseStage(now.Kind, now.State, o.Description)
	}
	if stage != now.Stage || message != now.Message {
		e.Stage, e.Message = &now.Stage, &now.Message
	}
	if e != (extra{}) {
		e.At = now.Time
	}
	return e
}

// storedCode returns a code as it is stored. Success is not stored.
func storedCode(c codes.Code) string {
	if c == codes.OK {
		return ""
	}
	return c.String()
}

func readSummaries(p *problems, list []v1alpha1.MachineSummary, extras []extra) []machineset.FailedMachine {
	if len(list) == 0 {
		return nil
	}
	out := make([]machineset.FailedMachine, len(list))
	for i := range list {
		s, e := &list[i], extra{}
		if len(extras) == len(list) {
			e = extras[i]
		}
		out[i] = machineset.FailedMachine{
			Name: s.Name, ProviderID: s.ProviderID, Owner: s.OwnerRef,
			LastOperation: readOperation(p, "status.failedMachines.lastOperation", &s.LastOperation, &e),
		}
	}
	return out
}

// writeSummaries returns the stored list of failed machines, and the parts of their operations that it
// has no fields for, or nil if there are none.
func writeSummaries(all []machineset.FailedMachine) ([]v1alpha1.MachineSummary, []extra) {
	list, extras := make([]v1alpha1.MachineSummary, len(all)), make([]extra, len(all))
	needed := false
	for i := range all {
		s := &all[i]
		list[i] = v1alpha1.MachineSummary{Name: s.Name, ProviderID: s.ProviderID, OwnerRef: s.Owner}
		extras[i] = writeOperation(&list[i].LastOperation, &machine.Operation{}, &s.LastOperation, extra{})
		needed = needed || extras[i] != extra{}
	}
	if !needed {
		return list, nil
	}
	return list, extras
}
