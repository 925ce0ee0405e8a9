package procdriver_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
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
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/procdriver"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// programEnvironment is the variable that makes this test program another program, which starts one
// machine, "theirs", in the directory that the variable names. outlivesEnvironment is the variable that
// says how long the machine outlives the program.
const (
	programEnvironment  = "MILLWRIGHT_TEST_PROGRAM"
	outlivesEnvironment = "MILLWRIGHT_TEST_OUTLIVES"
)

// TestMain makes this test program a machine or another program, if it was started as one.
func TestMain(m *testing.M) {
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // machines under the race detector end at once
	agent.Main()
	if dir := os.Getenv(programEnvironment); dir != "" {
		if err := otherMain(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// otherMain is the main function of the other program.
func otherMain(dir string) error {
	lock, err := roster.Hold(context.Background(), filepath.Join(dir, "lock"))
	if err != nil {
		return err
	}
	outlives, _ := time.ParseDuration(os.Getenv(outlivesEnvironment)) // if empty or zero, the machine ends with the program
	d := procdriver.New(procdriver.Options{Dir: dir, Lock: lock.Name(), Outlives: outlives})
	_, err = d.CreateMachine(context.Background(), &driver.CreateMachineRequest{Machine: newMachine("theirs"), Class: class(blue)})
	fmt.Println("made")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	return errors.Join(err, lock.Close())
}

// patience is how long tests wait for something.
const patience = 2 * time.Minute

// site is a directory with rosters, which this program has locked.
type site struct {
	dir  string
	lock *os.File
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{dir: t.TempDir()}
	s.lockDir(t)
	t.Cleanup(func() {
		for _, cluster := range []string{"blue", "red"} {
			_, err := roster.Open(filepath.Join(s.dir, cluster)).End(context.Background())
			require.NoError(t, err)
		}
	})
	return s
}

// lockDir locks the directory for this program.
func (s *site) lockDir(t *testing.T) {
	t.Helper()
	var err error
	s.lock, err = roster.Hold(t.Context(), filepath.Join(s.dir, "lock"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.lock.Close() })
}

// driver returns a new driver.
func (s *site) driver() *procdriver.Driver {
	return procdriver.New(procdriver.Options{Dir: s.dir, Lock: s.lock.Name()})
}

func (s *site) running(t *testing.T) []roster.Entry {
	t.Helper()
	running, err := roster.Open(filepath.Join(s.dir, blue.Cluster)).Running()
	require.NoError(t, err)
	return running
}

// machineOfOtherProgram unlocks the directory, starts another program, which creates a machine, and
// kills the program. It returns the machine's process.
func (s *site) machineOfOtherProgram(t *testing.T, outlives time.Duration) roster.Entry {
	t.Helper()
	require.NoError(t, s.lock.Close())
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), programEnvironment+"="+s.dir, outlivesEnvironment+"="+outlives.String())
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = input.Close() })
	line, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "made", strings.TrimSpace(line))
	running := s.running(t)
	require.Len(t, running, 1)
	require.NoError(t, cmd.Process.Kill())
	require.ErrorContains(t, cmd.Wait(), "killed")
	return running[0]
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

func create(t *testing.T, d driver.Driver, name string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	a, err := d.CreateMachine(ctx, &driver.CreateMachineRequest{Machine: newMachine(name), Class: class(blue)})
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

func alive(t *testing.T, e roster.Entry) bool {
	t.Helper()
	now, err := roster.Read(e.Path)
	require.NoError(t, err)
	return now.Alive
}

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
		invalid.BootDelay = -1
		return drivertest.Setup{
			Driver: s.driver(), // no Again: a directory has one driver at a time
			Class:  class(blue),
			Secret: &machine.Secret{Data: map[string][]byte{
				machine.UserData: []byte("swordfish"), "password": []byte("correct horse"),
			}},
			Different:    class(different),
			OtherCluster: class(other),
			Invalid:      class(invalid),
			Count: func() int {
				n := 0
				for _, cluster := range []string{"blue", "red"} {
					running, err := roster.Open(filepath.Join(s.dir, cluster)).Running()
					require.NoError(t, err)
					n += len(running)
				}
				return n
			},
		}
	}})
}

// TestConcurrentCreatesStartOneProcess creates one machine from many goroutines. Exactly one process is
// started.
func TestConcurrentCreatesStartOneProcess(t *testing.T) {
	s := newSite(t)
	d := s.driver()
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			if _, err := create(t, d, "a"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	entries, err := d.Roster(blue.Cluster).Entries()
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

// TestProcessThatOutlivesItsProgramIsAdopted: the next program lists, adopts and deletes the process.
func TestProcessThatOutlivesItsProgramIsAdopted(t *testing.T) {
	s := newSite(t)
	theirs := s.machineOfOtherProgram(t, time.Hour)
	s.lockDir(t)
	d := s.driver()
	before, code := status(t, d, "theirs")
	require.Equal(t, codes.OK, code)
	list, err := d.ListMachines(t.Context(), &driver.ListMachinesRequest{Class: class(blue)})
	require.NoError(t, err)
	require.Equal(t, map[string]string{before: "theirs"}, list.Machines)
	id, err := create(t, d, "theirs")
	require.NoError(t, err)
	require.Equal(t, before, id)
	require.NoError(t, remove(t, d, "theirs", id))
	require.False(t, alive(t, theirs))
	_, code = status(t, d, "theirs")
	require.Equal(t, codes.NotFound, code)
}

// TestAbandonedProcessEnds: a process ends by itself once its program is gone, at once or after Outlives.
func TestAbandonedProcessEnds(t *testing.T) {
	for _, outlives := range []time.Duration{0, time.Second} {
		s := newSite(t)
		theirs := s.machineOfOtherProgram(t, outlives)
		eventually(t, "the end of the abandoned process", func() bool { return !alive(t, theirs) })
		now, err := roster.Read(theirs.Path)
		require.NoError(t, err)
		require.Equal(t, roster.Abandoned, now.State)
	}
}

func TestKilledProcessIsNotFoundAndGetsASuccessor(t *testing.T) {
	s := newSite(t)
	d := s.driver()
	first, err := create(t, d, "a")
	require.NoError(t, err)
	require.NoError(t, s.running(t)[0].Signal(syscall.SIGKILL))
	eventually(t, "the end of the killed process", func() bool {
		_, code := status(t, d, "a")
		return code == codes.NotFound
	})
	second, err := create(t, d, "a")
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	require.NoError(t, remove(t, d, "a", first))
	require.Len(t, s.running(t), 1, "the first ID must not delete the second process")
}

func TestProcessThatDoesNotEndIsKilled(t *testing.T) {
	s := newSite(t)
	d := s.driver()
	_, err := create(t, d, "a")
	require.NoError(t, err)
	process := s.running(t)[0]
	require.NoError(t, process.Signal(syscall.SIGSTOP)) // a stopped process does not handle SIGTERM
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = d.DeleteMachine(ctx, &driver.DeleteMachineRequest{Machine: newMachine("a"), Class: class(blue)})
	require.Equal(t, codes.DeadlineExceeded, codes.Of(err))
	_, code := status(t, d, "a")
	require.Equal(t, codes.OK, code, "the stopped process still exists")
	require.NoError(t, remove(t, s.driver(), "a", ""))
	require.False(t, alive(t, process))
}

func TestProcessWhoseEntryIsGoneEnds(t *testing.T) {
	s := newSite(t)
	_, err := create(t, s.driver(), "a")
	require.NoError(t, err)
	pid := s.running(t)[0].PID
	require.NoError(t, os.RemoveAll(filepath.Join(s.dir, blue.Cluster)))
	eventually(t, "the end of the process without an entry", func() bool { return syscall.Kill(pid, 0) != nil })
}

func FuzzSpec(f *testing.F) {
	d := procdriver.New(procdriver.Options{Dir: f.TempDir()})
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
