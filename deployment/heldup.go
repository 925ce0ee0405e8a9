package deployment

import (
	"fmt"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// reportDrainAfter is how long a drain may wait for the same pods before the deployment reports it.
const reportDrainAfter = 2 * time.Minute

// reportRetriesAfter is how long a creation or deletion may fail, with errors for which a retry within seconds
// often helps, before the deployment reports it.
const reportRetriesAfter = time.Minute

// heldUp counts machines whose creation, update or deletion makes no progress. It reads only their stored last
// operations, so the count is the same after a restart.
type heldUp struct {
	count int
	first *machine.Machine // by name
}

// countHeldUp counts a machine whose last operation failed, or whose drain has waited for long.
func (d *state) countHeldUp(m *machine.Machine) {
	op := &m.Status.LastOperation
	switch {
	case m.Preserved(d.now) || d.isPaused(&m.Meta):
		return
	case op.State == machine.StateFailed:
		if at := quickRetryUntil(m); d.now.Before(at) {
			d.wakeBy(at)
			return
		}
	case op.State == machine.StateProcessing && op.Message != "" && isDrainStage(op.Stage):
		if at := op.Time.Add(reportDrainAfter); d.now.Before(at) {
			d.wakeBy(at)
			return
		}
	default:
		return
	}
	d.heldUp.count++
	if d.heldUp.first == nil || m.Name < d.heldUp.first.Name {
		d.heldUp.first = m
	}
}

// quickRetryUntil returns until when the failure of a creation or deletion is not reported, because a retry
// within seconds may help. Zero: it is not retried within seconds. The time counts from the beginning of the
// operation, so that the report does not come and go with each retry.
func quickRetryUntil(m *machine.Machine) time.Time {
	call, began := codes.CreateMachine, m.CreatedAt
	switch op := &m.Status.LastOperation; {
	case op.Kind == machine.OperationDelete:
		call, began = codes.DeleteMachine, m.DeletedAt
	case op.Kind != machine.OperationCreate:
		return time.Time{}
	}
	if r := codes.RecoveryFor(call, m.Status.LastOperation.Code); began.IsZero() || !r.AutoRetry && r.Quick == 0 {
		return time.Time{}
	}
	return began.Add(reportRetriesAfter)
}

// isDrainStage reports whether a node is drained in a stage.
func isDrainStage(stage machine.Stage) bool {
	return stage == machine.StageInitiateDrain || stage == machine.StageSelected
}

// heldUpBy begins the part of a condition's message about machines that are held up.
const heldUpBy = "; held up by "

// remark returns the part of a condition's message about machines that are held up. Empty: none is.
func (h *heldUp) remark() string {
	if h.count == 0 {
		return ""
	}
	return heldUpBy + h.String()
}

// String implements fmt.Stringer.
func (h *heldUp) String() string {
	op := &h.first.Status.LastOperation
	text := op.Message
	if code := op.Code.Contract(); op.Code != codes.OK && !strings.Contains(text, code) {
		text = code + ": " + text
	}
	text = fmt.Sprintf("machine %s: %s: %s", h.first.Name, op.Kind, text)
	if h.count > 1 {
		text = fmt.Sprintf("%d machines, such as %s", h.count, text)
	}
	return text
}

// why returns the event about machines that are held up. Zero: none is.
func (h *heldUp) why() decision.Why {
	if h.count == 0 {
		return decision.Why{}
	}
	return decision.Why{Reason: reasonHeldUp, Detail: h.String()}
}

// heldUpRemark returns what a stored status says about machines that are held up.
func heldUpRemark(d *Deployment) string {
	c := object.FindCondition(d.Status.Conditions, ConditionProgressing)
	if c == nil || d.Status.ObservedGeneration != d.Generation {
		return ""
	}
	_, by, found := strings.Cut(c.Message, heldUpBy)
	if !found {
		return ""
	}
	return heldUpBy + by
}

// Conditions that a deployment copies from its sets, each as long as one of them has it.
const (
	// ConditionCreationSlowed: the provider refuses to create machines of a class, so creations are
	// attempted one by one.
	ConditionCreationSlowed = machineset.ConditionCreationSlowed
	// ConditionReplacementSlowed: machines failed repeatedly before they ran, so their replacements
	// back off.
	ConditionReplacementSlowed = machineset.ConditionReplacementSlowed
)

// slowedConditions returns conditions with CreationSlowed and ReplacementSlowed as the new set has them, or
// else as the oldest set that has them.
func (d *state) slowedConditions(conditions []object.Condition) []object.Condition {
	for _, typ := range [...]string{ConditionCreationSlowed, ConditionReplacementSlowed} {
		found := d.current.condition(typ)
		for i := 0; i < len(d.sets) && found == nil; i++ {
			found = d.sets[i].condition(typ)
		}
		if found == nil {
			conditions = withoutCondition(conditions, typ)
			continue
		}
		c := *found
		c.Since = d.stamp()
		conditions = object.SetCondition(conditions, c)
	}
	return conditions
}

// withoutCondition returns conditions without the one of a type. It returns the same slice if there
// is none.
func withoutCondition(conditions []object.Condition, typ string) []object.Condition {
	if object.FindCondition(conditions, typ) == nil {
		return conditions
	}
	return object.DropCondition(conditions, typ)
}
