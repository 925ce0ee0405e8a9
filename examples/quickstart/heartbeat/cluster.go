// Package heartbeat is a minimal target cluster. The node of a machine is Ready while the machine sends
// heartbeats, and Unknown after some time without any.
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

// interval is the time between two reads of the heartbeats.
const interval = 100 * time.Millisecond

// Cluster is a cluster whose nodes send heartbeats. New makes it.
type Cluster struct {
	machines *roster.Roster
	nodes    store.Collection[*machine.Node]
	silence  time.Duration
	joined   map[string]bool // by provider ID: machines that have had a node, and don't get another one
	down     atomic.Bool     // true after Run has ended
}

// New returns a cluster. Run reads its heartbeats. silence is the time without a heartbeat after which a
// node's state becomes Unknown.
func New(machines *roster.Roster, nodes store.Collection[*machine.Node], silence time.Duration) *Cluster {
	return &Cluster{machines: machines, nodes: nodes, silence: silence, joined: make(map[string]bool)}
}

// Nodes implements manager.Cluster. While the cluster is down, live reads fail with UNAVAILABLE. The
// manager makes such reads to find out whether the cluster answers. While it does not, the manager
// changes nothing.
func (c *Cluster) Nodes() store.Collection[*machine.Node] { return api{c.nodes, c} }

// api is the collection of nodes for clients of the cluster.
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

// down is a reader whose calls fail, because the cluster is down.
type down struct{}

var errDown = codes.New(codes.Unavailable, "the cluster is down")

// Get implements store.Reader.
func (down) Get(context.Context, object.Key) (*machine.Node, error) { return nil, errDown }

// List implements store.Reader.
func (down) List(context.Context, store.Query) ([]*machine.Node, error) { return nil, errDown }

// Run reads heartbeats until ctx ends or a read fails, and returns the error. Then the cluster is down
// until Run is called again.
func (c *Cluster) Run(ctx context.Context) error {
	c.down.Store(false)
	defer c.down.Store(true)
	return roster.Every(ctx, interval, c.look)
}

// look creates nodes for new machines, and writes the conditions of all nodes.
//
// The nodes are read before the machines. The manager ends a machine before it deletes the node. So if
// a machine is alive and its node was not found before, the manager has not deleted that node.
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
		if err := c.lookAt(ctx, e, registered); err != nil {
			return err
		}
	}
	return nil
}

// lookAt creates the node of one machine, if it has none, and writes the node's condition.
func (c *Cluster) lookAt(ctx context.Context, e roster.Entry, registered map[string]*machine.Node) error {
	var args agent.Machine
	if err := json.Unmarshal(e.About, &args); err != nil {
		return err
	}
	n := registered[args.Node]
	switch {
	case args.Node == "":
		return nil
	case n == nil && (!e.Alive || e.State != roster.Serving || c.joined[args.ProviderID]):
		return nil
	case n == nil:
		var err error
		n, err = c.nodes.Create(ctx, &machine.Node{Meta: object.Meta{Key: object.Key{Name: args.Node}}, ProviderID: args.ProviderID})
		if errors.Is(err, store.ErrAlreadyExists) {
			return nil // the next look finds out whether it is this machine's
		}
		if err != nil {
			return err
		}
		c.joined[args.ProviderID] = true
	case n.ProviderID != args.ProviderID: // the node of an earlier machine
		return nil
	}
	if object.FindCondition(n.Conditions, machine.NodeReady) == nil {
		if gone, err := c.deleteIfEnded(ctx, n, e); gone || err != nil {
			return err
		}
	}
	return c.writeReady(ctx, n, e.Beat)
}

// deleteIfEnded deletes a new node if its machine has ended, and reports whether it did. The manager may have
// looked for the node before it was created, and would not delete it. If the machine still runs, the
// manager will find the node when it ends the machine.
func (c *Cluster) deleteIfEnded(ctx context.Context, n *machine.Node, e roster.Entry) (bool, error) {
	now, err := roster.Read(e.Path)
	if err != nil || now.Alive {
		return false, err
	}
	if err := c.nodes.Delete(ctx, n.Key, n.UID); err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	return true, nil
}

// writeReady writes the Ready condition of a node, if it has changed.
func (c *Cluster) writeReady(ctx context.Context, n *machine.Node, lastBeat time.Time) error {
	now := time.Now()
	ready := object.Condition{
		Type: machine.NodeReady, Status: object.True, Reason: "Heartbeat", Message: "heartbeats arrive", Since: now.Truncate(time.Second),
	}
	if now.Sub(lastBeat) >= c.silence {
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
