package workload

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/examples/quickstart/task"
)

// again returns the site as another program finds it.
func (s *site) again() *site {
	s.t.Helper()
	w, err := New(s.options)
	require.NoError(s.t, err)
	return &site{Workload: w, t: s.t, dir: s.dir, nodes: s.nodes}
}

// TestTasksOfAnEarlierProgramAreKnown: those that were ordered. No UID is given
// out twice.
func TestTasksOfAnEarlierProgramAreKnown(t *testing.T) {
	s := newSite(t, t.TempDir(), "a", "b")
	s.apply(front)
	s.serve()
	require.Equal(t, drain.Accepted, s.evicts(s.pod("front-2")))
	s.looks() // front-5 comes
	require.NoError(t, ledger.Hand{Path: s.options.Ledger, Machine: "front-9", Instance: "task-9"}.Enter(ledger.Ended, ""))

	next := s.again()
	next.looks()
	require.Zero(t, next.Left(), "whose they are is not known yet")
	next.apply(front)
	require.Equal(t, 5, next.Left())
	for _, p := range s.pods {
		found := next.pod(p.Name)
		require.Equal(t, p.UID, found.UID)
		require.Equal(t, p.node, found.node)
		require.Equal(t, p.number, found.number)
		require.Equal(t, p.Labels, found.Labels)
		require.Equal(t, p.going(), found.going(), p.Name)
		require.Equal(t, p.Name == "front-1" || p.Name == "front-3" || p.Name == "front-4", next.healthy(found), p.Name)
	}
	require.WithinDuration(t, time.Now().Add(front.Grace), next.pod("front-2").GraceEnds, time.Minute)
	require.Equal(t, drain.Refused, next.evicts(next.pod("front-1")), "the budget counts what was told to end")
	orders, err := s.desk(next.pod("front-2").node).Orders()
	require.NoError(t, err)
	require.True(t, orders["task-2"].Told)
	more := front
	more.Replicas = 5
	next.apply(more)
	require.Equal(t, "task-10", next.pod("front-10").UID)
	next.report(next.pod("front-2"), task.Ended)
	next.looks()
	require.Equal(t, 5, next.Left())
}

// TestVolumeOfAnEarlierProgramStaysAttached, so that no second node gets it.
func TestVolumeOfAnEarlierProgramStaysAttached(t *testing.T) {
	s := newSite(t, t.TempDir(), "a", "b")
	data := App{Name: "db", Replicas: 1, MaxUnavailable: 1, Volume: true}
	s.apply(data)
	s.serve()
	node := s.Where("db-0")
	require.NotEmpty(t, node)

	next := s.again()
	next.apply(App{Name: "d", Replicas: 1}) // not of its app, though its name begins the same
	require.Empty(t, next.Where("db-0"))
	next = s.again()
	next.apply(data)
	require.Equal(t, node, next.Where("db-0"))
	require.Equal(t, drain.Accepted, next.evicts(next.pod("db-0")))
	next = s.again()
	next.apply(data)
	require.True(t, next.pod("db-0").going())
	all, err := next.Attachments(t.Context(), node, nil)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, &drain.Attachment{Name: "volume-db-0-to-" + node, Volume: "volume-db-0", Node: node, Attached: true}, all[0])
}
