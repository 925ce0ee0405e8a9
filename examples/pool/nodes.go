package main

import (
	"context"
	"errors"
	"time"

	"github.com/millwright-go/millwright/examples/pool/supervisor"
	"github.com/millwright-go/millwright/examples/quickstart/registry"
	"github.com/millwright-go/millwright/store"
)

// nodesEvery is the time between two looks at nodes.
const nodesEvery = 100 * time.Millisecond

// sweepNodes deletes the nodes of agents that are gone, until ctx ends, as a cloud's controller
// does for the nodes of its instances. A pool only counts nodes.
func (f *fleet) sweepNodes(ctx context.Context) error {
	agents := registry.At(supervisor.AgentsOf(f.groups(), clusterName))
	ticker := time.NewTicker(nodesEvery)
	defer ticker.Stop()
	for {
		nodes, err := f.Nodes.List(ctx, store.Query{})
		if err != nil {
			return err
		}
		for _, n := range nodes {
			record, err := agents.Read(n.Name)
			if err != nil {
				return err
			}
			if _, living := agents.Living(record); living {
				continue
			}
			if err := f.Nodes.Delete(ctx, n.Key, n.UID); err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}
