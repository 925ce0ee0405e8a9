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
