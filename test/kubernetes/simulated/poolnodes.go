package simulated

import (
	"context"
	"maps"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// poolLabel is the label on the nodes of instances that has the name of the pool.
const poolLabel = "millwright-go/pool"

// addPoolMeta adds the labels, annotations and taints of the pool to the node of an instance.
func addPoolMeta(n *corev1.Node, v *VM) {
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

// ofPools returns the nodes of instances, also those of other providers.
func (n *nodes) ofPools(ctx context.Context) ([]corev1.Node, error) {
	list, err := n.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: poolLabel})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// deleteNodes deletes the nodes of instances that are gone, as a cluster's cloud controller does: there
// is no machine whose deletion would delete the node. registered must have been read before instances. A
// node whose cluster never had a group in this folder belongs to another provider.
func (p *Provider) deleteNodes(ctx context.Context, registered []corev1.Node, instances map[string]VM) {
	for i := range registered {
		n := &registered[i]
		cluster, ours := ClusterOf(n.Spec.ProviderID)
		if _, exists := instances[n.Spec.ProviderID]; exists || !ours || !plain(cluster) {
			continue
		}
		if _, err := os.Stat(filepath.Join(string(p.disk), groupsFolder, cluster)); err != nil {
			continue
		}
		_ = p.nodes.client.CoreV1().Nodes().Delete(ctx, n.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(n.UID))})
	}
}
