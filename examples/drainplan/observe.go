package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// mirrorAnnotation marks the API object of a static pod.
const mirrorAnnotation = "kubernetes.io/config.mirror"

// unschedulable is the key of the taint that cordoned nodes have.
const unschedulable = "node.kubernetes.io/unschedulable"

// observation returns what a drain of the node would see.
func (c *cluster) observation(name string) (*drain.Observation, error) {
	node, err := c.node(name)
	if err != nil {
		return nil, err
	}
	o := &drain.Observation{Node: node.convert(), Complete: true}
	uids := map[string]bool{}
	for _, p := range c.pods {
		if p.Spec.NodeName != node.Metadata.Name {
			continue
		}
		pod := p.convert()
		if pod.UID == "" || uids[pod.UID] {
			pod.UID = pod.Key.String() // a dump may lack UIDs, or have some twice
		}
		uids[pod.UID] = true
		o.Pods = append(o.Pods, pod)
	}
	for _, b := range c.budgets {
		o.Budgets = append(o.Budgets, b.convert())
	}
	for _, v := range c.volumes {
		o.Volumes = append(o.Volumes, v.convert(c.claimOf(v)))
	}
	for _, a := range c.attachments {
		o.Attachments = append(o.Attachments, &drain.Attachment{
			Name: a.Metadata.Name, Volume: a.Spec.Source.PersistentVolumeName, Node: a.Spec.NodeName,
			Attached: a.Status.Attached, DeletedAt: a.Metadata.DeletionTimestamp,
		})
	}
	for _, v := range node.Status.VolumesAttached {
		o.Attached = append(o.Attached, v.Name)
	}
	return o, nil
}

// node returns the node with a name. An empty name means the only node of the dump. A node that is
// missing in the dump is accepted if the dump has pods on it.
func (c *cluster) node(name string) (*kubeNode, error) {
	if name == "" {
		switch len(c.nodes) {
		case 0:
			return nil, errors.New("there is no node in the dump; -node names one that is not")
		case 1:
			return c.nodes[0], nil
		}
		var names []string
		for _, n := range c.nodes {
			names = append(names, n.Metadata.Name)
		}
		slices.Sort(names)
		return nil, fmt.Errorf("there are %d nodes in the dump, name one by -node: %s", len(names), strings.Join(names, ", "))
	}
	for _, n := range c.nodes {
		if n.Metadata.Name == name {
			return n, nil
		}
	}
	known := slices.ContainsFunc(c.pods, func(p *kubePod) bool { return p.Spec.NodeName == name })
	if !known {
		return nil, fmt.Errorf("neither node %s nor a pod on it is in the dump", name)
	}
	return &kubeNode{Metadata: metadata{Name: name}}, nil
}

func (m *metadata) convert() object.Meta {
	meta := object.Meta{
		Key: object.Key{Namespace: m.Namespace, Name: m.Name}, UID: m.UID, Generation: m.Generation,
		CreatedAt: m.CreationTimestamp, Labels: m.Labels, Annotations: m.Annotations,
	}
	for _, o := range m.OwnerReferences {
		if o.Controller {
			meta.Owner = &object.Owner{Kind: qualified(o.APIVersion, o.Kind), Name: o.Name, UID: o.UID}
		}
	}
	return meta
}

// qualified returns the name of a kind, followed by the API group if that is not one of Kubernetes' own.
func qualified(apiVersion, kind string) string {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found || group == "apps" || group == "batch" || group == "extensions" {
		return kind
	}
	return kind + "." + group
}

func (n *kubeNode) convert() *machine.Node {
	node := &machine.Node{
		Meta: n.Metadata.convert(), ProviderID: n.Spec.ProviderID, Unschedulable: n.Spec.Unschedulable, Taints: n.Spec.Taints,
	}
	for _, c := range n.Status.Conditions {
		node.Conditions = append(node.Conditions, object.Condition{
			Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime,
		})
	}
	return node
}

func (p *kubePod) convert() *drain.Pod {
	meta := p.Metadata.convert()
	pod := &drain.Pod{
		Key: meta.Key, UID: meta.UID, Owner: meta.Owner, Labels: meta.Labels, Annotations: meta.Annotations, CreatedAt: meta.CreatedAt,
		Priority: p.Spec.Priority, Finished: p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed",
		Pending: p.Status.Phase == "Pending",
		Grace:   30 * time.Second, GraceEnds: p.Metadata.DeletionTimestamp,
	}
	for _, c := range p.Status.Conditions { // a pod without the condition counts as ready
		pod.NotReady = pod.NotReady || c.Type == "Ready" && c.Status != object.True
	}
	_, pod.Mirror = p.Metadata.Annotations[mirrorAnnotation]
	if s := cmp.Or(p.Metadata.DeletionGracePeriodSeconds, p.Spec.TerminationGracePeriodSeconds); s != nil {
		const longest = 10 * 365 * 24 * 3600 // in seconds; much longer ones would overflow
		pod.Grace = time.Duration(min(max(*s, -1), longest)) * time.Second
	}
	pod.ToleratesCordon = slices.ContainsFunc(p.Spec.Tolerations, toleratesCordon)
	for _, v := range p.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			pod.Claims = append(pod.Claims, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			pod.Claims = append(pod.Claims, drain.EphemeralClaim(pod.Name, v.Name))
		}
	}
	return pod
}

// toleratesCordon reports whether a toleration matches the taint of cordoned nodes, with effect
// NoSchedule.
func toleratesCordon(t kubeToleration) bool {
	if t.Effect != "" && t.Effect != "NoSchedule" {
		return false
	}
	exists := t.Operator == "Exists"
	equal := (t.Operator == "" || t.Operator == "Equal") && t.Value == ""
	return t.Key == "" && exists || t.Key == unschedulable && (exists || equal)
}

func (b *kubeBudget) convert() *drain.Budget {
	budget := &drain.Budget{
		Key:        object.Key{Namespace: b.Metadata.Namespace, Name: b.Metadata.Name},
		Generation: b.Metadata.Generation, ObservedGeneration: b.Status.ObservedGeneration,
		DisruptionsAllowed: b.Status.DisruptionsAllowed, CurrentHealthy: b.Status.CurrentHealthy,
		DesiredHealthy: b.Status.DesiredHealthy, ExpectedPods: b.Status.ExpectedPods, Disrupted: int32(min(len(b.Status.DisruptedPods), 1<<30)),
	}
	budget.AlwaysAllow = b.Spec.UnhealthyPodEvictionPolicy == "AlwaysAllow"
	if s := b.Spec.Selector; s != nil && !(b.APIVersion == "policy/v1beta1" && len(s.MatchLabels)+len(s.MatchExpressions) == 0) {
		budget.Selector = &object.Selector{Labels: s.MatchLabels, Requirements: s.MatchExpressions}
	}
	return budget
}

// claimOf returns the claim that a volume is bound to, by the volume's claimRef or the claim's
// volumeName.
func (c *cluster) claimOf(v *kubeVolume) object.Key {
	if ref := v.Spec.ClaimRef; ref != nil {
		return object.Key{Namespace: ref.Namespace, Name: ref.Name}
	}
	for _, claim := range c.claims {
		if claim.Spec.VolumeName == v.Metadata.Name {
			return object.Key{Namespace: claim.Metadata.Namespace, Name: claim.Metadata.Name}
		}
	}
	return object.Key{}
}

func (v *kubeVolume) convert(claim object.Key) *drain.Volume {
	volume := &drain.Volume{Name: v.Metadata.Name, Claim: claim, Local: v.Spec.Local != nil || v.Spec.HostPath != nil}
	switch {
	case v.Spec.CSI != nil:
		volume.Driver, volume.Handle = v.Spec.CSI.Driver, v.Spec.CSI.VolumeHandle
	case v.Spec.AWSElasticBlockStore != nil:
		volume.Handle = v.Spec.AWSElasticBlockStore.VolumeID
	case v.Spec.GCEPersistentDisk != nil:
		volume.Handle = v.Spec.GCEPersistentDisk.PDName
	case v.Spec.AzureDisk != nil:
		volume.Handle = v.Spec.AzureDisk.DiskName
	}
	return volume
}
