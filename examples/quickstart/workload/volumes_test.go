package workload

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/examples/quickstart/registry"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

var withVolume = App{Name: "db", Replicas: 1, MaxUnavailable: 1, Volume: true, Grace: time.Second}

func (s *site) attachments() []*drain.Attachment {
	s.t.Helper()
	all, err := s.Attachments(context.Background(), "", []string{"volume-db-0"})
	require.NoError(s.t, err)
	return all
}

func TestVolumeFollowsItsTask(t *testing.T) {
	s := newSite(t, t.TempDir(), "a", "b")
	s.apply(withVolume)
	s.serve()
	p := s.pod("db-0")
	require.Equal(t, "a", p.node)
	require.Equal(t, []string{"data-db-0"}, p.Claims)
	claim := object.Key{Namespace: Namespace, Name: "data-db-0"}
	volumes, complete, err := s.Bound(context.Background(), []object.Key{claim})
	require.NoError(t, err)
	require.True(t, complete)
	require.Equal(t, []*drain.Volume{{Name: "volume-db-0", Claim: claim, Driver: driverName, Handle: "volume-db-0"}}, volumes)
	at := &drain.Attachment{Name: "volume-db-0-to-a", Volume: "volume-db-0", Node: "a", Attached: true}
	require.Equal(t, []*drain.Attachment{at}, s.attachments())

	s.change("a", func(n *machine.Node) { n.Unschedulable = true })
	require.Equal(t, drain.Accepted, s.evicts(p))
	s.looks()
	require.Len(t, s.pods, 1, "the name is taken")
	require.Equal(t, []*drain.Attachment{at}, s.attachments())

	lock, err := registry.Try(s.desk("a").Mount("volume-db-0")) // as its process would
	require.NoError(t, err)
	s.ended(p)
	next := s.pod("db-0")
	require.NotEqual(t, p.UID, next.UID)
	require.Equal(t, "b", next.node)
	require.False(t, s.attachments()[0].DeletedAt.IsZero(), "a process holds it")
	require.False(t, next.given, "its volume is elsewhere")
	require.NoFileExists(t, s.desk("b").Mount("volume-db-0"))

	lock.Release()
	s.looks()
	require.Equal(t, "b", s.attachments()[0].Node)
	require.Len(t, s.attachments(), 1)
	require.NoFileExists(t, s.desk("a").Mount("volume-db-0"))
	require.FileExists(t, s.desk("b").Mount("volume-db-0"))
	require.True(t, next.given)
	require.Equal(t, []string{
		"volume-db-0 is attached to a, for task db-0", "task db-0 is evicted from a",
		"volume-db-0 is detached from a: no process holds it", "volume-db-0 is attached to b, for task db-0",
	}, s.heard)
}

func TestVolumeOfALostNode(t *testing.T) {
	s := newSite(t, t.TempDir(), "a", "b")
	s.apply(withVolume)
	s.serve()
	s.leave("a")
	s.looks()
	require.Equal(t, "b", s.Where("db-0"))
	require.Len(t, s.attachments(), 1)
	require.Equal(t, "b", s.attachments()[0].Node)
}

func TestDetachByForce(t *testing.T) {
	s := newSite(t, t.TempDir(), "a")
	s.apply(withVolume)
	answer, err := s.Detach(context.Background(), "volume-db-0-to-a")
	require.NoError(t, err)
	require.Equal(t, drain.Accepted, answer.Result)
	answer, err = s.Detach(context.Background(), "volume-db-0-to-b")
	require.NoError(t, err)
	require.Equal(t, drain.NotFound, answer.Result)
	all, err := s.Attachments(context.Background(), "a", nil)
	require.NoError(t, err)
	require.False(t, all[0].DeletedAt.IsZero())

	// While a process holds it, it is attached to no other node, and not to this one again.
	lock, err := registry.Try(s.desk("a").Mount("volume-db-0"))
	require.NoError(t, err)
	s.looks()
	s.ended(s.pod("db-0"))
	require.False(t, s.pod("db-0").given)
	lock.Release()
	s.looks()
	require.True(t, s.pod("db-0").given)
	require.True(t, s.attachments()[0].DeletedAt.IsZero())
}

// TestWhatHasNotBegunMayGo: no budget is asked about a task that waits for its volume.
func TestWhatHasNotBegunMayGo(t *testing.T) {
	s := newSite(t, t.TempDir(), "a", "b")
	strict := withVolume
	strict.MaxUnavailable = 0
	s.apply(strict)
	s.serve()
	require.Equal(t, drain.Refused, s.evicts(s.pod("db-0")))
	lock, err := registry.Try(s.desk("a").Mount("volume-db-0"))
	require.NoError(t, err)
	defer lock.Release()
	s.change("a", func(n *machine.Node) { n.Unschedulable = true })
	s.ended(s.pod("db-0"))
	waiting := s.pod("db-0")
	require.False(t, waiting.given)
	require.Equal(t, drain.Accepted, s.evicts(waiting))
	require.Zero(t, s.Left(), "there is no process to wait for")
}
