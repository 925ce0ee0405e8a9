package groupdriver_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/examples/pool/group"
	"github.com/millwright-go/millwright/examples/pool/groupdriver"
	"github.com/millwright-go/millwright/examples/pool/supervisor"
	"github.com/millwright-go/millwright/examples/quickstart/procdriver"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/object"
)

// providerEnvironment is the variable that makes this test program a provider, in the directory that
// it names. The program creates a group of three, writes the file "made", and waits to be killed.
const providerEnvironment = "MILLWRIGHT_TEST_PROVIDER"

func providerMain() int {
	dir := os.Getenv(providerEnvironment)
	o := options(dir)
	lock, err := roster.Hold(context.Background(), o.Lock)
	if err != nil {
		return 1
	}
	d := groupdriver.New(groupdriver.NewHost(o))
	_, err = d.CreatePool(context.Background(), &pooldriver.CreatePoolRequest{Request: request("web", blue), Replicas: 3})
	if err != nil || os.WriteFile(filepath.Join(dir, "made"), nil, 0o600) != nil {
		return 1
	}
	_, _ = os.Stdin.Read(make([]byte, 1))
	_ = lock.Close()
	return 0
}

func request(name string, spec procdriver.Spec) pooldriver.Request {
	return pooldriver.Request{
		Pool:  &machinepool.Pool{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: name}}},
		Class: class(spec),
	}
}

func (s *site) create(name string, n int32) {
	s.t.Helper()
	_, err := s.driver.CreatePool(s.t.Context(), &pooldriver.CreatePoolRequest{Request: request(name, blue), Replicas: n})
	require.NoError(s.t, err)
	s.await("the group", s.atRest)
}

func (s *site) status(name string) *pooldriver.GetPoolStatusResponse {
	s.t.Helper()
	a, err := s.driver.GetPoolStatus(s.t.Context(), &pooldriver.GetPoolStatusRequest{Request: request(name, blue)})
	require.NoError(s.t, err)
	return a
}

func (s *site) remove(name string) {
	s.t.Helper()
	_, err := s.driver.DeletePool(s.t.Context(), &pooldriver.DeletePoolRequest{Request: request(name, blue)})
	require.NoError(s.t, err)
}

// supervisor returns the running supervisor, or a zero entry.
func (s *site) supervisor() (found roster.Entry) {
	s.t.Helper()
	running, err := s.supervisors.Running()
	require.NoError(s.t, err)
	for _, e := range running {
		e.Beat = time.Time{}
		found = e
	}
	return found
}

func (s *site) alive(e roster.Entry) bool {
	s.t.Helper()
	now, err := roster.Read(e.Path)
	require.NoError(s.t, err)
	return now.Alive
}

func (s *site) record(name string) *group.Group {
	s.t.Helper()
	g, err := group.At(supervisor.Groups(s.dir, blue.Cluster)).Read(groupdriver.Name(request(name, blue).Pool.Key))
	require.NoError(s.t, err)
	return g
}

// instances returns the instances of the running agents.
func (s *site) instances() []string {
	var all []string
	for _, e := range s.running() {
		all = append(all, e.Instance)
	}
	slices.Sort(all)
	return all
}

// TestDeletedGroupLeavesNothing: no process and no record of a deleted group is left.
func TestDeletedGroupLeavesNothing(t *testing.T) {
	s := newSite(t)
	s.create("web", 3)
	s.create("web", 3)
	require.Len(t, s.running(), 3)
	s.remove("web")
	supervisors, err := s.supervisors.Entries()
	require.NoError(t, err)
	require.Len(t, supervisors, 1, "a second supervisor was started")
	require.False(t, supervisors[0].Alive)
	require.Empty(t, s.running())
	require.Equal(t, 3, s.created())
	require.Nil(t, s.record("web"))
}

// TestLostAgentIsReplaced: a supervisor replaces a lost agent.
func TestLostAgentIsReplaced(t *testing.T) {
	s := newSite(t)
	s.create("web", 2)
	before := s.status("web").Instances
	victim := s.running()[0]
	require.NoError(t, victim.Signal(syscall.SIGKILL))
	s.await("another agent", func() bool {
		now := s.instances()
		return len(now) == 2 && !slices.Contains(now, victim.Instance) && s.atRest()
	})
	after := s.status("web").Instances
	require.Len(t, after, 2)
	require.NotEqual(t, before, after)
}

// TestLostSupervisor: a group whose supervisor was killed reports that, until Revive starts another
// supervisor. That takes over the same agents, and replaces one that was killed meanwhile.
func TestLostSupervisor(t *testing.T) {
	s := newSite(t)
	s.create("web", 3)
	before := s.instances()
	first := s.supervisor()
	require.NoError(t, first.Signal(syscall.SIGKILL))
	s.await("the end of the supervisor", func() bool { return !s.alive(first) })
	for range 2 {
		a := s.status("web")
		require.False(t, a.Ready)
		require.Equal(t, "the supervisor of group "+a.GroupID+" is gone: nothing supervises its agents", a.Failure)
		require.Len(t, a.Instances, 3)
	}
	require.Equal(t, before, s.instances(), "agents don't end with their supervisor")
	victim := s.running()[0]
	require.NoError(t, victim.Signal(syscall.SIGKILL))
	s.await("the end of an agent", func() bool { return !s.alive(victim) })

	require.NoError(t, s.driver.Revive(t.Context()))
	s.await("three agents", func() bool { return len(s.running()) == 3 && s.atRest() })
	a := s.status("web")
	require.True(t, a.Ready)
	require.Empty(t, a.Failure)
	second := s.supervisor()
	require.NotEqual(t, first, second)
	require.NoError(t, s.driver.Revive(t.Context()))
	require.Equal(t, second, s.supervisor(), "Revive leaves a running supervisor alone")
	kept := 0
	for _, instance := range s.instances() {
		if slices.Contains(before, instance) {
			kept++
		}
	}
	require.Equal(t, 2, kept)
	s.remove("web")
	require.Equal(t, 4, s.created())
	require.Empty(t, s.running())
}

// TestChangesStartASupervisor: every call that changes a group starts a supervisor if there is none.
func TestChangesStartASupervisor(t *testing.T) {
	s := newSite(t)
	s.create("web", 1)
	first := s.supervisor()
	require.NoError(t, first.Signal(syscall.SIGKILL))
	s.await("the end of the supervisor", func() bool { return !s.alive(first) })
	_, err := s.driver.ScalePool(t.Context(), &pooldriver.ScalePoolRequest{Request: request("web", blue), To: 2})
	require.NoError(t, err)
	s.await("two agents", func() bool { return len(s.running()) == 2 && s.atRest() })
	second := s.supervisor()
	require.NoError(t, second.Signal(syscall.SIGKILL))
	s.await("the end of the second supervisor", func() bool { return !s.alive(second) })
	s.remove("web")
	require.Empty(t, s.running())
}

// TestAnotherProgramTakesOver: the provider's program is killed. Another one takes over the same
// processes, and deletes the group.
// Invariants: P36
func TestAnotherProgramTakesOver(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), providerEnvironment+"="+dir)
	_, err = cmd.StdinPipe() // open until the program is killed: its end would end the program
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	waiting := &site{t: t}
	waiting.await("the first program's group", func() bool {
		_, err := os.Stat(filepath.Join(dir, "made"))
		return err == nil
	})
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())

	s := siteWith(t, options(dir))
	s.await("the group", s.atRest)
	before, supervisor := s.instances(), s.supervisor()
	require.Len(t, before, 3)
	require.True(t, s.alive(supervisor))
	s.create("web", 7)
	require.Equal(t, before, s.instances(), "a second create adopts the existing group")
	require.Equal(t, supervisor, s.supervisor())
	s.remove("web")
	require.Equal(t, 3, s.created())
	require.Empty(t, s.supervisor())
	require.Empty(t, s.running())
}

// TestAbandonedGroupEnds: without a provider, groups end by themselves, and the roster has the reason.
func TestAbandonedGroupEnds(t *testing.T) {
	o := options(t.TempDir())
	o.Alone = time.Second
	s := siteWith(t, o)
	s.create("web", 2)
	// Another file that no program has locked takes the place of the locked one.
	lock, err := os.OpenFile(o.Lock+".free", os.O_CREATE, 0o600)
	require.NoError(t, err)
	require.NoError(t, lock.Close())
	require.Len(t, s.running(), 2)
	require.NoError(t, os.Rename(o.Lock+".free", o.Lock))
	s.await("the end of the group", func() bool { return s.record("web") == nil && len(s.running()) == 0 && s.supervisor().PID == 0 })
	entries, err := s.supervisors.Entries()
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, roster.Abandoned, entries[0].State)
}

// TestUpdateOneAtATime: an update replaces all agents, and at most one is down at a time.
func TestUpdateOneAtATime(t *testing.T) {
	s := newSite(t)
	s.create("web", 3)
	before := s.instances()
	q := request("web", blue)
	q.Class = changed(func(s *procdriver.Spec) { s.Version, s.BootDelay = "v2", 100*time.Millisecond })
	_, err := s.driver.UpdatePool(t.Context(), &pooldriver.UpdatePoolRequest{Request: q})
	require.NoError(t, err)
	s.await("new agents", func() bool {
		g := s.record("web")
		terminating := 0
		for _, m := range g.Members {
			if m.Terminating {
				terminating++
			}
		}
		require.LessOrEqual(t, terminating, 1, "terminating at a time")
		return groupAtRest(g) && !slices.ContainsFunc(s.instances(), func(i string) bool { return slices.Contains(before, i) })
	})
	require.Len(t, s.instances(), 3)
}

// TestTroubleIsReported: while an agent can't be started, the status has a failure.
func TestTroubleIsReported(t *testing.T) {
	dir := t.TempDir()
	o := options(dir)
	o.Program = filepath.Join(dir, "program")
	require.NoError(t, groupdriver.Install(o.Program))
	s := siteWith(t, o)
	s.create("web", 1)
	require.Empty(t, s.status("web").Failure)
	require.NoError(t, os.Remove(o.Program))
	require.NoError(t, s.running()[0].Signal(syscall.SIGKILL))
	s.await("a failure", func() bool { return s.status("web").Failure != "" })
	a := s.status("web")
	require.True(t, a.Ready, "the supervisor runs")
	require.Contains(t, a.Failure, "no such file")
	require.NoError(t, groupdriver.Install(o.Program))
	s.await("the end of the failure", func() bool { return s.status("web").Failure == "" && s.atRest() && len(s.running()) == 1 })
}

// TestNames: names that can't be part of a file's name are refused.
func TestNames(t *testing.T) {
	s := newSite(t)
	for _, name := range []string{"../web", "web/1", "Web", "web_1"} {
		for _, key := range []object.Key{{Namespace: "fleet", Name: name}, {Namespace: name, Name: "web"}} {
			q := request("web", blue)
			q.Pool.Key = key
			_, err := s.driver.CreatePool(t.Context(), &pooldriver.CreatePoolRequest{Request: q, Replicas: 1})
			require.Equal(t, codes.InvalidArgument, codes.Of(err), "%s", key)
		}
	}
	q := request("web", blue)
	q.Pool.Namespace = ""
	_, err := s.driver.CreatePool(t.Context(), &pooldriver.CreatePoolRequest{Request: q})
	require.NoError(t, err)
	_, err = s.driver.DeletePool(t.Context(), &pooldriver.DeletePoolRequest{Request: q})
	require.NoError(t, err)
}

// TestBootstrapStaysSecret: no process shows the bootstrap data in its environment, and only the owner
// can read the file that has it.
func TestBootstrapStaysSecret(t *testing.T) {
	s := newSite(t)
	_, err := s.driver.CreatePool(t.Context(), &pooldriver.CreatePoolRequest{
		Request: request("web", blue), Replicas: 1,
		Bootstrap: &machine.Secret{Data: map[string][]byte{machine.UserData: []byte("swordfish")}},
	})
	require.NoError(t, err)
	s.await("the group", s.atRest)
	info, err := os.Stat(filepath.Join(supervisor.Groups(s.dir, blue.Cluster), "fleet_web.group"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	for _, e := range append(s.running(), s.supervisor()) {
		shown, err := exec.Command("ps", "eww", "-p", strconv.Itoa(e.PID)).Output()
		require.NoError(t, err)
		require.Contains(t, string(shown), "MILLWRIGHT_")
		require.NotContains(t, string(shown), "swordfish")
	}
}

// TestChangesOfTheRecord: UpdatePool replaces the bootstrap data. A group that is being deleted can't be
// created again or changed.
func TestChangesOfTheRecord(t *testing.T) {
	s := newSite(t)
	dir := group.At(supervisor.Groups(s.dir, blue.Cluster))
	require.NoError(t, dir.Make())
	put := func(g *group.Group) {
		err := dir.Change(t.Context(), "fleet_web", func(*group.Group) (*group.Group, error) { return g, nil })
		require.NoError(t, err)
	}
	base := request("web", blue)
	put(&group.Group{ID: "web-1", Spec: blue})
	require.NoError(t, os.MkdirAll(supervisor.Supervisors(s.dir), 0o700))
	file, err := roster.Hold(t.Context(), filepath.Join(supervisor.Supervisors(s.dir), "one"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	_, err = file.WriteString(`{"name":"blue/fleet_web","pid":1073741824}`) // a supervisor that does nothing
	require.NoError(t, err)
	_, err = s.driver.UpdatePool(t.Context(), &pooldriver.UpdatePoolRequest{
		Request: base, Bootstrap: &machine.Secret{Data: map[string][]byte{machine.UserData: []byte("other")}},
	})
	require.NoError(t, err)
	require.Equal(t, "other", string(s.record("web").Boot))
	put(&group.Group{ID: "web-1", Spec: blue, Deleting: true})
	_, err = s.driver.CreatePool(t.Context(), &pooldriver.CreatePoolRequest{Request: base, Replicas: 1})
	require.Equal(t, codes.Aborted, codes.Of(err))
	_, err = s.driver.ScalePool(t.Context(), &pooldriver.ScalePoolRequest{Request: base, To: 3})
	require.Equal(t, codes.NotFound, codes.Of(err))
}
