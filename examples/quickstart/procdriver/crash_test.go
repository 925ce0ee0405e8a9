package procdriver_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/examples/quickstart/procdriver"
	"github.com/millwright-go/millwright/examples/quickstart/procid"
	"github.com/millwright-go/millwright/examples/quickstart/registry"
	"github.com/millwright-go/millwright/machine"
)

func userData(text string) *machine.Secret {
	return &machine.Secret{Data: map[string][]byte{machine.UserData: []byte(text)}}
}

func (s *site) records(t *testing.T) *registry.Dir {
	t.Helper()
	dir, err := registry.Make(filepath.Join(s.dir, "records", blue.Cluster))
	require.NoError(t, err)
	return dir
}

// record does what a driver does before it starts a process.
func (s *site) record(t *testing.T, name, instance string) {
	t.Helper()
	seat, err := s.records(t).TakeSeat(name)
	require.NoError(t, err)
	defer seat.Release()
	spec, err := json.Marshal(blue)
	require.NoError(t, err)
	require.NoError(t, seat.Write(&registry.Record{Machine: name, Instance: instance, Spec: spec}))
}

// agent returns a process as a driver would start it.
func (s *site) agent(t *testing.T, name, instance string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(program)
	order := agent.Order{
		Machine: name, Instance: instance, Registry: s.records(t).Path(), Ledger: s.book.Path(), Outlives: true,
	}
	cmd.Env = append(order.Environ(), agentEnv...)
	return cmd
}

// startAgent starts a process as a driver does.
func (s *site) startAgent(t *testing.T, name, instance string) *exec.Cmd {
	t.Helper()
	cmd := s.agent(t, name, instance)
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _, _, _ = input.Close(), cmd.Process.Kill(), cmd.Wait() })
	require.NoError(t, agent.Send(input, nil))
	return cmd
}

func TestFreshDriverKnowsWhatTheOneBeforeDid(t *testing.T) {
	s := newSite(t)
	id, err := create(t, s.driver(t), "a", blue)
	require.NoError(t, err)

	d := s.driver(t)
	found, code := status(t, d, "a")
	require.Equal(t, codes.OK, code)
	require.Equal(t, id, found)
	list, err := d.ListMachines(t.Context(), &driver.ListMachinesRequest{Class: class(blue)})
	require.NoError(t, err)
	require.Equal(t, map[string]string{id: "a"}, list.Machines)
	again, err := create(t, d, "a", blue)
	require.NoError(t, err)
	require.Equal(t, id, again)
	require.NoError(t, remove(t, d, "a", ""))
	require.Equal(t, ledger.Account{Created: 1, Deleted: 1}, s.account(t))
}

// TestDriversTogetherStartOneProcess lets drivers that know nothing of each other create one
// machine at the same time.
func TestDriversTogetherStartOneProcess(t *testing.T) {
	s := newSite(t)
	const drivers = 6
	var ids [drivers]string
	var all sync.WaitGroup
	for i := range drivers {
		d := s.driver(t)
		all.Go(func() {
			var err error
			if ids[i], err = create(t, d, "a", blue); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		require.Equal(t, ids[0], id)
	}
	lives, err := s.book.Lives()
	require.NoError(t, err)
	require.Len(t, lives, 1, "one process was started, none turned away")
}

func TestCrashBetweenRecordAndStart(t *testing.T) {
	s := newSite(t)
	s.record(t, "a", "lost")
	d := s.driver(t)
	_, code := status(t, d, "a")
	require.Equal(t, codes.NotFound, code)
	id, err := create(t, d, "a", blue)
	require.NoError(t, err)
	require.NotContains(t, id, "lost")
	require.Len(t, s.running(t, "a"), 1)

	s.record(t, "b", "lost")
	require.NoError(t, remove(t, d, "b", ""), "nothing was started, so it is gone")
	list, err := s.records(t).List()
	require.NoError(t, err)
	require.Len(t, list, 1)
}

// TestLateProcessIsTurnedAway starts the process of a create that died right before that moment,
// when its machine has another process or is deleted.
func TestLateProcessIsTurnedAway(t *testing.T) {
	s := newSite(t)
	d := s.driver(t)
	s.record(t, "a", "late")
	id, err := create(t, d, "a", blue)
	require.NoError(t, err)
	late := s.startAgent(t, "a", "late")
	require.ErrorContains(t, late.Wait(), "exit status 75")
	require.Len(t, s.running(t, "a"), 1)
	found, _ := status(t, d, "a")
	require.Equal(t, id, found)

	s.record(t, "b", "later")
	require.NoError(t, remove(t, d, "b", ""))
	require.ErrorContains(t, s.startAgent(t, "b", "later").Wait(), "exit status 75")
	require.Empty(t, s.running(t, "b"))

	s.record(t, "c", "late")
	s.record(t, "c", "wanted") // and this one has not been started yet
	require.ErrorContains(t, s.startAgent(t, "c", "late").Wait(), "exit status 75")
	require.Empty(t, s.running(t, "c"))
	require.Zero(t, s.account(t).Duplicates)
}

// TestProcessThatIsUpIsAdopted: the create that started it died before it could answer.
func TestProcessThatIsUpIsAdopted(t *testing.T) {
	s := newSite(t)
	s.record(t, "a", "orphaned")
	s.startAgent(t, "a", "orphaned")
	eventually(t, "it is up", func() bool { return len(s.running(t, "a")) == 1 })
	id, err := create(t, s.driver(t), "a", blue)
	require.NoError(t, err)
	require.Equal(t, procdriver.ProviderID("blue", "a", "orphaned"), id)
	require.Equal(t, 1, s.account(t).Created)
}

func TestKilledProcessIsNotFoundAndGetsASuccessor(t *testing.T) {
	s := newSite(t)
	d := s.driver(t)
	first, err := create(t, d, "a", blue)
	require.NoError(t, err)
	process := s.running(t, "a")[0].ID
	require.NoError(t, process.Signal(syscall.SIGKILL))
	eventually(t, "it is not there any more", func() bool {
		_, code := status(t, d, "a")
		return code == codes.NotFound
	})
	second, err := create(t, d, "a", blue)
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	require.NoError(t, remove(t, d, "a", first))
	require.Len(t, s.running(t, "a"), 1, "the first one's ID is not the second one's")
	require.Zero(t, s.account(t).Duplicates)
}

// TestRecycledPIDIsNeitherMistakenNorKilled records a bystander whose PID a machine's process had
// before it.
func TestRecycledPIDIsNeitherMistakenNorKilled(t *testing.T) {
	s := newSite(t)
	bystander := exec.Command("sleep", "600")
	require.NoError(t, bystander.Start())
	t.Cleanup(func() { _, _ = bystander.Process.Kill(), bystander.Wait() })
	id, err := procid.Of(bystander.Process.Pid)
	require.NoError(t, err)

	s.record(t, "a", "before")
	r := registry.Record{Machine: "a", Instance: "before"}
	seat, err := s.records(t).Occupy(t.Context(), r, procid.ID{PID: id.PID, Start: id.Start + "0"})
	require.NoError(t, err)
	seat.Release()

	d := s.driver(t)
	_, code := status(t, d, "a")
	require.Equal(t, codes.NotFound, code)
	made, err := create(t, d, "a", blue)
	require.NoError(t, err)
	require.False(t, strings.HasSuffix(made, "/before"))
	require.NoError(t, remove(t, d, "a", ""))
	require.True(t, id.Alive())
}

func TestProcessThatDoesNotEndIsKilled(t *testing.T) {
	s := newSite(t)
	d := s.driver(t)
	_, err := create(t, d, "a", blue)
	require.NoError(t, err)
	process := s.running(t, "a")[0].ID
	require.NoError(t, process.Signal(syscall.SIGSTOP)) // it will not hear SIGTERM
	require.NoError(t, remove(t, d, "a", ""))
	require.False(t, process.Alive())
	lives, err := s.book.Lives()
	require.NoError(t, err)
	require.True(t, lives[0].Ended)
}

func TestDeleteThatIsGivenUpIsTakenUp(t *testing.T) {
	s := newSite(t)
	d := s.driver(t)
	_, err := create(t, d, "a", blue)
	require.NoError(t, err)
	process := s.running(t, "a")[0].ID
	require.NoError(t, process.Signal(syscall.SIGSTOP))

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = d.DeleteMachine(ctx, &driver.DeleteMachineRequest{Machine: newMachine("a"), Class: class(blue)})
	require.Equal(t, codes.DeadlineExceeded, codes.Of(err))
	_, code := status(t, d, "a")
	require.Equal(t, codes.OK, code, "it is still there")
	require.NoError(t, remove(t, s.driver(t), "a", ""))
	require.False(t, process.Alive())
}

func TestProcessWhoseRecordIsGoneEnds(t *testing.T) {
	s := newSite(t)
	_, err := create(t, s.driver(t), "a", blue)
	require.NoError(t, err)
	process := s.running(t, "a")[0].ID
	require.NoError(t, os.RemoveAll(filepath.Join(s.dir, "records")))
	eventually(t, "it ends by itself", func() bool { return !process.Alive() })
}

func FuzzSpec(f *testing.F) {
	host, err := procdriver.NewHost(procdriver.HostOptions{Program: "/nowhere"})
	require.NoError(f, err)
	d, err := procdriver.New(procdriver.Options{Dir: f.TempDir(), Host: host})
	require.NoError(f, err)
	f.Add(blue.Encode(), "")
	f.Add([]byte(`{"cluster": "../.."}`), "process:///blue/../x")
	f.Add([]byte(`{"cluster": "a", "size": 3}`), procdriver.ProviderID("blue", "a", "one"))
	f.Fuzz(func(t *testing.T, spec []byte, id string) {
		c, m := class(blue), newMachine("a")
		c.ProviderSpec, m.Spec.ProviderID = spec, id
		_, err := d.GetMachineStatus(t.Context(), &driver.GetMachineStatusRequest{Machine: m, Class: c})
		switch code := codes.Of(err); code {
		case codes.NotFound, codes.Internal, codes.InvalidArgument:
		default:
			t.Errorf("spec %q, ID %q: %v", spec, id, err)
		}
	})
}
