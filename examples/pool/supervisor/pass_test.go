package supervisor

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/examples/pool/group"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/examples/quickstart/procdriver"
	"github.com/millwright-go/millwright/examples/quickstart/procid"
	"github.com/millwright-go/millwright/examples/quickstart/registry"
)

// TestStatesAreAsNewAsTheRecord: all agents serve, and then a new spec is entered while a pass waits
// for the record. Only one agent is replaced.
func TestStatesAreAsNewAsTheRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &supervisor{Order: Order{Root: t.TempDir(), Cluster: "blue", Group: "fleet_web"}}
		s.held = time.Now().Add(time.Hour) // nothing is carried out
		path := filepath.Join(s.Root, "ledger")
		s.agents, s.dir = ledger.Open(path), group.At(Groups(s.Root, s.Cluster))
		require.NoError(t, s.dir.Make())
		require.NoError(t, group.WriteProvider(Provider(s.Root)))
		var err error
		s.self, err = procid.Self()
		require.NoError(t, err)
		s.host, err = procdriver.NewHost(procdriver.HostOptions{})
		require.NoError(t, err)
		s.driver, err = procdriver.New(procdriver.Options{Dir: Agents(s.Root), Host: s.host})
		require.NoError(t, err)

		g := &group.Group{ID: "web-1", Target: 2, Spec: procdriver.Spec{Cluster: s.Cluster, Version: "v1"}}
		for _, name := range []string{"a", "b"} {
			g.Members = append(g.Members, group.Member{
				Name: name, Spec: g.Spec, ProviderID: procdriver.ProviderID(s.Cluster, name, name),
			})
			s.runs(t, name)
		}
		passed := make(chan error)
		require.NoError(t, s.dir.Change(t.Context(), s.Group, func(*group.Group) (*group.Group, error) {
			go func() {
				_, err := s.pass(context.Background())
				passed <- err
			}()
			synctest.Wait() // it waits for its turn
			for _, name := range []string{"a", "b"} {
				// Its end is entered too, or else it would be adopted.
				for _, event := range []ledger.Event{ledger.Born, ledger.Serving, ledger.Ended} {
					require.NoError(t, ledger.Hand{Path: path, Machine: name, Instance: name, ID: s.self}.Enter(event, ""))
				}
			}
			g.Spec.Version = "v2"
			return g, nil
		}))
		require.NoError(t, <-passed)
		g, err = s.dir.Read(s.Group)
		require.NoError(t, err)
		require.Len(t, g.Members, 3, "one more comes")
		require.True(t, g.Members[0].Going)
		require.False(t, g.Members[1].Going, "the other one still serves")
	})
}

// runs lets this process be an agent.
func (s *supervisor) runs(t *testing.T, name string) {
	t.Helper()
	d, err := registry.Make(AgentsOf(s.Root, s.Cluster))
	require.NoError(t, err)
	record := registry.Record{Machine: name, Instance: name, Spec: []byte("{}")}
	seat, err := d.TakeSeat(name)
	require.NoError(t, err)
	require.NoError(t, seat.Write(&record))
	seat.Release()
	lock, err := d.Occupy(t.Context(), record, s.self)
	require.NoError(t, err)
	t.Cleanup(lock.Release)
}
