package heartbeat

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

const token = "swordfish"

func newCluster(t *testing.T) *Cluster {
	t.Helper()
	dir, err := os.MkdirTemp("", "mw") // a test's own directory may have too long a name
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c, err := Listen(Options{
		Socket: filepath.Join(dir, "s"), Token: token, Silence: time.Second,
		Nodes: store.NewMemory(time.Now, manager.NodeIndexes("machine")),
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		if c.conn != nil { // it was not run
			_ = c.conn.Close()
		}
	})
	return c
}

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func (c *Cluster) hears(t *testing.T, node, id string, after time.Duration) {
	t.Helper()
	require.NoError(t, c.hear(t.Context(), beat{Node: node, ProviderID: id}, noon.Add(after)))
}

func (c *Cluster) sweeps(t *testing.T, after time.Duration) {
	t.Helper()
	require.NoError(t, c.sweep(t.Context(), noon.Add(after)))
}

func (c *Cluster) node(t *testing.T, name string) *machine.Node {
	t.Helper()
	n, err := c.Nodes().Get(t.Context(), object.Key{Name: name})
	require.NoError(t, err)
	return n
}

func (c *Cluster) readiness(t *testing.T, name string) object.Condition {
	t.Helper()
	ready := object.FindCondition(c.node(t, name).Conditions, machine.NodeReady)
	require.NotNil(t, ready)
	return *ready
}

func TestNodeIsReadyWhileItBeats(t *testing.T) {
	c := newCluster(t)
	c.hears(t, "a", "id:1", 0)
	require.Equal(t, object.True, c.readiness(t, "a").Status)
	require.Equal(t, "id:1", c.node(t, "a").ProviderID)
	require.Equal(t, []machine.Address{{Type: "Hostname", Value: "a"}}, c.node(t, "a").Addresses)

	version := c.node(t, "a").Version
	c.hears(t, "a", "id:1", 900*time.Millisecond)
	c.sweeps(t, 1800*time.Millisecond)
	require.Equal(t, version, c.node(t, "a").Version, "a beat that changes nothing is no write")

	c.sweeps(t, 1900*time.Millisecond)
	silent := c.readiness(t, "a")
	require.Equal(t, object.Unknown, silent.Status)
	require.Equal(t, noon.Add(time.Second), silent.Since, "whole seconds")
	version = c.node(t, "a").Version
	c.sweeps(t, 3*time.Second)
	require.Equal(t, version, c.node(t, "a").Version, "said once")

	c.hears(t, "a", "id:1", 4*time.Second)
	require.Equal(t, object.True, c.readiness(t, "a").Status)
}

func TestWhatOthersWriteStays(t *testing.T) {
	c := newCluster(t)
	c.hears(t, "a", "id:1", 0)
	changed := c.node(t, "a").Clone()
	changed.Labels = map[string]string{"machine": "a"}
	changed.AddFinalizer("keep")
	changed, err := c.Nodes().Update(t.Context(), changed)
	require.NoError(t, err)
	changed = changed.Clone()
	changed.Conditions = append(changed.Conditions, object.Condition{Type: "Terminating", Status: object.True})
	_, err = c.Nodes().UpdateStatus(t.Context(), changed)
	require.NoError(t, err)

	c.sweeps(t, 2*time.Second)
	n := c.node(t, "a")
	require.Equal(t, "a", n.Labels["machine"])
	require.True(t, n.HasFinalizer("keep"))
	require.NotNil(t, object.FindCondition(n.Conditions, "Terminating"))
}

// TestDeletedNodeDoesNotComeBack: a heartbeat may still be on its way when the
// machine and its node are gone.
func TestDeletedNodeDoesNotComeBack(t *testing.T) {
	c := newCluster(t)
	c.hears(t, "a", "id:1", 0)
	require.NoError(t, c.Nodes().Delete(t.Context(), object.Key{Name: "a"}, ""))
	c.hears(t, "a", "id:1", 100*time.Millisecond)
	c.sweeps(t, 2*time.Second)
	c.hears(t, "a", "id:1", 3*time.Second)
	all, err := c.Nodes().List(t.Context(), store.Query{})
	require.NoError(t, err)
	require.Empty(t, all)

	c.hears(t, "a", "id:2", 4*time.Second)
	require.Equal(t, "id:2", c.node(t, "a").ProviderID, "another machine of that name")
}

func TestNameIsTakenUntilItsNodeIsGone(t *testing.T) {
	c := newCluster(t)
	c.hears(t, "a", "id:1", 0)
	c.hears(t, "a", "id:2", 100*time.Millisecond)
	require.Equal(t, "id:1", c.node(t, "a").ProviderID)
	c.sweeps(t, 1050*time.Millisecond)
	require.Equal(t, object.Unknown, c.readiness(t, "a").Status, "another machine's beats keep no node alive")
	require.NoError(t, c.Nodes().Delete(t.Context(), object.Key{Name: "a"}, ""))
	c.hears(t, "a", "id:2", 2*time.Second)
	require.Equal(t, "id:2", c.node(t, "a").ProviderID)
}

func TestBeatsArriveOverTheSocket(t *testing.T) {
	c := newCluster(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()

	send := func(j Join, id string) {
		s, err := NewSender(j, id)
		require.NoError(t, err)
		require.NoError(t, s.Send(time.Second))
		require.NoError(t, s.Close())
	}
	stranger := Join{Socket: c.options.Socket, Token: "guess", Node: "stranger"}
	friend := Join{Socket: c.options.Socket, Token: token, Node: "friend"}
	send(stranger, "id:1")
	send(friend, "id:2") // on the same socket, so that it is read after the other
	there := func(name string) bool {
		_, err := c.Nodes().Get(t.Context(), object.Key{Name: name})
		return err == nil
	}
	require.Eventually(t, func() bool { return there("friend") }, time.Minute, time.Millisecond)
	require.False(t, there("stranger"), "a wrong token")

	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	late, err := NewSender(friend, "id:2")
	require.NoError(t, err)
	require.Error(t, late.Send(time.Second), "nobody listens")
}

func TestUserDataKeepsPlaceholders(t *testing.T) {
	join := Join{Socket: "/tmp/s", Token: token, Node: "<<MACHINE_NAME>>"}
	require.Contains(t, string(join.UserData()), "<<MACHINE_NAME>>")
	back, ok := ParseJoin(join.UserData())
	require.True(t, ok)
	require.Equal(t, join, back)
	_, ok = ParseJoin([]byte("#!/bin/sh"))
	require.False(t, ok)
}

func TestRefusesWhatCannotWork(t *testing.T) {
	long := "/" + strings.Repeat("x", MaxSocketPath)
	_, err := NewSender(Join{Socket: long}, "id:1")
	require.Error(t, err)
	for _, o := range []Options{
		{Socket: long, Token: token, Silence: time.Second},
		{Socket: "/tmp/s", Silence: time.Second},
		{Socket: "/tmp/s", Token: token},
	} {
		_, err := Listen(o)
		require.Error(t, err)
	}
}

func FuzzAdmit(f *testing.F) {
	c := &Cluster{options: Options{Token: token}}
	good, err := json.Marshal(beat{Token: token, Node: "a", ProviderID: "id:1"})
	require.NoError(f, err)
	f.Add(good)
	f.Add([]byte(`{"token": 7}`))
	f.Fuzz(func(t *testing.T, message []byte) {
		if b, ok := c.admit(message); ok && (b.Token != token || b.Node == "" || b.ProviderID == "") {
			t.Errorf("admitted %q", message)
		}
	})
}
