package procdriver_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/examples/quickstart/procdriver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// TestMain lets this test program be an agent, and a host of agents.
func TestMain(m *testing.M) {
	if agent.Ordered() {
		os.Exit(agent.Main())
	}
	if os.Getenv(hostEnvironment) != "" {
		os.Exit(hostMain())
	}
	os.Exit(m.Run())
}

// patience is how long tests wait for what takes a moment.
const patience = 2 * time.Minute

// agentEnv keeps agents under the race detector from pausing at their end.
var agentEnv = []string{"GORACE=atexit_sleep_ms=0"}

// site is a directory, a host and a ledger.
type site struct {
	dir  string
	host *procdriver.Host
	book *ledger.Book
}

func newSite(t *testing.T) *site {
	t.Helper()
	return siteAt(t, t.TempDir())
}

func siteAt(t *testing.T, dir string) *site {
	t.Helper()
	s := &site{dir: dir, book: ledger.Open(filepath.Join(dir, "ledger"))}
	var err error
	s.host, err = procdriver.NewHost(procdriver.HostOptions{Env: agentEnv, Ledger: s.book.Path()})
	require.NoError(t, err)
	t.Cleanup(func() { s.host.Close() })
	return s
}

// driver returns a driver without any state.
func (s *site) driver(t *testing.T) *procdriver.Driver {
	t.Helper()
	d, err := procdriver.New(procdriver.Options{Dir: filepath.Join(s.dir, "records"), Host: s.host, Grace: 200 * time.Millisecond})
	require.NoError(t, err)
	return d
}

// running returns the processes of a machine that hold its seat, by ledger and
// process table.
func (s *site) running(t *testing.T, name string) []ledger.Life {
	t.Helper()
	alive, err := s.book.Alive()
	require.NoError(t, err)
	var of []ledger.Life
	for _, life := range alive {
		if life.Machine == name {
			of = append(of, life)
		}
	}
	return of
}

func (s *site) account(t *testing.T) ledger.Account {
	t.Helper()
	a, err := s.book.Account()
	require.NoError(t, err)
	return a
}

func class(spec procdriver.Spec) *machine.Class {
	return &machine.Class{
		Meta:     object.Meta{Key: object.Key{Namespace: "fleet", Name: "small"}},
		Provider: procdriver.Provider, ProviderSpec: spec.Encode(),
	}
}

var blue = procdriver.Spec{Cluster: "blue", Version: "v1"}

func newMachine(name string) *machine.Machine {
	return &machine.Machine{
		Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: name}},
		Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}},
	}
}

func create(t *testing.T, d driver.Driver, name string, spec procdriver.Spec) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	a, err := d.CreateMachine(ctx, &driver.CreateMachineRequest{Machine: newMachine(name), Class: class(spec)})
	if err != nil {
		return "", err
	}
	return a.ProviderID, nil
}

func remove(t *testing.T, d driver.Driver, name, id string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	m := newMachine(name)
	m.Spec.ProviderID = id
	_, err := d.DeleteMachine(ctx, &driver.DeleteMachineRequest{Machine: m, Class: class(blue)})
	return err
}

func status(t *testing.T, d driver.Driver, name string) (string, codes.Code) {
	t.Helper()
	a, err := d.GetMachineStatus(t.Context(), &driver.GetMachineStatusRequest{Machine: newMachine(name), Class: class(blue)})
	if err != nil {
		return "", codes.Of(err)
	}
	return a.ProviderID, codes.OK
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, patience, 5*time.Millisecond, what)
}

func TestConformance(t *testing.T) {
	drivertest.Run(t, drivertest.Suite{New: func(t *testing.T) drivertest.Setup {
		s := newSite(t)
		different, other, invalid := blue, blue, blue
		different.Version = "v2"
		other.Cluster = "red"
		invalid.BootDelay = "soon"
		return drivertest.Setup{
			Driver: &forgetful{Driver: s.driver(t)},
			Class:  class(blue),
			Secret: &machine.Secret{Data: map[string][]byte{
				machine.UserData: []byte(`{"socket": "/nowhere", "token": "swordfish"}`), "password": []byte("correct horse"),
			}},
			Different:    class(different),
			OtherCluster: class(other),
			Invalid:      class(invalid),
			Count: func() int {
				alive, err := s.book.Alive()
				require.NoError(t, err)
				return len(alive)
			},
		}
	}})
}

// forgetful loses answers on request.
type forgetful struct {
	driver.Driver
	lost map[codes.Call][]error
}

// Unwrap returns the driver that does the work.
func (f *forgetful) Unwrap() driver.Driver { return f.Driver }

// FailAfter implements driver.FaultHook. The suite loses answers one at a time.
func (f *forgetful) FailAfter(call codes.Call, err error) {
	if f.lost == nil {
		f.lost = make(map[codes.Call][]error)
	}
	f.lost[call] = append(f.lost[call], err)
}

func (f *forgetful) loses(call codes.Call, err error) error {
	if err != nil || len(f.lost[call]) == 0 {
		return err
	}
	err, f.lost[call] = f.lost[call][0], f.lost[call][1:]
	return err
}

func (f *forgetful) CreateMachine(ctx context.Context, q *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	a, err := f.Driver.CreateMachine(ctx, q)
	if err := f.loses(codes.CreateMachine, err); err != nil {
		return nil, err
	}
	return a, nil
}

func (f *forgetful) DeleteMachine(ctx context.Context, q *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	a, err := f.Driver.DeleteMachine(ctx, q)
	if err := f.loses(codes.DeleteMachine, err); err != nil {
		return nil, err
	}
	return a, nil
}
