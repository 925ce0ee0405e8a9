package supervisor

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/examples/pool/group"
	"github.com/millwright-go/millwright/examples/quickstart/procdriver"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
)

// TestStatesAreNewerThanTheRecord: while a pass waits for the record, the agents begin to serve, and
// then the record gets a new spec. Only one agent is replaced.
func TestStatesAreNewerThanTheRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &supervisor{Args: Args{Root: t.TempDir(), Cluster: "blue", Group: "fleet_web"}}
		s.retryAt = time.Now().Add(time.Hour) // nothing is carried out
		s.dir, s.lastProvider = group.At(Groups(s.Root, s.Cluster)), time.Now()
		require.NoError(t, s.dir.Make())
		provider, err := roster.Hold(t.Context(), filepath.Join(s.Root, "lock"))
		require.NoError(t, err)
		defer func() { _ = provider.Close() }()
		s.Provider = provider.Name()
		s.driver = procdriver.New(procdriver.Options{Dir: Agents(s.Root), Lock: s.Provider})

		g := &group.Group{ID: "web-1", Target: 2, Spec: procdriver.Spec{Cluster: s.Cluster, Version: "v1"}}
		agents := make(map[string]*os.File)
		for _, name := range []string{"a", "b"} {
			g.Members = append(g.Members, group.Member{
				Name: name, Spec: g.Spec, ProviderID: procdriver.ProviderID(s.Cluster, name, name),
			})
			agents[name] = s.fakeAgent(t, name)
		}
		passed := make(chan error)
		require.NoError(t, s.dir.Change(t.Context(), s.Group, func(*group.Group) (*group.Group, error) {
			go func() {
				_, err := s.pass(context.Background())
				passed <- err
			}()
			synctest.Wait() // the pass waits for the record
			for _, name := range []string{"a", "b"} {
				_, err := agents[name].WriteString(`{"state":"serving"}` + "\n")
				require.NoError(t, err)
			}
			g.Spec.Version = "v2"
			return g, nil
		}))
		require.NoError(t, <-passed)
		g, err = s.dir.Read(s.Group)
		require.NoError(t, err)
		require.Len(t, g.Members, 3, "one is added")
		require.True(t, g.Members[0].Terminating)
		require.False(t, g.Members[1].Terminating, "the other one still serves")
	})
}

// fakeAgent adds this process to the roster as an agent, and returns the entry's file.
func (s *supervisor) fakeAgent(t *testing.T, name string) *os.File {
	t.Helper()
	dir := filepath.Join(Agents(s.Root), s.Cluster)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	file, err := roster.Hold(t.Context(), filepath.Join(dir, name))
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	_, err = file.WriteString(`{"name":"` + name + `","pid":1}` + "\n")
	require.NoError(t, err)
	return file
}
