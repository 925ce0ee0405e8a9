package convert

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/object"
)

// condition is a stored condition of any kind: what the library knows of it, and a time besides (of
// the heartbeat, or of the last change).
type condition struct {
	object.Condition
	beside metav1.Time
}

// conditions say how to read and write the list of one kind.
type conditions[T any] struct {
	read  func(*T) condition
	write func(condition) T
}

var nodeConditions = conditions[corev1.NodeCondition]{
	func(c *corev1.NodeCondition) condition {
		return condition{plain(c.Type, c.Status, c.LastTransitionTime, c.Reason, c.Message), c.LastHeartbeatTime}
	},
	func(c condition) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type: corev1.NodeConditionType(c.Type), Status: corev1.ConditionStatus(c.Status),
			LastTransitionTime: metav1.NewTime(c.Since), LastHeartbeatTime: c.beside, Reason: c.Reason, Message: c.Message,
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
			LastTransitionTime: metav1.NewTime(c.Since), LastUpdateTime: c.beside, Reason: c.Reason, Message: c.Message,
		}
	},
}

func plain[T, S ~string](typ T, status S, since metav1.Time, reason, message string) object.Condition {
	return object.Condition{
		Type: string(typ), Status: object.ConditionStatus(status), Reason: reason, Message: message, Since: instant(since),
	}
}

// split separates the conditions from the message of RecordType.
func (k conditions[T]) split(list []T) (all []object.Condition, recorded string) {
	for i := range list {
		c := k.read(&list[i])
		if c.Type == RecordType {
			recorded = c.Message
			continue
		}
		all = append(all, c.Condition)
	}
	return all, recorded
}

// join changes the list if needed. A condition that was there keeps the time beside it, unless it
// has changed and is younger. A new one begins with the time of its status.
func (k conditions[T]) join(list *[]T, was, now []object.Condition, recorded string) {
	_, before := k.split(*list)
	if before == recorded && slices.EqualFunc(was, now, sameCondition) {
		return
	}
	var out []T
	for _, c := range now {
		if c.Type == RecordType {
			continue
		}
		out = append(out, k.write(condition{c, k.beside(*list, c)}))
	}
	if recorded != "" {
		out = append(out, k.write(condition{Condition: object.Condition{
			Type: RecordType, Status: object.True, Reason: "Record", Message: recorded,
		}}))
	}
	*list = out
}

// beside returns the time beside a condition that may be in the list already.
func (k conditions[T]) beside(list []T, c object.Condition) metav1.Time {
	latest := metav1.NewTime(c.Since)
	for i := range list {
		old := k.read(&list[i])
		if sameCondition(old.Condition, c) {
			return old.beside
		}
		if old.Type == c.Type && latest.Before(&old.beside) {
			latest = old.beside
		}
	}
	return latest
}

func sameCondition(a, b object.Condition) bool {
	since := b.Since
	b.Since = a.Since
	return a == b && a.Since.Equal(since)
}
