package heartbeat

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// Options of a Cluster.
type Options struct {
	// Socket is the path of the socket, at most 103 bytes. An existing socket counts as a leftover
	// and is replaced.
	Socket string
	Token  string // what heartbeats must hold; not empty
	// Silence is the time after its last heartbeat when a node's state becomes unknown. At least 10
	// ms.
	Silence time.Duration
	// Nodes keeps the cluster's nodes. Existing nodes are known, and count as just heard.
	Nodes store.Collection[*machine.Node]
}

// Cluster is a cluster whose nodes send heartbeats. Listen makes it.
type Cluster struct {
	options Options
	conn    *net.UnixConn     // if nil, Run listens again
	guests  map[string]*guest // by provider ID; used by Run alone
	down    atomic.Bool       // Run has ended
}

var _ manager.Cluster = (*Cluster)(nil)

// guest is a machine that has sent a heartbeat.
type guest struct {
	node  string
	uid   string    // of the node it registered; empty if it could not yet
	last  time.Time // when it was heard last
	ready bool      // what its node says
	gone  bool      // its node was deleted, and it does not register a second time
}

// Listen makes a cluster and its socket. Run serves it.
func Listen(o Options) (*Cluster, error) {
	switch {
	case len(o.Socket) > MaxSocketPath:
		return nil, fmt.Errorf("the path of socket %s is longer than %d bytes", o.Socket, MaxSocketPath)
	case o.Token == "":
		return nil, errors.New("a cluster needs a token")
	case o.Silence < 10*time.Millisecond:
		return nil, fmt.Errorf("a silence of %s is too short", o.Silence)
	}
	c := &Cluster{options: o, guests: make(map[string]*guest)}
	return c, c.listen()
}

// listen makes the socket.
func (c *Cluster) listen() error {
	path := c.options.Socket
	if there, err := os.Lstat(path); err == nil && there.Mode().Type() == fs.ModeSocket {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return errors.Join(err, conn.Close())
	}
	c.conn = conn
	return nil
}

// Nodes implements manager.Cluster. While the cluster is down, live reads and
// writes are UNAVAILABLE.
func (c *Cluster) Nodes() store.Collection[*machine.Node] { return api{c.options.Nodes, c} }

// Run reads heartbeats until ctx ends. Then it closes the socket, and the cluster is down until Run
// is called again. It returns ctx's error, or what else ended it.
func (c *Cluster) Run(ctx context.Context) error {
	if c.conn == nil {
		if err := c.listen(); err != nil {
			return err
		}
	}
	within, cancel := context.WithCancel(ctx)
	var reading sync.WaitGroup
	defer func() {
		c.down.Store(true)
		cancel()
		_ = c.conn.Close()
		reading.Wait()
		c.conn = nil
	}()
	if err := c.know(ctx, time.Now()); err != nil {
		return err
	}
	c.down.Store(false)
	beats := make(chan beat)
	failed := make(chan error, 1)
	reading.Go(func() { failed <- c.read(within, beats) })

	every := c.options.Silence / 4
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	swept := time.Now()
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err = <-failed:
		case b := <-beats:
			err = c.hear(ctx, b, time.Now())
		case now := <-ticker.C:
			// If this program was held up, silence proves nothing: heartbeats from that time are
			// still unread.
			if now.Sub(swept) < c.options.Silence/2 {
				err = c.sweep(ctx, now)
			}
			swept = now
		}
		if err != nil {
			return err
		}
	}
}

// know reads the existing nodes, which an earlier program may have let join. Missing heartbeats
// from before this moment don't count.
func (c *Cluster) know(ctx context.Context, now time.Time) error {
	nodes, err := c.options.Nodes.List(ctx, store.Query{})
	if err != nil {
		return err
	}
	for _, n := range nodes {
		ready := object.FindCondition(n.Conditions, machine.NodeReady)
		c.guests[n.ProviderID] = &guest{
			node: n.Name, uid: n.UID, last: now, ready: ready != nil && ready.Status == object.True,
		}
	}
	return nil
}

// read passes heartbeats with the right token on until the socket is closed.
func (c *Cluster) read(ctx context.Context, beats chan<- beat) error {
	buffer := make([]byte, 4096)
	for {
		n, _, err := c.conn.ReadFromUnix(buffer)
		if err != nil {
			return err
		}
		b, ok := c.admit(buffer[:n])
		if !ok {
			continue
		}
		select {
		case beats <- b:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// admit reads a datagram. It returns false if it is no heartbeat of this cluster.
func (c *Cluster) admit(message []byte) (beat, bool) {
	var b beat
	if json.Unmarshal(message, &b) != nil || b.Node == "" || b.ProviderID == "" {
		return beat{}, false
	}
	return b, subtle.ConstantTimeCompare([]byte(b.Token), []byte(c.options.Token)) == 1
}

// hear processes one heartbeat.
func (c *Cluster) hear(ctx context.Context, b beat, now time.Time) error {
	g := c.guests[b.ProviderID]
	if g == nil {
		g = &guest{node: b.Node}
		c.guests[b.ProviderID] = g
	}
	g.last = now
	if g.gone || g.node != b.Node {
		return nil
	}
	if g.uid == "" {
		if err := c.register(ctx, g, b); err != nil || g.uid == "" {
			return err
		}
	}
	if g.ready {
		return nil
	}
	return c.say(ctx, g, object.Condition{
		Type: machine.NodeReady, Status: object.True, Reason: "Heartbeat", Message: "heartbeats arrive", Since: now,
	})
}

// register makes the machine a node, once only: a machine whose node was deleted does not register
// again, and neither does one that is being deleted and still sends.
func (c *Cluster) register(ctx context.Context, g *guest, b beat) error {
	node, err := c.options.Nodes.Create(ctx, &machine.Node{
		Meta: object.Meta{Key: object.Key{Name: b.Node}}, ProviderID: b.ProviderID,
	})
	if errors.Is(err, store.ErrAlreadyExists) {
		return nil // an earlier machine's; it must be deleted first
	}
	if err != nil {
		return err
	}
	g.uid = node.UID
	return nil
}

// sweep looks for nodes that have fallen silent.
func (c *Cluster) sweep(ctx context.Context, now time.Time) error {
	for _, g := range c.guests {
		if g.uid == "" || g.gone || !g.ready || now.Sub(g.last) < c.options.Silence {
			continue
		}
		err := c.say(ctx, g, object.Condition{
			Type: machine.NodeReady, Status: object.Unknown, Reason: "Silence",
			Message: fmt.Sprintf("no heartbeat for %s", c.options.Silence), Since: now,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// say writes a condition of a guest's node, unless the node is gone.
func (c *Cluster) say(ctx context.Context, g *guest, condition object.Condition) error {
	condition.Since = condition.Since.Truncate(time.Second)
	_, err := store.EditStatus(ctx, c.options.Nodes, object.Key{Name: g.node}, func(node *machine.Node) error {
		if node.UID != g.uid {
			return store.ErrNotFound
		}
		node.Conditions = object.SetCondition(node.Conditions, condition)
		node.Addresses = []machine.Address{{Type: "Hostname", Value: g.node}}
		return nil
	})
	if errors.Is(err, store.ErrNotFound) {
		g.gone = true
		return nil
	}
	if err == nil {
		g.ready = condition.Status == object.True
	}
	return err
}
