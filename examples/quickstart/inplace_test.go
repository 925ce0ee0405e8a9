package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// TestInPlace updates a fleet of processes without replacing one: every process
// of the first version is still there, and counts as one of the second.
func TestInPlace(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	t.Parallel()
	for name, orchestration := range map[string]deployment.Orchestration{
		"automatic": deployment.Automatic, "manual": deployment.Manual,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startFleet(t, deployment.Strategy{
				Kind: deployment.InPlaceUpdate, Orchestration: orchestration, MaxUnavailable: rollout.IntOrPercent{Value: 2},
			})
			before := p.created(t)
			was, err := p.processes("v1")
			require.NoError(t, err)
			u := &updater{p: p, selects: orchestration == deployment.Manual}
			ctx, done := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- u.run(ctx) }()
			require.NoError(t, p.edit(t.Context(), useClass("v2")))
			require.NoError(t, p.settled(t.Context(), replicas, "v2"))
			done()
			require.NoError(t, <-ended)
			is, err := p.processes("v2")
			require.NoError(t, err)
			assert.Equal(t, before, p.created(t), "none was replaced")
			assert.ElementsMatch(t, instances(was), instances(is))
			if !u.selects {
				assert.LessOrEqual(t, u.most, 2, "updated at a time")
			}
			assert.Equal(t, replicas, u.updated)
		})
	}
}

// updater is the agent that updates machines in place. If no other program selects them, it selects
// them too, one after the other.
type updater struct {
	p       *play
	selects bool
	updated int // nodes
	most    int // at a time
}

func (u *updater) run(ctx context.Context) error {
	done := map[string]bool{}
	for change, err := range u.p.Nodes.Watch(ctx) {
		if err != nil {
			return err
		}
		nodes, err := u.p.Nodes.List(ctx, store.Query{})
		if err != nil {
			break // the fleet is complete
		}
		at := 0
		for _, n := range nodes {
			if readyForUpdate(n) {
				at++
			}
		}
		u.most = max(u.most, at)
		switch n := change.New; {
		case n == nil:
		case readyForUpdate(n) && !done[n.UID]:
			done[n.UID] = true
			u.updated++
			err = u.label(ctx, n.Key, machinePolicy().Keys.UpdateResult, machine.UpdateSuccessful)
		case u.selects && n.Labels[machinePolicy().Keys.CandidateForUpdate] != "" && !done[n.UID]:
			err = u.label(ctx, n.Key, machinePolicy().Keys.SelectedForUpdate, "true")
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

func readyForUpdate(n *machine.Node) bool {
	c := object.FindCondition(n.Conditions, machine.NodeInPlaceUpdate)
	return c != nil && c.Status == object.True && c.Reason == machine.ReasonReadyForUpdate
}

// label puts a label on a node, also while others write the node.
func (u *updater) label(ctx context.Context, key object.Key, name, value string) error {
	_, err := store.Edit(ctx, u.p.Nodes, key, func(n *machine.Node) error {
		n.Labels[name] = value
		return nil
	})
	return err
}

func instances(lives []ledger.Life) (names []string) {
	for _, life := range lives {
		names = append(names, life.Instance)
	}
	return names
}
