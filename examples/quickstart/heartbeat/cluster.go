// Package heartbeat is a target cluster in its simplest form. A machine that sends heartbeats is a
// Ready node. The state of one that has fallen silent is unknown.
package heartbeat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// interval is the time between two looks at the heartbeats.
const interval = 100 * time.Millisecond

// Cluster is a cluster whose nodes send heartbeats. New makes it.
type Cluster struct {
	machines *roster.Roster
	nodes    store.Collection[*machine.Node]
	silence  time.Duration
	joined   map[string]bool // by provider ID: their nodes were seen; these don't join again
	down     atomic.Bool     // Run has ended
}

// New returns a cluster. Run reads its heartbeats. silence is the time after its last heartbeat when
// a node's state becomes unknown.
func New(machines *roster.Roster, nodes store.Collection[*machine.Node], silence time.Duration) *Cluster {
	return &Cluster{machines: machines, nodes: nodes, silence: silence, joined: make(map[string]bool)}
}

// Nodes implements manager.Cluster. While the cluster is down, live reads are UNAVAILABLE. The
// manager makes such a read to see whether the cluster answers, and freezes everything while it
// does not.
func (c *Cluster) Nodes() store.Collection[*machine.Node] { return api{c.nodes, c} }

// api is the cluster's nodes as its clients reach them.
type api struct {
	store.Collection[*machine.Node]
	c *Cluster
}

// Live implements store.Collection.
func (a api) Live() store.Reader[*machine.Node] {
	if a.c.down.Load() {
		return down{}
	}
	return a.Collection.Live()
}

// down is a cluster that does not answer.
type down struct{}

var errDown = codes.New(codes.Unavailable, "the cluster is down")

// Get implements store.Reader.
func (down) Get(context.Context, object.Key) (*machine.Node, error) { return nil, errDown }

// List implements store.Reader.
func (down) List(context.Context, store.Query) ([]*machine.Node, error) { return nil, errDown }

// Run reads heartbeats until ctx ends. Then the cluster is down until Run is called again. It
// returns ctx's error, or what else ended it.
func (c *Cluster) Run(ctx context.Context) error {
	c.down.Store(false)
	defer c.down.Store(true)
	return roster.Every(ctx, interval, c.look)
}

// look lets the machines join that are up, and writes which nodes are silent.
//
// The manager ends a machine before it deletes its node. So the nodes are read before the machines:
// a machine that is alive after that, and had no node, was not deleted yet when it had none.
func (c *Cluster) look(ctx context.Context) error {
	nodes, err := c.nodes.List(ctx, store.Query{})
	if err != nil {
		return err
	}
	registered := make(map[string]*machine.Node, len(nodes))
	for _, n := range nodes {
		registered[n.Name] = n
		c.joined[n.ProviderID] = true
	}
	all, err := c.machines.Entries()
	if err != nil {
		return err
	}
	for _, e := range all {
		if err := c.see(ctx, e, registered); err != nil {
			return err
		}
	}
	return nil
}

// see lets one machine join, or judges its node.
func (c *Cluster) see(ctx context.Context, e roster.Entry, registered map[string]*machine.Node) error {
	var order agent.Machine
	if err := json.Unmarshal(e.About, &order); err != nil {
		return err
	}
	n := registered[order.Node]
	switch {
	case order.Node == "":
		return nil
	case n == nil && (!e.Alive || e.State != roster.Serving || c.joined[order.ProviderID]):
		return nil
	case n == nil:
		var err error
		n, err = c.nodes.Create(ctx, &machine.Node{Meta: object.Meta{Key: object.Key{Name: order.Node}}, ProviderID: order.ProviderID})
		if errors.Is(err, store.ErrAlreadyExists) {
			return nil // the next look sees whose it is
		}
		if err != nil {
			return err
		}
		c.joined[order.ProviderID] = true
	case n.ProviderID != order.ProviderID: // an earlier machine's
		return nil
	}
	if object.FindCondition(n.Conditions, machine.NodeReady) == nil {
		if gone, err := c.withdraw(ctx, n, e); gone || err != nil {
			return err
		}
	}
	return c.judge(ctx, n, e.Beat)
}

// withdraw deletes a node that has not been judged yet if its machine has ended: the manager may have
// looked for it before it was made, and no other program deletes it. A machine that still runs is
// ended later, and then the manager sees its node.
func (c *Cluster) withdraw(ctx context.Context, n *machine.Node, e roster.Entry) (bool, error) {
	now, err := roster.Read(e.Path)
	if err != nil || now.Alive {
		return false, err
	}
	if err := c.nodes.Delete(ctx, n.Key, n.UID); err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	return true, nil
}

// judge writes whether a node is ready, if that has changed.
func (c *Cluster) judge(ctx context.Context, n *machine.Node, heard time.Time) error {
	now := time.Now()
	ready := object.Condition{
		Type: machine.NodeReady, Status: object.True, Reason: "Heartbeat", Message: "heartbeats arrive", Since: now.Truncate(time.Second),
	}
	if now.Sub(heard) >= c.silence {
		ready.Status, ready.Reason, ready.Message = object.Unknown, "Silence", fmt.Sprintf("no heartbeat for %s", c.silence)
	}
	if was := object.FindCondition(n.Conditions, machine.NodeReady); was != nil && was.Status == ready.Status {
		return nil
	}
	_, err := store.EditStatus(ctx, c.nodes, n.Key, func(n *machine.Node) error {
		n.Conditions = object.SetCondition(n.Conditions, ready)
		n.Addresses = []machine.Address{{Type: "Hostname", Value: n.Name}}
		return nil
	})
	if errors.Is(err, store.ErrNotFound) {
		return nil // deleted meanwhile
	}
	return err
}
