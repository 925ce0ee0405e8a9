package groupdriver_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/examples/pool/group"
	"github.com/millwright-go/millwright/examples/pool/groupdriver"
	"github.com/millwright-go/millwright/examples/pool/supervisor"
	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/procdriver"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/machinepool/pooldriver/pooldrivertest"
	"github.com/millwright-go/millwright/object"
)

// TestMain makes this test program an agent, a supervisor or a provider, if it was started as one.
func TestMain(m *testing.M) {
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // processes under the race detector end at once
	agent.Main()
	supervisor.Main()
	if os.Getenv(providerEnvironment) != "" {
		os.Exit(providerMain())
	}
	os.Exit(m.Run())
}

// patience is how long tests wait for something.
const patience = 2 * time.Minute

// site is a driver with its directory. This program is the provider, and has locked the file Lock.
type site struct {
	t           testing.TB
	dir         string
	driver      *groupdriver.Driver
	agents      []*roster.Roster // of both clusters
	supervisors *roster.Roster
}

func options(dir string) groupdriver.HostOptions {
	return groupdriver.HostOptions{Dir: filepath.Join(dir, "groups"), Lock: filepath.Join(dir, "lock"), Alone: time.Hour}
}

func newSite(t testing.TB) *site {
	t.Helper()
	return siteWith(t, options(t.TempDir()))
}

func siteWith(t testing.TB, o groupdriver.HostOptions) *site {
	t.Helper()
	lock, err := roster.Hold(t.Context(), o.Lock)
	require.NoError(t, err)
	s := &site{
		t: t, dir: o.Dir, driver: groupdriver.New(groupdriver.NewHost(o)),
		supervisors: roster.Open(supervisor.Supervisors(o.Dir)),
	}
	for _, cluster := range []string{blue.Cluster, red.Cluster} {
		s.agents = append(s.agents, roster.Open(filepath.Join(supervisor.Agents(o.Dir), cluster)))
	}
	t.Cleanup(func() {
		for _, r := range append([]*roster.Roster{s.supervisors}, s.agents...) { // supervisors first, because they would start agents
			_, err := r.End(context.Background())
			require.NoError(t, err)
		}
		_ = lock.Close()
	})
	return s
}

// await waits until a condition holds. It can be called from any goroutine.
func (s *site) await(what string, holds func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for !holds() {
		if roster.Pause(ctx) != nil {
			s.t.Errorf("not within %s: %s", patience, what)
			return
		}
	}
}

func (s *site) running() (all []roster.Entry) {
	s.t.Helper()
	for _, r := range s.agents {
		running, err := r.Running()
		require.NoError(s.t, err)
		all = append(all, running...)
	}
	return all
}

// created returns how many agents have been started.
func (s *site) created() (n int) {
	s.t.Helper()
	for _, r := range s.agents {
		entries, err := r.Entries()
		require.NoError(s.t, err)
		n += len(entries)
	}
	return n
}

// groups returns the names of all groups with a record.
func (s *site) groups() (all []string) {
	s.t.Helper()
	for _, cluster := range []string{blue.Cluster, red.Cluster} {
		names, err := group.At(supervisor.Groups(s.dir, cluster)).Names()
		require.NoError(s.t, err)
		all = append(all, names...)
	}
	return all
}

// atRest reports whether every group has exactly the agents that its record asks for.
func (s *site) atRest() bool {
	for _, cluster := range []string{blue.Cluster, red.Cluster} {
		dir := group.At(supervisor.Groups(s.dir, cluster))
		names, err := dir.Names()
		require.NoError(s.t, err)
		for _, name := range names {
			g, err := dir.Read(name)
			require.NoError(s.t, err)
			if g != nil && !groupAtRest(g) {
				return false
			}
		}
	}
	return true
}

func groupAtRest(g *group.Group) bool {
	for _, m := range g.Members {
		if m.ProviderID == "" || m.Terminating || m.Spec != g.Spec {
			return false
		}
	}
	return !g.Deleting && len(g.Members) == g.Target
}

var (
	blue = procdriver.Spec{Cluster: "blue", Version: "v1"}
	red  = procdriver.Spec{Cluster: "red", Version: "v1"}
)

func class(spec procdriver.Spec) *machine.Class {
	return &machine.Class{
		Meta:     object.Meta{Key: object.Key{Namespace: "fleet", Name: "small"}},
		Provider: procdriver.Provider, ProviderSpec: spec.Encode(),
	}
}

func changed(change func(*procdriver.Spec)) *machine.Class {
	spec := blue
	change(&spec)
	return class(spec)
}

func TestConformance(t *testing.T) {
	pooldrivertest.Run(t, pooldrivertest.Suite{New: func(t *testing.T) pooldrivertest.Setup {
		o := options(t.TempDir())
		s := siteWith(t, o)
		return pooldrivertest.Setup{
			Driver: s.driver,
			Again:  func() pooldriver.Driver { return groupdriver.New(groupdriver.NewHost(o)) },
			Class:  class(blue),
			Secret: &machine.Secret{Data: map[string][]byte{"password": []byte("correct horse")}},
			Bootstrap: &machine.Secret{Data: map[string][]byte{
				machine.UserData: []byte("swordfish"),
			}},
			Changed:      changed(func(s *procdriver.Spec) { s.Version = "v2" }),
			OtherCluster: class(red),
			Invalid:      changed(func(s *procdriver.Spec) { s.BootDelay = -1 }),
			Settle:       func(context.Context) { s.await("groups as they are wanted", s.atRest) },
			Count:        func() int { return len(s.running()) },
			Leftovers:    s.groups,
			AskDrain:     func(id string) { require.NoError(t, s.driver.RequestDrain(t.Context(), id)) },
		}
	}})
}
