package convert

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/object"
)

// Pod returns a pod as a drain sees it. The result shares no memory with w.
func Pod(w *corev1.Pod) *drain.Pod {
	p := &drain.Pod{
		Key: key(w), UID: string(w.UID), Owner: podOwner(w),
		Labels: without(w.Labels, nil), Annotations: without(w.Annotations, nil),
		Finished:  w.Status.Phase == corev1.PodSucceeded || w.Status.Phase == corev1.PodFailed,
		Pending:   w.Status.Phase == corev1.PodPending,
		NotReady:  !slices.ContainsFunc(w.Status.Conditions, Ready),
		CreatedAt: instant(w.CreationTimestamp),
		GraceEnds: deletion(w),
	}
	_, p.Mirror = w.Annotations[corev1.MirrorPodAnnotationKey]
	if w.Spec.Priority != nil {
		p.Priority = *w.Spec.Priority
	}
	p.Grace = corev1.DefaultTerminationGracePeriodSeconds * time.Second
	if s := cmp.Or(w.DeletionGracePeriodSeconds, w.Spec.TerminationGracePeriodSeconds); s != nil {
		p.Grace = seconds(*s)
	}
	p.ToleratesCordon = slices.ContainsFunc(w.Spec.Tolerations, ToleratesCordon)
	for i := range w.Spec.Volumes {
		switch v := &w.Spec.Volumes[i]; {
		case v.PersistentVolumeClaim != nil:
			p.Claims = append(p.Claims, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			p.Claims = append(p.Claims, drain.EphemeralClaim(w.Name, v.Name))
		}
	}
	return p
}

// Ready reports whether this condition says that its pod is ready. Disruption budgets count ready pods
// in the same way.
func Ready(c corev1.PodCondition) bool {
	return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
}

// ToleratesCordon reports whether a pod with this toleration may be bound to a cordoned node: whether
// it matches the taint node.kubernetes.io/unschedulable:NoSchedule, which has no value.
func ToleratesCordon(t corev1.Toleration) bool {
	effect := t.Effect == "" || t.Effect == corev1.TaintEffectNoSchedule
	key := t.Key == corev1.TaintNodeUnschedulable || t.Key == "" && t.Operator == corev1.TolerationOpExists
	equal := (t.Operator == "" || t.Operator == corev1.TolerationOpEqual) && t.Value == ""
	return effect && key && (t.Operator == corev1.TolerationOpExists || equal)
}

// seconds returns n seconds, or the nearest duration that does not overflow.
func seconds(n int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Second)
	return time.Duration(max(-most, min(n, most))) * time.Second
}

func key(w metav1.Object) object.Key {
	return object.Key{Namespace: w.GetNamespace(), Name: w.GetName()}
}

// deletion returns the deletion timestamp, or zero if no deletion was requested.
func deletion(w metav1.Object) time.Time {
	at := w.GetDeletionTimestamp()
	if at == nil {
		return time.Time{}
	}
	return instant(*at)
}

// controller returns the owner that controls an object.
func controller(w metav1.Object) *object.Owner {
	if o := metav1.GetControllerOfNoCopy(w); o != nil {
		return &object.Owner{Kind: o.Kind, Name: o.Name, UID: string(o.UID)}
	}
	return nil
}

// podOwner returns the controller of a pod. The API group is appended to its kind, unless the group is
// one of Kubernetes: a DaemonSet of apps.kruise.io is not the DaemonSet of apps.
func podOwner(w metav1.Object) *object.Owner {
	owner := controller(w)
	if owner == nil {
		return nil
	}
	group, _, found := strings.Cut(metav1.GetControllerOfNoCopy(w).APIVersion, "/")
	if found && group != "apps" && group != "batch" && group != "extensions" {
		owner.Kind += "." + group
	}
	return owner
}

// Budget returns a budget as a drain sees it.
func Budget(w *policyv1.PodDisruptionBudget) *drain.Budget {
	b := &drain.Budget{
		Key: key(w), Generation: w.Generation, ObservedGeneration: w.Status.ObservedGeneration,
		DisruptionsAllowed: w.Status.DisruptionsAllowed,
		CurrentHealthy:     w.Status.CurrentHealthy,
		DesiredHealthy:     w.Status.DesiredHealthy,
		ExpectedPods:       w.Status.ExpectedPods,
		Disrupted:          int32(min(len(w.Status.DisruptedPods), 1<<30)),
	}
	if policy := w.Spec.UnhealthyPodEvictionPolicy; policy != nil {
		b.AlwaysAllow = *policy == policyv1.AlwaysAllow
	}
	if w.Spec.Selector != nil {
		s := readSelector(w.Spec.Selector)
		b.Selector = &s
	}
	return b
}

// Volume returns a persistent volume as a drain sees it.
func Volume(w *corev1.PersistentVolume) *drain.Volume {
	v := &drain.Volume{Name: w.Name, Local: w.Spec.Local != nil || w.Spec.HostPath != nil}
	if claim := w.Spec.ClaimRef; claim != nil {
		v.Claim = object.Key{Namespace: claim.Namespace, Name: claim.Name}
	}
	v.Driver, v.Handle = attacher(&w.Spec.PersistentVolumeSource)
	return v
}

// attacher returns the driver that attaches a volume, and the driver's name for the volume. For volume
// kinds from before CSI it is the CSI driver that has replaced them. It returns nothing if no driver
// attaches the volume.
func attacher(s *corev1.PersistentVolumeSource) (driver, handle string) {
	switch {
	case s.CSI != nil:
		return s.CSI.Driver, s.CSI.VolumeHandle
	case s.AWSElasticBlockStore != nil:
		return "ebs.csi.aws.com", s.AWSElasticBlockStore.VolumeID
	case s.GCEPersistentDisk != nil:
		return "pd.csi.storage.gke.io", s.GCEPersistentDisk.PDName
	case s.AzureDisk != nil:
		return "disk.csi.azure.com", s.AzureDisk.DataDiskURI
	case s.Cinder != nil:
		return "cinder.csi.openstack.org", s.Cinder.VolumeID
	case s.VsphereVolume != nil:
		return "csi.vsphere.vmware.com", s.VsphereVolume.VolumePath
	}
	return "", ""
}

// Attachment returns an attachment as a drain sees it. If the volume is inline in the spec of a pod,
// Volume is empty.
func Attachment(w *storagev1.VolumeAttachment) *drain.Attachment {
	a := &drain.Attachment{Name: w.Name, Node: w.Spec.NodeName, Attached: w.Status.Attached, DeletedAt: deletion(w)}
	if name := w.Spec.Source.PersistentVolumeName; name != nil {
		a.Volume = *name
	}
	return a
}
