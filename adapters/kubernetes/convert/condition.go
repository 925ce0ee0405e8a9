package convert

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/object"
)

// condition is a stored condition of any kind: the library's condition, and a time that only the
// stored one has (of the last heartbeat, or of the last update).
type condition struct {
	object.Condition
	extraTime metav1.Time
}

// conditions reads and writes the conditions of one kind.
type conditions[T any] struct {
	decode func(*T) condition
	encode func(condition) T
}

var nodeConditions = conditions[corev1.NodeCondition]{
	func(c *corev1.NodeCondition) condition {
		return condition{plain(c.Type, c.Status, c.LastTransitionTime, c.Reason, c.Message), c.LastHeartbeatTime}
	},
	func(c condition) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type: corev1.NodeConditionType(c.Type), Status: corev1.ConditionStatus(c.Status),
			LastTransitionTime: metav1.NewTime(c.Since), LastHeartbeatTime: c.extraTime, Reason: c.Reason, Message: c.Message,
		}
	},
}

var setConditions = conditions[v1alpha1.MachineSetCondition]{
	func(c *v1alpha1.MachineSetCondition) condition {
		return condition{plain(c.Type, c.Status, c.LastTransitionTime, c.Reason, c.Message), metav1.Time{}}
	},
	func(c condition) v1alpha1.MachineSetCondition {
		return v1alpha1.MachineSetCondition{
			Type: v1alpha1.MachineSetConditionType(c.Type), Status: v1alpha1.ConditionStatus(c.Status),
			LastTransitionTime: metav1.NewTime(c.Since), Reason: c.Reason, Message: c.Message,
		}
	},
}

var deploymentConditions = conditions[v1alpha1.MachineDeploymentCondition]{
	func(c *v1alpha1.MachineDeploymentCondition) condition {
		return condition{plain(c.Type, c.Status, c.LastTransitionTime, c.Reason, c.Message), c.LastUpdateTime}
	},
	func(c condition) v1alpha1.MachineDeploymentCondition {
		return v1alpha1.MachineDeploymentCondition{
			Type: v1alpha1.MachineDeploymentConditionType(c.Type), Status: v1alpha1.ConditionStatus(c.Status),
			LastTransitionTime: metav1.NewTime(c.Since), LastUpdateTime: c.extraTime, Reason: c.Reason, Message: c.Message,
		}
	},
}

func plain[T, S ~string](typ T, status S, since metav1.Time, reason, message string) object.Condition {
	return object.Condition{
		Type: string(typ), Status: object.ConditionStatus(status), Reason: reason, Message: message, Since: instant(since),
	}
}

// read returns all conditions of a list.
func (k conditions[T]) read(list []T) (all []object.Condition) {
	for i := range list {
		all = append(all, k.decode(&list[i]).Condition)
	}
	return all
}

// write changes the list if the conditions differ.
func (k conditions[T]) write(list *[]T, was, now []object.Condition) {
	if slices.EqualFunc(was, now, sameCondition) {
		return
	}
	var out []T
	for _, c := range now {
		out = append(out, k.encode(condition{c, k.extraTime(*list, c)}))
	}
	*list = out
}

// splitRecord separates the conditions of a machine from the condition with its record; see RecordType.
func splitRecord(all []object.Condition) (others []object.Condition, record string) {
	for _, c := range all {
		if c.Type == RecordType {
			record = c.Message
			continue
		}
		others = append(others, c)
	}
	return others, record
}

// withRecord is the reverse of splitRecord. For an empty record it adds no condition.
func withRecord(others []object.Condition, record string) []object.Condition {
	all, _ := splitRecord(others)
	if record == "" {
		return all
	}
	return append(all, object.Condition{Type: RecordType, Status: object.True, Reason: "Record", Message: record})
}

// extraTime returns the extra time to store with a condition. An unchanged condition keeps its own. For
// a new or changed one it is Since, but not earlier than the extra time that is stored.
func (k conditions[T]) extraTime(list []T, c object.Condition) metav1.Time {
	latest := metav1.NewTime(c.Since)
	for i := range list {
		old := k.decode(&list[i])
		if sameCondition(old.Condition, c) {
			return old.extraTime
		}
		if old.Type == c.Type && latest.Before(&old.extraTime) {
			latest = old.extraTime
		}
	}
	return latest
}

// sameCondition compares conditions, their times as instants.
func sameCondition(a, b object.Condition) bool {
	since := b.Since
	b.Since = a.Since
	return a == b && a.Since.Equal(since)
}
