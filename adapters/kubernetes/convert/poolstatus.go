package convert

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pools "github.com/millwright-go/millwright/adapters/kubernetes/api/pools/v1alpha1"
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

func readPoolStatus(r *reader, w *pools.MachinePoolStatus, s *machinepool.Status) {
	*s = machinepool.Status{
		Phase: machinepool.Phase(w.Phase), Since: instant(w.Since), ObservedGeneration: w.ObservedGeneration,
		Replicas: w.Replicas, Ready: w.ReadyReplicas, Available: w.AvailableReplicas, Unavailable: w.UnavailableReplicas,
		BootstrapReady: w.BootstrapReady, InfrastructureReady: w.InfrastructureReady,
		FailureReason: machinepool.FailureReason(w.FailureReason), FailureMessage: w.FailureMessage,
		GroupID: w.GroupID, LastKnown: w.LastKnownState, NeverCreated: w.NeverCreated,
		Applied: machinepool.Applied{
			Template: readPoolTemplate(&w.Applied.Template), FailureDomains: slices.Clone(w.Applied.FailureDomains),
			RollingUpdate: r.rollingUpdate("status.applied.rollingUpdate", w.Applied.RollingUpdate),
			ClassUID:      w.Applied.ClassUID, ClassGeneration: w.Applied.ClassGeneration,
			Doubted: w.Applied.Doubted,
		},
		LastOperation: readPoolOperation(r, &w.LastOperation),
	}
	for _, c := range w.Conditions {
		s.Conditions = append(s.Conditions, plain(c.Type, c.Status, c.LastTransitionTime, c.Reason, c.Message))
	}
	for _, n := range w.NodeRefs {
		s.NodeRefs = append(s.NodeRefs, machinepool.NodeRef{ProviderID: n.ProviderID, Name: n.Name, UID: n.UID, ReadySince: instant(n.ReadySince)})
	}
	for _, l := range w.Leaving {
		s.Leaving = append(s.Leaving, machinepool.Leaving{ProviderID: l.ProviderID, Exit: machinepool.Exit(l.Exit), Since: instant(l.Since)})
	}
}

func readPoolOperation(r *reader, w *pools.MachinePoolOperation) machinepool.Operation {
	op := machinepool.Operation{
		Call: machinepool.Call(w.Call), State: machine.OperationState(w.State), Replicas: w.Replicas, Message: w.Message,
		Time:    instant(w.LastUpdateTime),
		Against: machinepool.Inputs{Pool: w.Against.Pool, Class: w.Against.Class, Secret: w.Against.Secret},
	}
	if w.ErrorCode != "" {
		code, known := codes.Parse(w.ErrorCode)
		if op.Code = code; !known {
			r.add("status.lastOperation.errorCode", "is unknown: "+w.ErrorCode)
		}
	}
	return op
}

func writePoolStatus(_ *writer, w *pools.MachinePool, was, now *machinepool.Pool) {
	a, b, out := &was.Status, &now.Status, &w.Status
	put(&out.Phase, string(a.Phase), string(b.Phase))
	putTime(&out.Since, a.Since, b.Since)
	put(&out.ObservedGeneration, a.ObservedGeneration, b.ObservedGeneration)
	put(&out.Replicas, a.Replicas, b.Replicas)
	put(&out.ReadyReplicas, a.Ready, b.Ready)
	put(&out.AvailableReplicas, a.Available, b.Available)
	put(&out.UnavailableReplicas, a.Unavailable, b.Unavailable)
	put(&out.BootstrapReady, a.BootstrapReady, b.BootstrapReady)
	put(&out.InfrastructureReady, a.InfrastructureReady, b.InfrastructureReady)
	put(&out.FailureReason, string(a.FailureReason), string(b.FailureReason))
	put(&out.FailureMessage, a.FailureMessage, b.FailureMessage)
	put(&out.GroupID, a.GroupID, b.GroupID)
	put(&out.LastKnownState, a.LastKnown, b.LastKnown)
	put(&out.NeverCreated, a.NeverCreated, b.NeverCreated)
	writePoolTemplate(&out.Applied.Template, &a.Applied.Template, &b.Applied.Template)
	putList(&out.Applied.FailureDomains, a.Applied.FailureDomains, b.Applied.FailureDomains)
	putRollingUpdate(&out.Applied.RollingUpdate, a.Applied.RollingUpdate, b.Applied.RollingUpdate)
	put(&out.Applied.ClassUID, a.Applied.ClassUID, b.Applied.ClassUID)
	put(&out.Applied.ClassGeneration, a.Applied.ClassGeneration, b.Applied.ClassGeneration)
	put(&out.Applied.Doubted, a.Applied.Doubted, b.Applied.Doubted)
	writePoolOperation(&out.LastOperation, &a.LastOperation, &b.LastOperation)
	writePoolLists(out, a, b)
}

// putTime sets a time. Fractions of a second are not stored.
func putTime(field *metav1.Time, was, now time.Time) {
	if !was.Equal(now) {
		*field = metav1.NewTime(now)
	}
}

func writePoolOperation(w *pools.MachinePoolOperation, was, now *machinepool.Operation) {
	put(&w.Call, string(was.Call), string(now.Call))
	put(&w.State, string(was.State), string(now.State))
	put(&w.Replicas, was.Replicas, now.Replicas)
	put(&w.ErrorCode, storedCode(was.Code), storedCode(now.Code))
	put(&w.Message, was.Message, now.Message)
	putTime(&w.LastUpdateTime, was.Time, now.Time)
	put(&w.Against.Pool, was.Against.Pool, now.Against.Pool)
	put(&w.Against.Class, was.Against.Class, now.Against.Class)
	put(&w.Against.Secret, was.Against.Secret, now.Against.Secret)
}

// writePoolLists replaces lists that differ, as a whole.
func writePoolLists(out *pools.MachinePoolStatus, a, b *machinepool.Status) {
	if !slices.EqualFunc(a.Conditions, b.Conditions, sameCondition) {
		out.Conditions = nil
		for _, c := range b.Conditions {
			out.Conditions = append(out.Conditions, poolCondition(c))
		}
	}
	if !slices.EqualFunc(a.NodeRefs, b.NodeRefs, sameNodeRef) {
		out.NodeRefs = nil
		for _, n := range b.NodeRefs {
			ref := pools.MachinePoolNode{ProviderID: n.ProviderID, Name: n.Name, UID: n.UID}
			putTime(&ref.ReadySince, time.Time{}, n.ReadySince)
			out.NodeRefs = append(out.NodeRefs, ref)
		}
	}
	if !slices.EqualFunc(a.Leaving, b.Leaving, sameLeaving) {
		out.Leaving = nil
		for _, l := range b.Leaving {
			out.Leaving = append(out.Leaving, pools.MachinePoolLeaving{
				ProviderID: l.ProviderID, Exit: string(l.Exit), Since: metav1.NewTime(l.Since),
			})
		}
	}
}

func poolCondition(c object.Condition) pools.MachinePoolCondition {
	return pools.MachinePoolCondition{
		Type: c.Type, Status: string(c.Status), LastTransitionTime: metav1.NewTime(c.Since), Reason: c.Reason, Message: c.Message,
	}
}

func sameNodeRef(a, b machinepool.NodeRef) bool {
	return a.ProviderID == b.ProviderID && a.Name == b.Name && a.UID == b.UID && a.ReadySince.Equal(b.ReadySince)
}

func sameLeaving(a, b machinepool.Leaving) bool {
	return a.ProviderID == b.ProviderID && a.Exit == b.Exit && a.Since.Equal(b.Since)
}
