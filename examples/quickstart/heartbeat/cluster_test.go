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

// TestMain makes this test program a machine, if it was started as one.
func TestMain(m *testing.M) {
	agent.Main()
	os.Exit(m.Run())
}

// newCluster returns a cluster, and a function that starts the machine of a node.
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

// readiness reads the heartbeats, and returns the status of a node's Ready condition, or "" if there is
// no node.
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

// becomes waits until a node has this readiness.
func (c *Cluster) becomes(t *testing.T, node string, status object.ConditionStatus) {
	t.Helper()
	require.Eventually(t, func() bool { return c.readiness(t, node) == status }, time.Minute, 5*time.Millisecond)
}

func TestNodeIsReadyWhileItBeats(t *testing.T) {
	c, start := newCluster(t)
	start("a")
	start("") // a machine that joins no cluster
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

// TestDeletedNodeDoesNotComeBack: a deleted node is not created again if its machine has ended.
func TestDeletedNodeDoesNotComeBack(t *testing.T) {
	c, start := newCluster(t)
	start("a")
	c.becomes(t, "a", object.True)
	_, err := c.machines.End(t.Context())
	require.NoError(t, err)
	require.Equal(t, object.True, c.readiness(t, "a"), "the last heartbeat is not old enough")
	require.NoError(t, c.nodes.Delete(t.Context(), object.Key{Name: "a"}, ""))
	require.Empty(t, c.readiness(t, "a"))
}

// interleaved is a store of nodes that calls afterList after each read, and beforeCreate before each
// create.
type interleaved struct {
	store.Collection[*machine.Node]
	afterList, beforeCreate func()
}

func (m *interleaved) List(ctx context.Context, q store.Query) ([]*machine.Node, error) {
	nodes, err := m.Collection.List(ctx, q)
	m.afterList()
	return nodes, err
}

func (m *interleaved) Create(ctx context.Context, n *machine.Node) (*machine.Node, error) {
	m.beforeCreate()
	return m.Collection.Create(ctx, n)
}

// end does what a manager does to delete a machine: it ends the process, and then deletes the node if
// there is one.
func (c *Cluster) end(t *testing.T, node string) {
	t.Helper()
	_, err := c.machines.End(t.Context())
	require.NoError(t, err)
	if err := c.nodes.Delete(t.Context(), object.Key{Name: node}, ""); err != nil {
		require.ErrorIs(t, err, store.ErrNotFound)
	}
}

// TestRestartedClusterDoesNotRecreateNode: a restarted cluster does not know which machines have had a
// node. During its first look the manager ends a machine. The node must not be created again.
func TestRestartedClusterDoesNotRecreateNode(t *testing.T) {
	first, start := newCluster(t)
	start("a")
	first.becomes(t, "a", object.True)
	during := &interleaved{first.nodes, func() { first.end(t, "a") }, func() {}}
	restarted := New(first.machines, during, time.Second)
	require.NoError(t, restarted.look(t.Context()))
	require.Empty(t, first.readiness(t, "a"), "the node would be left for 20 min")
}

// awaitServing waits until the one machine serves, without a look of the cluster.
func awaitServing(t *testing.T, machines *roster.Roster) {
	t.Helper()
	require.Eventually(t, func() bool {
		running, err := machines.Running()
		return err == nil && len(running) == 1 && running[0].State == roster.Serving
	}, time.Minute, time.Millisecond)
}

// TestMachineThatEndsAsItJoinsLeavesNoNode: the manager ends a machine and finds no node, and the node
// is created a moment later.
func TestMachineThatEndsAsItJoinsLeavesNoNode(t *testing.T) {
	c, start := newCluster(t)
	start("a")
	awaitServing(t, c.machines)
	during := &interleaved{c.nodes, func() {}, func() { c.end(t, "a") }}
	require.NoError(t, New(c.machines, during, time.Second).look(t.Context()))
	require.Empty(t, c.readiness(t, "a"))
}

// TestNodeWithoutConditionIsDeleted: the program was killed after it had created the node of a machine
// that has ended. The next look deletes the node.
func TestNodeWithoutConditionIsDeleted(t *testing.T) {
	c, start := newCluster(t)
	start("a")
	awaitServing(t, c.machines)
	c.end(t, "a")
	_, err := c.nodes.Create(t.Context(), &machine.Node{Meta: object.Meta{Key: object.Key{Name: "a"}}, ProviderID: "id:a"})
	require.NoError(t, err)
	require.NoError(t, New(c.machines, c.nodes, time.Second).look(t.Context()))
	require.Empty(t, c.readiness(t, "a"))
}

// TestConditionsOfOthersStay: the cluster writes only the Ready condition.
func TestConditionsOfOthersStay(t *testing.T) {
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

// TestClusterThatIsDown: while the cluster is down, only cached reads succeed.
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
