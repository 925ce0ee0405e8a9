package groupdriver_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/examples/pool/group"
	"github.com/millwright-go/millwright/examples/pool/groupdriver"
	"github.com/millwright-go/millwright/examples/pool/supervisor"
	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/examples/quickstart/procdriver"
	"github.com/millwright-go/millwright/examples/quickstart/registry"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/machinepool/pooldriver/pooldrivertest"
	"github.com/millwright-go/millwright/object"
)

// TestMain lets this test program be an agent, a supervisor and a provider.
func TestMain(m *testing.M) {
	switch {
	case agent.Ordered():
		os.Exit(agent.Main())
	case supervisor.Ordered():
		os.Exit(supervisor.Main())
	case os.Getenv(providerEnvironment) != "":
		os.Exit(providerMain())
	}
	os.Exit(m.Run())
}

// patience is how long tests wait for what takes a moment.
const patience = 2 * time.Minute

// site is a directory with a host and its ledgers.
type site struct {
	t           testing.TB
	dir         string
	host        *groupdriver.Host
	driver      *groupdriver.Driver
	agents      *ledger.Book
	supervisors *ledger.Book
}

func options(dir string) groupdriver.HostOptions {
	return groupdriver.HostOptions{
		Dir: filepath.Join(dir, "groups"), Agents: filepath.Join(dir, "agents"), Supervisors: filepath.Join(dir, "supervisors"),
		Env: []string{"GORACE=atexit_sleep_ms=0"}, Grace: 500 * time.Millisecond,
	}
}

func newSite(t testing.TB) *site {
	t.Helper()
	return siteAt(t, t.TempDir())
}

func siteAt(t testing.TB, dir string) *site {
	t.Helper()
	return siteWith(t, options(dir))
}

func siteWith(t testing.TB, o groupdriver.HostOptions) *site {
	t.Helper()
	s := &site{t: t, dir: o.Dir, agents: ledger.Open(o.Agents), supervisors: ledger.Open(o.Supervisors)}
	var err error
	s.host, err = groupdriver.NewHost(o)
	require.NoError(t, err)
	s.driver = groupdriver.New(s.host)
	t.Cleanup(s.close)
	return s
}

// close ends what a test has left, first the processes that would start others.
func (s *site) close() {
	s.host.Close()
	_, err := s.agents.Kill()
	require.NoError(s.t, err)
	s.await("the end of agents", func() bool {
		left, err := s.agents.Survivors()
		return err == nil && len(left) == 0
	})
}

// await waits until a condition holds. It can be called from any goroutine.
func (s *site) await(what string, holds func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for !holds() {
		if registry.Pause(ctx) != nil {
			s.t.Errorf("not within %s: %s", patience, what)
			return
		}
	}
}

func (s *site) running() []ledger.Life {
	s.t.Helper()
	alive, err := s.agents.Alive()
	require.NoError(s.t, err)
	return alive
}

// atRest reports whether every group is as its record requires.
func (s *site) atRest() bool {
	for _, cluster := range []string{blue.Cluster, red.Cluster} {
		dir := group.At(supervisor.Groups(s.dir, cluster))
		names, err := dir.Names()
		require.NoError(s.t, err)
		for _, name := range names {
			g, err := dir.Read(name)
			require.NoError(s.t, err)
			if g != nil && !rests(g) {
				return false
			}
		}
	}
	return true
}

func rests(g *group.Group) bool {
	for _, m := range g.Members {
		if m.ProviderID == "" || m.Going || m.Spec != g.Spec {
			return false
		}
	}
	return !g.Going && len(g.Members) == g.Target
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
		s := newSite(t)
		return pooldrivertest.Setup{
			Driver: newForgetful(s.driver),
			Class:  class(blue),
			Secret: &machine.Secret{Data: map[string][]byte{"password": []byte("correct horse")}},
			Bootstrap: &machine.Secret{Data: map[string][]byte{
				machine.UserData: []byte(`{"socket": "/nowhere", "node": "any", "token": "swordfish"}`),
			}},
			Changed:      changed(func(s *procdriver.Spec) { s.Version = "v2" }),
			OtherCluster: class(red),
			Invalid:      changed(func(s *procdriver.Spec) { s.BootDelay = "soon" }),
			Settle:       func(context.Context) { s.await("groups as they are wanted", s.atRest) },
			Count:        func() int { return len(s.running()) },
			AskDrain:     func(id string) { require.NoError(t, s.driver.Ask(t.Context(), id)) },
		}
	}})
}

// forgetful loses answers on request.
type forgetful struct {
	pooldriver.Driver
	inner pooldriver.Driver
	lost  map[driver.Method][]error
}

func newForgetful(d pooldriver.Driver) *forgetful {
	f := &forgetful{inner: d, lost: make(map[driver.Method][]error)}
	f.Driver = pooldriver.Intercept(d, func(ctx context.Context, s driver.CallInfo, next func(context.Context) error) error {
		err := next(ctx)
		if lost := f.lost[s.Method]; err == nil && len(lost) > 0 {
			err, f.lost[s.Method] = lost[0], lost[1:]
		}
		return err
	})
	return f
}

// Unwrap leads to the driver that does the work.
func (f *forgetful) Unwrap() pooldriver.Driver { return f.inner }

// FailPoolAfter implements pooldriver.FaultHook. The suite loses answers one at a
// time.
func (f *forgetful) FailPoolAfter(call machinepool.Call, err error) {
	f.lost[call] = append(f.lost[call], err)
}
