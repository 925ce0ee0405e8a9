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
	joined   map[string]bool // by provider ID: these don't join again once their nodes are deleted
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
func (c *Cluster) look(ctx context.Context) error {
	all, err := c.machines.Entries()
	if err != nil {
		return err
	}
	for _, e := range all {
		var order agent.Machine
		if err := json.Unmarshal(e.About, &order); err != nil {
			return err
		}
		if order.Node == "" {
			continue
		}
		n, err := c.nodes.Get(ctx, object.Key{Name: order.Node})
		if errors.Is(err, store.ErrNotFound) {
			if !e.Alive || e.State != roster.Serving || c.joined[order.ProviderID] {
				continue
			}
			n, err = c.nodes.Create(ctx, &machine.Node{Meta: object.Meta{Key: object.Key{Name: order.Node}}, ProviderID: order.ProviderID})
		}
		if err == nil && n.ProviderID == order.ProviderID { // not an earlier machine's
			c.joined[order.ProviderID] = true
			err = c.judge(ctx, n, e.Beat)
		}
		if err != nil {
			return err
		}
	}
	return nil
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
