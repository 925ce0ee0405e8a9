package cluster

import (
	"context"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/client-go/kubernetes"
	clientcache "k8s.io/client-go/tools/cache"

	"github.com/millwright-go/millwright/adapters/kubernetes/convert"
	"github.com/millwright-go/millwright/drain"
)

// budgets implements drains.Budgets.
type budgets struct {
	informer clientcache.SharedIndexInformer
}

func newBudgets(client kubernetes.Interface) *budgets {
	return &budgets{newInformer(client.PolicyV1().RESTClient(), "poddisruptionbudgets", &policyv1.PodDisruptionBudget{}, nil,
		clientcache.Indexers{byNamespace: clientcache.MetaNamespaceIndexFunc})}
}

// In implements drains.Budgets.
func (b *budgets) In(ctx context.Context, namespaces []string) ([]*drain.Budget, bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	complete := b.informer.HasSynced()
	var out []*drain.Budget
	for _, namespace := range namespaces {
		found, err := b.informer.GetIndexer().ByIndex(byNamespace, namespace)
		if err != nil {
			return nil, false, err
		}
		for _, obj := range found {
			if budget, ok := obj.(*policyv1.PodDisruptionBudget); ok {
				out = append(out, convert.Budget(budget))
			}
		}
	}
	return out, complete, nil
}
