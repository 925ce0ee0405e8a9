package simulated

import (
	"context"
	"maps"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// poolLabel is a label on the nodes of instances with the name of their pool.
const poolLabel = "millwright-go/pool"

// ofPool puts on the node of an instance what its pool's nodes carry.
func ofPool(n *corev1.Node, v *VM) {
	if v.Pool == "" {
		return
	}
	if v.Node != nil {
		maps.Copy(n.Labels, v.Node.Labels)
		n.Annotations = maps.Clone(v.Node.Annotations)
		for _, t := range v.Node.Taints {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
		}
	}
	n.Labels[poolLabel] = filepath.Base(v.Pool)
}

// ofPools returns the nodes that instances have registered, of any provider.
func (n *nodes) ofPools(ctx context.Context) ([]corev1.Node, error) {
	list, err := n.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: poolLabel})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// retire deletes the nodes of instances that are gone. In a cluster, the part that knows the
// provider does this, because an instance has no machine that would. The nodes must have been read
// before the instances. Nodes of clusters that never had a group in this folder belong to another
// provider.
func (p *Provider) retire(ctx context.Context, registered []corev1.Node, instances map[string]VM) {
	for i := range registered {
		n := &registered[i]
		cluster, ours := ClusterOf(n.Spec.ProviderID)
		if _, there := instances[n.Spec.ProviderID]; there || !ours || !plain(cluster) {
			continue
		}
		if _, err := os.Stat(filepath.Join(string(p.disk), groupsFolder, cluster)); err != nil {
			continue
		}
		_ = p.nodes.client.CoreV1().Nodes().Delete(ctx, n.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(n.UID))})
	}
}
