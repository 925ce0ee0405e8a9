package controllers

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	poolsv1alpha1 "github.com/millwright-go/millwright/adapters/kubernetes/api/pools/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/apistore"
	"github.com/millwright-go/millwright/adapters/kubernetes/convert"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/store"
)

// poolStore is the store of machine pools on the API server.
type poolStore = apistore.Collection[*machinepool.Pool, *poolsv1alpha1.MachinePool]

// connectPools adds the store of pools, whose API group is not that of machines.
func (s *stores) connectPools(config *rest.Config, c connection, keys convert.Keys) error {
	types := runtime.NewScheme()
	if err := poolsv1alpha1.AddToScheme(types); err != nil {
		return err
	}
	var err error
	if c.client, err = apistore.NewClient(config, poolsv1alpha1.GroupVersion, types); err != nil {
		return err
	}
	s.pools, err = collection[*machinepool.Pool, *poolsv1alpha1.MachinePool](c, "machinepools", convert.Pools(keys), manager.PoolIndexes(),
		func() *poolsv1alpha1.MachinePool { return &poolsv1alpha1.MachinePool{} }, func() runtime.Object { return &poolsv1alpha1.MachinePoolList{} })
	return err
}

// managePools sets the manager's options for pools. Without a pool driver it sets the policy only,
// and pools are not managed.
func (f *fleet) managePools(to *manager.Options) {
	to.Policies.Pool = f.PoolPolicy
	if f.PoolDriver == nil {
		return
	}
	to.Store.Pools, to.Pools.Driver, to.Pools.Bootstrap = f.stores.pools, f.PoolDriver, f.PoolBootstrap
}

var (
	poolsDesc = prometheus.NewDesc("millwright_pools",
		"Pools by namespace and phase.", []string{"namespace", "phase"}, nil)
	poolReplicasDesc = prometheus.NewDesc("millwright_pool_machines",
		"Machines of a pool: desired, current, ready, available, unavailable, terminating.", []string{"namespace", "pool", "state"}, nil)
)

// collectPools counts pools and their machines.
func (c *fleetCollector) collectPools(gauge func(desc *prometheus.Desc, value float64, labels ...string)) {
	if c.stores.pools == nil {
		return
	}
	pools, err := c.stores.pools.List(context.Background(), store.Query{})
	if err != nil {
		return
	}
	type group struct{ namespace, phase string }
	counts := map[group]int{}
	for _, p := range pools {
		s := &p.Status
		counts[group{p.Namespace, string(s.Phase)}]++
		for state, n := range map[string]int32{
			"desired": p.Spec.Wanted(), "current": s.Replicas, "ready": s.Ready, "available": s.Available,
			"unavailable": s.Unavailable, "terminating": int32(min(len(s.Leaving), 1<<30)),
		} {
			gauge(poolReplicasDesc, float64(n), p.Namespace, p.Name, state)
		}
	}
	for g, n := range counts {
		gauge(poolsDesc, float64(n), g.namespace, g.phase)
	}
}
