package cluster

import (
	"context"
	"encoding/json"
	"errors"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/kubernetes"
	clientcache "k8s.io/client-go/tools/cache"

	"github.com/millwright-go/millwright/adapters/kubernetes/convert"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/object"
)

// errUnread is returned until the cache of attachments is filled.
var errUnread = errors.New("the volume attachments were not read yet")

// volumes implements drains.Volumes.
type volumes struct {
	client      kubernetes.Interface
	volumes     clientcache.SharedIndexInformer
	attachments clientcache.SharedIndexInformer
	node        func(object.Key) (*corev1.Node, bool) // from the cache
}

func newVolumes(client kubernetes.Interface, node func(object.Key) (*corev1.Node, bool)) *volumes {
	v := &volumes{client: client, node: node}
	v.volumes = newInformer(client.CoreV1().RESTClient(), "persistentvolumes", &corev1.PersistentVolume{}, nil, clientcache.Indexers{
		byClaim: func(obj any) ([]string, error) {
			if pv, ok := obj.(*corev1.PersistentVolume); ok && pv.Spec.ClaimRef != nil && pv.Status.Phase == corev1.VolumeBound {
				return []string{convert.Volume(pv).Claim.String()}, nil
			}
			return nil, nil
		},
	})
	v.attachments = newInformer(client.StorageV1().RESTClient(), "volumeattachments", &storagev1.VolumeAttachment{}, nil, clientcache.Indexers{
		byNode: func(obj any) ([]string, error) { return nodesOf(obj), nil },
		byVolume: func(obj any) ([]string, error) {
			if a, ok := obj.(*storagev1.VolumeAttachment); ok {
				return []string{convert.Attachment(a).Volume}, nil
			}
			return nil, nil
		},
	})
	return v
}

// Bound implements drains.Volumes.
func (v *volumes) Bound(ctx context.Context, claims []object.Key) ([]*drain.Volume, bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	complete := v.volumes.HasSynced()
	var out []*drain.Volume
	for _, claim := range distinct(claims) {
		found, err := v.volumes.GetIndexer().ByIndex(byClaim, claim.String())
		if err != nil {
			return nil, false, err
		}
		for _, obj := range found {
			if pv, ok := obj.(*corev1.PersistentVolume); ok {
				out = append(out, convert.Volume(pv))
			}
		}
	}
	return out, complete, nil
}

// spec returns the spec of a volume in the cache, as JSON.
func (v *volumes) spec(name string) []byte {
	obj, _, _ := v.volumes.GetIndexer().GetByKey(name) // the cache is in memory: no error
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok {
		return nil
	}
	text, err := json.Marshal(&pv.Spec)
	if err != nil {
		return nil
	}
	return text
}

// VolumeAttachments implements drains.Volumes.
func (v *volumes) VolumeAttachments(ctx context.Context, node string, of []string) ([]*drain.Attachment, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !v.attachments.HasSynced() {
		return nil, errUnread
	}
	out, seen := []*drain.Attachment{}, map[string]bool{}
	add := func(index, value string) error {
		found, err := v.attachments.GetIndexer().ByIndex(index, value)
		for _, obj := range found {
			if a, ok := obj.(*storagev1.VolumeAttachment); ok && !seen[a.Name] {
				seen[a.Name] = true
				out = append(out, convert.Attachment(a))
			}
		}
		return err
	}
	err := add(byNode, node)
	for _, volume := range of {
		err = errors.Join(err, add(byVolume, volume))
	}
	return out, err
}

// VolumesAttached implements drains.Volumes.
func (v *volumes) VolumesAttached(ctx context.Context, node string) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	raw, found := v.node(object.Key{Name: node})
	if !found {
		return nil, nil
	}
	names := make([]string, 0, len(raw.Status.VolumesAttached))
	for _, a := range raw.Status.VolumesAttached {
		names = append(names, string(a.Name))
	}
	return names, nil
}

// Detach implements drains.Volumes.
func (v *volumes) Detach(ctx context.Context, attachment string) (drain.Answer, error) {
	err := v.client.StorageV1().RESTClient().Delete().MaxRetries(0).
		Resource("volumeattachments").Name(attachment).Do(ctx).Error()
	return answerTo(err)
}

// distinct drops repeated keys: several pods may use one claim.
func distinct(keys []object.Key) []object.Key {
	seen := make(map[object.Key]bool, len(keys))
	var out []object.Key
	for _, k := range keys {
		if !seen[k] {
			seen[k] = true
			out = append(out, k)
		}
	}
	return out
}
