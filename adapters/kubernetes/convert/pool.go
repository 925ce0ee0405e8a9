package convert

import (
	"slices"

	pools "github.com/millwright-go/millwright/adapters/kubernetes/api/pools/v1alpha1"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

// Pools translates pools. Their kind belongs to this project, so it has a field for everything, and
// needs no records.
func Pools(keys Keys) *Kind[*pools.MachinePool, *machinepool.Pool] {
	return &Kind[*pools.MachinePool, *machinepool.Pool]{
		name: "pool", keys: keys,
		empty: func() *pools.MachinePool { return &pools.MachinePool{} },
		clone: (*pools.MachinePool).DeepCopy,
		blank: func() *machinepool.Pool { return &machinepool.Pool{} },
		read:  readPool, write: writePool, writeStatus: writePoolStatus,
	}
}

func readPool(r *reader, w *pools.MachinePool, p *machinepool.Pool) {
	p.Spec = machinepool.Spec{
		ClusterName: w.Spec.ClusterName, Replicas: copied(w.Spec.Replicas), MinReady: secondsOf(w.Spec.MinReadySeconds),
		FailureDomains: slices.Clone(w.Spec.FailureDomains), RollingUpdate: r.rollingUpdate("spec.rollingUpdate", w.Spec.RollingUpdate),
		Template:    readPoolTemplate(&w.Spec.Template),
		ProviderIDs: slices.Clone(w.Spec.ProviderIDs),
	}
	readPoolStatus(r, &w.Status, &p.Status)
}

func writePool(_ *writer, w *pools.MachinePool, was, now *machinepool.Pool) {
	a, b, out := &was.Spec, &now.Spec, &w.Spec
	put(&out.ClusterName, a.ClusterName, b.ClusterName)
	if !same(a.Replicas, b.Replicas) {
		out.Replicas = copied(b.Replicas)
	}
	put(&out.MinReadySeconds, wholeSeconds(a.MinReady), wholeSeconds(b.MinReady))
	putList(&out.FailureDomains, a.FailureDomains, b.FailureDomains)
	putRollingUpdate(&out.RollingUpdate, a.RollingUpdate, b.RollingUpdate)
	writePoolTemplate(&out.Template, &a.Template, &b.Template)
	putList(&out.ProviderIDs, a.ProviderIDs, b.ProviderIDs)
}

func (r *reader) rollingUpdate(field string, w *pools.MachinePoolRollingUpdate) *machinepool.RollingUpdate {
	if w == nil {
		return nil
	}
	return &machinepool.RollingUpdate{
		MaxSurge:       r.bound(field+".maxSurge", w.MaxSurge, rollout.IntOrPercent{}),
		MaxUnavailable: r.bound(field+".maxUnavailable", w.MaxUnavailable, rollout.IntOrPercent{}),
	}
}

func putRollingUpdate(w **pools.MachinePoolRollingUpdate, was, now *machinepool.RollingUpdate) {
	switch {
	case same(was, now):
		return
	case now == nil:
		*w = nil
		return
	case was == nil:
		*w, was = &pools.MachinePoolRollingUpdate{}, &machinepool.RollingUpdate{}
	}
	putBound(&(*w).MaxSurge, was.MaxSurge, now.MaxSurge)
	putBound(&(*w).MaxUnavailable, was.MaxUnavailable, now.MaxUnavailable)
}

// putList replaces a list that differs.
func putList[T comparable](field *[]T, was, now []T) {
	if !slices.Equal(was, now) {
		*field = slices.Clone(now)
	}
}

func readPoolTemplate(w *pools.MachinePoolTemplate) machinepool.Template {
	t := machinepool.Template{
		Class:        machine.ClassRef{APIGroup: w.Class.APIGroup, Kind: w.Class.Kind, Name: w.Class.Name},
		NodeTemplate: machine.NodeTemplate{Labels: without(w.NodeTemplate.Labels, nil), Annotations: without(w.NodeTemplate.Annotations, nil)},
		Bootstrap:    machinepool.Bootstrap{Config: w.Bootstrap.Config, DataSecret: copied(w.Bootstrap.DataSecret)},
	}
	for _, taint := range w.NodeTemplate.Taints {
		t.NodeTemplate.Taints = append(t.NodeTemplate.Taints, object.Taint{
			Key: taint.Key, Value: taint.Value, Effect: object.TaintEffect(taint.Effect),
		})
	}
	return t
}

func writePoolTemplate(w *pools.MachinePoolTemplate, was, now *machinepool.Template) {
	put(&w.Class.APIGroup, was.Class.APIGroup, now.Class.APIGroup)
	put(&w.Class.Kind, was.Class.Kind, now.Class.Kind)
	put(&w.Class.Name, was.Class.Name, now.Class.Name)
	a, b, node := &was.NodeTemplate, &now.NodeTemplate, &w.NodeTemplate
	putEntries(&node.Labels, a.Labels, b.Labels, nil)
	putEntries(&node.Annotations, a.Annotations, b.Annotations, nil)
	if !slices.Equal(a.Taints, b.Taints) {
		node.Taints = nil
		for _, t := range b.Taints {
			node.Taints = append(node.Taints, pools.MachinePoolTaint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
		}
	}
	put(&w.Bootstrap.Config, was.Bootstrap.Config, now.Bootstrap.Config)
	if !same(was.Bootstrap.DataSecret, now.Bootstrap.DataSecret) {
		w.Bootstrap.DataSecret = copied(now.Bootstrap.DataSecret)
	}
}
