package main

import (
	"context"
	"errors"
	"slices"

	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/store"
)

// sweepNodes deletes the nodes of agents that are gone, as a cloud's controller does for the nodes of
// its instances. A pool deletes no nodes.
func (f *fleet) sweepNodes(ctx context.Context) error {
	nodes, err := f.Nodes.List(ctx, store.Query{})
	if err != nil {
		return err
	}
	running, err := f.agents.Running()
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if slices.ContainsFunc(running, func(e roster.Entry) bool { return e.Name == n.Name }) {
			continue
		}
		if err := f.Nodes.Delete(ctx, n.Key, n.UID); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	return nil
}
