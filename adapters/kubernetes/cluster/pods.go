package cluster

import (
	"context"
	"iter"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	clientcache "k8s.io/client-go/tools/cache"

	"github.com/millwright-go/millwright/adapters/kubernetes/apistore"
	"github.com/millwright-go/millwright/adapters/kubernetes/convert"
	"github.com/millwright-go/millwright/drain"
)

// These are the names of the indexes of the caches.
const (
	byNode      = "node"
	byNamespace = clientcache.NamespaceIndex
	byClaim     = "claim"
	byVolume    = "volume"
)

// pods implements drains.Pods. Its cache has the pods that are bound to a node.
type pods struct {
	client      kubernetes.Interface
	informer    clientcache.SharedIndexInformer
	attachments clientcache.SharedIndexInformer
}

func newPods(client kubernetes.Interface) *pods {
	bound := func(o *metav1.ListOptions) { o.FieldSelector = "spec.nodeName!=" }
	informer := newInformer(client.CoreV1().RESTClient(), "pods", &corev1.Pod{}, bound, clientcache.Indexers{
		byNode: func(obj any) ([]string, error) { return podNode(obj), nil },
	})
	// There may be many pods, so the cache keeps only the fields that a drain reads.
	_ = informer.SetTransform(func(obj any) (any, error) {
		if p, ok := obj.(*corev1.Pod); ok {
			return stripped(p), nil
		}
		return obj, nil
	})
	return &pods{client: client, informer: informer}
}

// newInformer returns a cache of the objects of a kind that pick selects, in all namespaces. Nil
// selects all.
func newInformer(client clientcache.Getter, resource string, kind apistore.Raw, pick func(*metav1.ListOptions), by clientcache.Indexers) clientcache.SharedIndexInformer {
	if pick == nil {
		pick = func(*metav1.ListOptions) {}
	}
	lw := clientcache.NewFilteredListWatchFromClient(client, resource, metav1.NamespaceAll, pick)
	return clientcache.NewSharedIndexInformer(lw, kind, 0, by)
}

func podNode(obj any) []string {
	if p, ok := obj.(*corev1.Pod); ok && p.Spec.NodeName != "" {
		return []string{p.Spec.NodeName}
	}
	return nil
}

// stripped reduces a pod to what drain.Pod has.
func stripped(p *corev1.Pod) *corev1.Pod {
	s := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
			CreationTimestamp: p.CreationTimestamp, DeletionTimestamp: p.DeletionTimestamp,
			DeletionGracePeriodSeconds: p.DeletionGracePeriodSeconds,
			Labels:                     p.Labels, Annotations: p.Annotations, OwnerReferences: p.OwnerReferences,
		},
		Spec: corev1.PodSpec{
			NodeName: p.Spec.NodeName, Priority: p.Spec.Priority,
			TerminationGracePeriodSeconds: p.Spec.TerminationGracePeriodSeconds,
		},
		Status: corev1.PodStatus{Phase: p.Status.Phase},
	}
	if slices.ContainsFunc(p.Status.Conditions, convert.Ready) {
		s.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	if i := slices.IndexFunc(p.Spec.Tolerations, convert.ToleratesCordon); i >= 0 {
		s.Spec.Tolerations = p.Spec.Tolerations[i : i+1]
	}
	for i := range p.Spec.Volumes {
		v := corev1.Volume{Name: p.Spec.Volumes[i].Name}
		switch from := &p.Spec.Volumes[i]; {
		case from.PersistentVolumeClaim != nil:
			v.PersistentVolumeClaim = from.PersistentVolumeClaim
		case from.Ephemeral != nil:
			v.Ephemeral = &corev1.EphemeralVolumeSource{} // the name of its claim follows from v.Name
		default:
			continue
		}
		s.Spec.Volumes = append(s.Spec.Volumes, v)
	}
	return s
}

// On implements drains.Pods.
func (p *pods) On(ctx context.Context, node string) ([]*drain.Pod, bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	complete := p.informer.HasSynced()
	found, err := p.informer.GetIndexer().ByIndex(byNode, node)
	if err != nil {
		return nil, false, err
	}
	out := make([]*drain.Pod, 0, len(found))
	for _, obj := range found {
		if pod, ok := obj.(*corev1.Pod); ok {
			out = append(out, convert.Pod(pod))
		}
	}
	return out, complete, nil
}

// Live implements drains.LivePods.
func (p *pods) Live(ctx context.Context, node string) ([]*drain.Pod, error) {
	bound := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()}
	found, err := p.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, bound)
	if err != nil {
		return nil, apistore.Translate(err)
	}
	out := make([]*drain.Pod, len(found.Items))
	for i := range found.Items {
		out[i] = convert.Pod(&found.Items[i])
	}
	return out, nil
}

// Watch implements drains.Pods. It also yields the nodes of attachments that change, because a
// drain waits for these too.
func (p *pods) Watch(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		changed := newChangedNodes()
		for _, informer := range []clientcache.SharedIndexInformer{p.informer, p.attachments} {
			handler, err := informer.AddEventHandler(changed)
			if err != nil {
				yield("", err)
				return
			}
			defer func() { _ = informer.RemoveEventHandler(handler) }()
		}
		for {
			for _, node := range changed.take() {
				if ctx.Err() != nil || !yield(node, nil) {
					return
				}
			}
			select {
			case <-changed.wake:
			case <-ctx.Done():
				return
			}
		}
	}
}

// nodesOf returns the nodes that an object of the workload belongs to.
func nodesOf(obj any) []string {
	if gone, ok := obj.(clientcache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	if a, ok := obj.(*storagev1.VolumeAttachment); ok {
		return []string{a.Spec.NodeName}
	}
	return podNode(obj)
}

// same reports whether a change makes no difference to a drain. A change of Pending or NotReady
// alone makes none: these change often, and only forecasts and texts about refused evictions use
// them.
func same(old, new any) bool {
	switch a := old.(type) {
	case *corev1.Pod:
		b, ok := new.(*corev1.Pod)
		if !ok {
			return false
		}
		was, is := convert.Pod(a), convert.Pod(b)
		was.Pending, was.NotReady = is.Pending, is.NotReady
		return a.Spec.NodeName == b.Spec.NodeName && reflect.DeepEqual(was, is)
	case *storagev1.VolumeAttachment:
		b, ok := new.(*storagev1.VolumeAttachment)
		return ok && *convert.Attachment(a) == *convert.Attachment(b)
	}
	return false
}
