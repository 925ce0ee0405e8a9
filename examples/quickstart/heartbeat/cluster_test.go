package heartbeat

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// TestMain lets this test program be a machine.
func TestMain(m *testing.M) {
	agent.Main()
	os.Exit(m.Run())
}

// newCluster returns a cluster, and a function that starts a machine of a node.
func newCluster(t *testing.T) (c *Cluster, start func(node string)) {
	t.Helper()
	dir := t.TempDir()
	lock, err := roster.Hold(t.Context(), filepath.Join(dir, "lock"))
	require.NoError(t, err)
	machines := roster.Open(filepath.Join(dir, "machines"))
	t.Cleanup(func() {
		_, err := machines.End(context.Background())
		require.NoError(t, err)
		require.NoError(t, lock.Close())
	})
	c = New(machines, store.NewMemory(time.Now, manager.NodeIndexes("machine")), time.Second)
	return c, func(node string) {
		about, err := json.Marshal(agent.Machine{ProviderID: "id:" + node, Node: node, Program: lock.Name()})
		require.NoError(t, err)
		require.NoError(t, machines.Start("", agent.MachineRole, roster.Entry{Name: "m-" + node, Instance: roster.NewInstance(), About: about}))
	}
}

// readiness looks at the machines, and returns the state of a node. It is empty without a node.
func (c *Cluster) readiness(t *testing.T, node string) object.ConditionStatus {
	t.Helper()
	require.NoError(t, c.look(t.Context()))
	n, err := c.nodes.Get(t.Context(), object.Key{Name: node})
	if err != nil {
		return ""
	}
	require.Equal(t, "id:"+node, n.ProviderID)
	return object.FindCondition(n.Conditions, machine.NodeReady).Status
}

func (c *Cluster) becomes(t *testing.T, node string, status object.ConditionStatus) {
	t.Helper()
	require.Eventually(t, func() bool { return c.readiness(t, node) == status }, time.Minute, 5*time.Millisecond)
}

func TestNodeIsReadyWhileItBeats(t *testing.T) {
	c, start := newCluster(t)
	start("a")
	start("") // it joins no cluster
	c.becomes(t, "a", object.True)
	running, err := c.machines.Running()
	require.NoError(t, err)
	for _, e := range running {
		require.NoError(t, e.Signal(syscall.SIGSTOP))
	}
	c.becomes(t, "a", object.Unknown)
	for _, e := range running {
		require.NoError(t, e.Signal(syscall.SIGCONT))
	}
	c.becomes(t, "a", object.True)
	nodes, err := c.nodes.List(t.Context(), store.Query{})
	require.NoError(t, err)
	require.Len(t, nodes, 1)
}

// TestDeletedNodeDoesNotComeBack: its machine's process has ended before.
func TestDeletedNodeDoesNotComeBack(t *testing.T) {
	c, start := newCluster(t)
	start("a")
	c.becomes(t, "a", object.True)
	_, err := c.machines.End(t.Context())
	require.NoError(t, err)
	require.Equal(t, object.True, c.readiness(t, "a"), "it was heard just now")
	require.NoError(t, c.nodes.Delete(t.Context(), object.Key{Name: "a"}, ""))
	require.Empty(t, c.readiness(t, "a"))
}

// meanwhile is a store of nodes in which something happens once: after the nodes were read, or just
// before one is made.
type meanwhile struct {
	store.Collection[*machine.Node]
	read, create func()
}

func (m *meanwhile) List(ctx context.Context, q store.Query) ([]*machine.Node, error) {
	nodes, err := m.Collection.List(ctx, q)
	m.read()
	return nodes, err
}

func (m *meanwhile) Create(ctx context.Context, n *machine.Node) (*machine.Node, error) {
	m.create()
	return m.Collection.Create(ctx, n)
}

// end is what a manager does to a machine: it ends the process, and then deletes the node if it
// finds one.
func (c *Cluster) end(t *testing.T, node string) {
	t.Helper()
	_, err := c.machines.End(t.Context())
	require.NoError(t, err)
	if err := c.nodes.Delete(t.Context(), object.Key{Name: node}, ""); err != nil {
		require.ErrorIs(t, err, store.ErrNotFound)
	}
}

// TestRestartedClusterRevivesNoNode: a program that was killed goes on, and remembers no node that
// has joined. The manager ends a machine while the first look is under way.
func TestRestartedClusterRevivesNoNode(t *testing.T) {
	first, start := newCluster(t)
	start("a")
	first.becomes(t, "a", object.True)
	during := &meanwhile{first.nodes, func() { first.end(t, "a") }, func() {}}
	restarted := New(first.machines, during, time.Second)
	require.NoError(t, restarted.look(t.Context()))
	require.Empty(t, first.readiness(t, "a"), "nobody would delete it before 20 min")
}

// serves waits until a machine is up. No cluster has looked at it yet.
func serves(t *testing.T, machines *roster.Roster) {
	t.Helper()
	require.Eventually(t, func() bool {
		running, err := machines.Running()
		return err == nil && len(running) == 1 && running[0].State == roster.Serving
	}, time.Minute, time.Millisecond)
}

// TestMachineThatEndsAsItJoinsLeavesNoNode: the manager finds no node, which is made a moment later.
func TestMachineThatEndsAsItJoinsLeavesNoNode(t *testing.T) {
	c, start := newCluster(t)
	start("a")
	serves(t, c.machines)
	during := &meanwhile{c.nodes, func() {}, func() { c.end(t, "a") }}
	require.NoError(t, New(c.machines, during, time.Second).look(t.Context()))
	require.Empty(t, c.readiness(t, "a"))
}

// TestNodeThatNobodyJudgedIsWithdrawn: the program was killed when it had made the node of a machine
// that has ended.
func TestNodeThatNobodyJudgedIsWithdrawn(t *testing.T) {
	c, start := newCluster(t)
	start("a")
	serves(t, c.machines)
	c.end(t, "a")
	_, err := c.nodes.Create(t.Context(), &machine.Node{Meta: object.Meta{Key: object.Key{Name: "a"}}, ProviderID: "id:a"})
	require.NoError(t, err)
	require.NoError(t, New(c.machines, c.nodes, time.Second).look(t.Context()))
	require.Empty(t, c.readiness(t, "a"))
}

// TestWhatOthersWriteStays: the cluster writes one condition.
func TestWhatOthersWriteStays(t *testing.T) {
	c, start := newCluster(t)
	start("a")
	c.becomes(t, "a", object.True)
	_, err := store.EditStatus(t.Context(), c.nodes, object.Key{Name: "a"}, func(n *machine.Node) error {
		n.Conditions = object.SetCondition(n.Conditions, object.Condition{Type: "Terminating", Status: object.True})
		return nil
	})
	require.NoError(t, err)
	_, err = c.machines.End(t.Context())
	require.NoError(t, err)
	c.becomes(t, "a", object.Unknown)
	n, err := c.nodes.Get(t.Context(), object.Key{Name: "a"})
	require.NoError(t, err)
	require.NotNil(t, object.FindCondition(n.Conditions, "Terminating"))
}

// TestClusterThatIsDown answers only cached reads.
func TestClusterThatIsDown(t *testing.T) {
	c, _ := newCluster(t)
	nodes := c.Nodes()
	n, err := nodes.Create(t.Context(), &machine.Node{Meta: object.Meta{Key: object.Key{Name: "a"}}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()
	require.Eventually(t, func() bool {
		_, err := nodes.Live().Get(t.Context(), n.Key)
		return err == nil
	}, time.Minute, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	_, err = nodes.Live().Get(t.Context(), n.Key)
	require.Equal(t, codes.Unavailable, codes.Of(err))
	_, err = nodes.Live().List(t.Context(), store.Query{})
	require.Equal(t, codes.Unavailable, codes.Of(err))
	_, err = nodes.Get(t.Context(), n.Key)
	require.NoError(t, err)
}
