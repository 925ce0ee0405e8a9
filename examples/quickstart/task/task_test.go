package task

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/examples/quickstart/life"
	"github.com/millwright-go/millwright/examples/quickstart/registry"
)

// agentEnvironment makes this test program an agent that runs the tasks of the
// desk of that path.
const agentEnvironment = "MILLWRIGHT_TEST_DESK"

func TestMain(m *testing.M) {
	if Ordered() {
		os.Exit(Main())
	}
	if path := os.Getenv(agentEnvironment); path != "" {
		r, err := NewRunner(At(path), nil)
		if err != nil {
			os.Exit(life.Failed)
		}
		r.Run(context.Background()) // it is only ever killed
	}
	os.Exit(m.Run())
}

// soon limits a wait for what takes a moment, also on a slow machine.
const soon = time.Minute

// stage is a desk with a runner that looks on request.
type stage struct {
	*Runner
	t    *testing.T
	dir  string
	book *ledger.Book
	now  time.Time
}

func newStage(t *testing.T) *stage {
	t.Helper()
	dir := t.TempDir()
	r, err := NewRunner(At(filepath.Join(dir, "desk")), nil)
	require.NoError(t, err)
	s := &stage{Runner: r, t: t, dir: dir, book: ledger.Open(filepath.Join(dir, "ledger")), now: time.Now()}
	t.Cleanup(func() { s.Stop(0) })
	return s
}

func (s *stage) order(name, uid string) Letter {
	return Letter{Order: Order{Name: name, UID: uid, Ledger: s.book.Path()}}
}

func (s *stage) give(l Letter) {
	s.t.Helper()
	require.NoError(s.t, s.desk.Give(l))
	s.look(s.now)
}

// until waits for a report.
func (s *stage) until(uid string, state State) Report {
	s.t.Helper()
	var r Report
	require.Eventually(s.t, func() bool {
		reports, err := s.desk.Reports()
		require.NoError(s.t, err)
		r = reports[uid]
		return r.State == state
	}, soon, time.Millisecond, "task %s: %s", uid, state)
	return r
}

func (s *stage) life(uid string) ledger.Life {
	s.t.Helper()
	lives, err := s.book.Lives()
	require.NoError(s.t, err)
	for _, life := range lives {
		if life.Instance == uid {
			return life
		}
	}
	return ledger.Life{}
}

func TestTaskServesUntilToldToEnd(t *testing.T) {
	s := newStage(t)
	letter := s.order("a", "one")
	letter.Linger = 50 * time.Millisecond
	s.give(letter)
	serving := s.until("one", Serving)
	life := s.life("one")
	require.True(t, life.Serving && life.Seated && !life.Leaving && life.ID.Alive(), "%+v", life)
	require.Equal(t, life.ID.PID, serving.PID)
	s.look(s.now)
	require.Len(t, s.children, 1, "started once")

	letter.Told, letter.Grace = true, time.Minute
	s.give(letter)
	require.Equal(t, "exit status 0", s.until("one", Ended).Note)
	life = s.life("one")
	require.True(t, life.Leaving && life.Ended && !life.ID.Alive(), "%+v", life)
	s.look(s.now)
	require.Equal(t, life.ID, s.life("one").ID, "not started a second time")
	require.NoError(t, s.desk.Drop("one"))
	s.look(s.now)
	require.Empty(t, s.children)
	orders, err := s.desk.Orders()
	require.NoError(t, err)
	require.Empty(t, orders)
}

func TestTaskIsKilledAfterItsGrace(t *testing.T) {
	s := newStage(t)
	letter := s.order("a", "one")
	letter.Linger = time.Hour
	s.give(letter)
	s.until("one", Serving)
	letter.Told, letter.Grace = true, time.Minute
	s.give(letter)
	require.Eventually(t, func() bool { return s.life("one").Leaving }, soon, time.Millisecond)
	s.look(s.now.Add(time.Minute - time.Nanosecond))
	require.True(t, s.life("one").ID.Alive(), "it has its grace")
	s.look(s.now.Add(time.Minute))
	require.Equal(t, "signal: killed", s.until("one", Ended).Note)
}

// TestGraceMayGetShorter: but never longer.
func TestGraceMayGetShorter(t *testing.T) {
	s := newStage(t)
	letter := s.order("a", "one")
	letter.Linger = time.Hour
	s.give(letter)
	s.until("one", Serving)
	letter.Told = true
	for _, grace := range []time.Duration{time.Minute, time.Hour} {
		letter.Grace = grace
		s.give(letter)
	}
	require.Equal(t, s.now.Add(time.Minute), s.children["one"].killAt)
	letter.Grace = 0
	s.give(letter)
	s.until("one", Ended)
}

func TestNobodyWantsIt(t *testing.T) {
	s := newStage(t)
	s.give(s.order("a", "one"))
	s.until("one", Serving)
	id := s.life("one").ID
	require.NoError(t, s.desk.Drop("one"))
	s.look(s.now)
	require.Eventually(t, func() bool { return !id.Alive() }, soon, time.Millisecond)
}

func TestToldBeforeItWasStarted(t *testing.T) {
	s := newStage(t)
	letter := s.order("a", "one")
	letter.Told = true
	s.give(letter)
	s.until("one", Ended)
	require.Zero(t, s.life("one"), "no process of it ever ran")
}

func TestOneProcessHasTheVolume(t *testing.T) {
	s := newStage(t)
	file := filepath.Join(s.dir, "volume")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	one := s.order("a", "one")
	one.Volume = s.desk.Mount("v")
	require.NoError(t, s.desk.Attach("v", file))
	require.NoError(t, s.desk.Attach("v", file), "again")
	s.give(one)
	s.until("one", Serving)
	require.ErrorIs(t, s.desk.Detach("v"), registry.ErrHeld)

	// The same volume by another way, as if it were attached to two nodes.
	other := s.order("a", "other")
	other.Volume = filepath.Join(s.dir, "volume")
	s.give(other)
	require.Equal(t, "exit status 75", s.until("other", Ended).Note)
	require.True(t, s.life("other").Turned)
	account, err := s.book.Account()
	require.NoError(t, err)
	require.Zero(t, account.Duplicates)

	one.Told = true
	s.give(one)
	s.until("one", Ended)
	require.NoError(t, s.desk.Detach("v"))
	require.NoError(t, s.desk.Detach("v"), "again")
	require.NoFileExists(t, s.desk.Mount("v"))
	require.FileExists(t, file)
}

// TestVolumeMustBeAttached: without its link on the desk there is no way to it.
func TestVolumeMustBeAttached(t *testing.T) {
	s := newStage(t)
	letter := s.order("a", "one")
	letter.Volume = s.desk.Mount("v")
	s.give(letter)
	require.Equal(t, "exit status 1", s.until("one", Ended).Note)
	require.False(t, s.life("one").Seated)
}

// TestTwoOfOneNameAreSeen: the ledger shows it if no volume prevents it.
func TestTwoOfOneNameAreSeen(t *testing.T) {
	s := newStage(t)
	s.give(s.order("a", "one"))
	s.until("one", Serving)
	s.give(s.order("a", "other"))
	s.until("other", Serving)
	account, err := ledger.Open(s.book.Path()).Account()
	require.NoError(t, err)
	require.Equal(t, 1, account.Duplicates)
}

func TestStopTakesAllDown(t *testing.T) {
	s := newStage(t)
	s.give(s.order("a", "polite"))
	slow := s.order("b", "slow")
	slow.Linger = time.Hour
	s.give(slow)
	s.until("polite", Serving)
	s.until("slow", Serving)
	s.Stop(3 * time.Second) // by far enough for one that ends at once
	reports, err := s.desk.Reports()
	require.NoError(t, err)
	require.Equal(t, "exit status 0", reports["polite"].Note)
	require.Equal(t, "signal: killed", reports["slow"].Note)
}

// TestTaskEndsWithItsAgent: in any way that it ends.
func TestTaskEndsWithItsAgent(t *testing.T) {
	s := newStage(t)
	letter := s.order("a", "one")
	letter.Linger = time.Hour
	self, err := os.Executable()
	require.NoError(t, err)
	agent := exec.Command(self)
	agent.Env = []string{agentEnvironment + "=" + s.desk.path}
	require.NoError(t, agent.Start())
	t.Cleanup(func() { _, _ = agent.Process.Kill(), agent.Wait() })
	require.NoError(t, s.desk.Give(letter))
	s.until("one", Serving)
	id := s.life("one").ID
	require.NoError(t, agent.Process.Kill())
	require.Error(t, agent.Wait())
	require.Eventually(t, func() bool { return !id.Alive() }, soon, time.Millisecond)
}

func TestDeskRefuses(t *testing.T) {
	d := At(t.TempDir())
	for _, o := range []Order{
		{}, {Name: "a"}, {UID: "a"}, {Name: "a", UID: "../a"}, {Name: "a", UID: "a", Boot: -1}, {Name: "a", UID: "a", Linger: -1},
	} {
		require.Error(t, d.Give(Letter{Order: o}), "%+v", o)
	}
	require.NoError(t, os.WriteFile(filepath.Join(d.path, "x"+orderSuffix), []byte("?"), 0o600))
	_, err := d.Orders()
	require.Error(t, err)
	none, err := At(filepath.Join(d.path, "nowhere")).Orders()
	require.NoError(t, err)
	require.Empty(t, none)
}

func FuzzOrder(f *testing.F) {
	f.Add(`{"name":"a","uid":"b","boot":100}`)
	f.Add(`{"boot":-1}`)
	f.Fuzz(func(t *testing.T, text string) {
		o, err := readOrder(text)
		if err != nil {
			return
		}
		if o.Name == "" || o.UID == "" || o.Boot < 0 || o.Linger < 0 {
			t.Errorf("%q gave %+v", text, o)
		}
	})
}
