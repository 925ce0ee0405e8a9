package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/lead"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/remote"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/test/pglab"
)

// newServer starts a server for one test.
func newServer(t *testing.T, settings ...string) *pglab.Server {
	t.Helper()
	s, err := pglab.New(settings...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// fleet is an open fleet, and what it has raised.
type fleet struct {
	*DB
	mu    sync.Mutex
	began map[remote.AlarmKind]int
}

func openFleet(t *testing.T, s *pglab.Server, o Options) *fleet {
	t.Helper()
	f := &fleet{began: make(map[remote.AlarmKind]int)}
	o.Alarm = func(a remote.Alarm) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if a.Err != nil {
			f.began[a.Kind]++
		}
	}
	var err error
	f.DB, err = Open(within(t), s.URL(), o)
	require.NoError(t, err)
	t.Cleanup(f.Close)
	return f
}

func (f *fleet) times(k remote.AlarmKind) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.began[k]
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	require.Eventually(t, done, time.Minute, 5*time.Millisecond, what)
}

var keyA = object.Key{Namespace: "fleet", Name: "a"}

func (f *fleet) create(t *testing.T, k object.Key) *machine.Machine {
	t.Helper()
	m, err := f.Machines().Create(within(t), &machine.Machine{Meta: object.Meta{Key: k, Finalizers: []string{"example.org/hold"}}})
	require.NoError(t, err)
	return m
}

func (f *fleet) note(ctx context.Context, m *machine.Machine, text string) (*machine.Machine, error) {
	c := m.Clone()
	c.Status.LastOperation.Message = text
	return f.Machines().UpdateStatus(ctx, c)
}

// noteAtLast is note, and goes on when answers are lost or the server is away.
func (f *fleet) noteAtLast(t *testing.T, m *machine.Machine, text string) *machine.Machine {
	t.Helper()
	ctx := within(t)
	for {
		next, err := f.note(ctx, m, text)
		if err == nil {
			return next
		}
		require.NoError(t, ctx.Err())
		if now, err := f.Machines().Live().Get(ctx, m.Key); err == nil {
			m = now
		}
	}
}

func (f *fleet) message() string {
	m, err := f.Machines().Get(context.Background(), keyA)
	if err != nil {
		return err.Error()
	}
	return m.Status.LastOperation.Message
}

// leads lets a fleet lead until the test ends. The channel has its terms.
func (f *fleet) leads(t *testing.T, id string) <-chan *lead.Held {
	ctx, cancel := context.WithCancel(t.Context())
	terms, ended := make(chan *lead.Held, 100), make(chan error, 1)
	go func() {
		ended <- f.Lead(ctx, lead.Options{ID: id, TTL: 2 * time.Second}, func(term *lead.Held) error {
			terms <- term
			<-term.Context().Done()
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return terms
}

func next(t *testing.T, terms <-chan *lead.Held) *lead.Held {
	t.Helper()
	select {
	case term := <-terms:
		return term
	case <-within(t).Done():
		require.FailNow(t, "no term")
		return nil
	}
}

// TestServerKilled: the server is killed in the middle of writes, and is back after a while. No acknowledged write is
// lost, and the caches of two processes go on.
func TestServerKilled(t *testing.T) {
	s := newServer(t)
	f, peer := openFleet(t, s, Options{}), openFleet(t, s, Options{})
	m := f.create(t, keyA)
	for i := range 20 {
		m = f.noteAtLast(t, m, fmt.Sprint(i))
	}
	eventually(t, "the peer follows", func() bool { return peer.message() == "19" })
	s.Kill()
	eventually(t, "the absence is noticed", func() bool { return peer.Health().Alarms[remote.AlarmAway] != nil })
	require.Equal(t, "19", peer.message(), "a standby reads")
	_, err := f.note(within(t), m, "nobody there")
	require.Error(t, err)
	require.NoError(t, s.Start())
	for i := range 20 {
		m = f.noteAtLast(t, m, fmt.Sprint("again ", i))
	}
	eventually(t, "the peer goes on", func() bool { return peer.message() == "again 19" })
	eventually(t, "the alarm ends", func() bool { return peer.Health().Alarms[remote.AlarmAway] == nil })
	require.Zero(t, f.times(remote.AlarmLostWrites)+peer.times(remote.AlarmLostWrites))
}

// TestServerSuspended: calls of a server that does not answer end in time, and their effect is said to be unknown.
func TestServerSuspended(t *testing.T) {
	s := newServer(t)
	f := openFleet(t, s, Options{Options: remote.Options{CallTimeout: 300 * time.Millisecond}})
	m := f.create(t, keyA)
	require.NoError(t, s.SignalAll(syscall.SIGSTOP))
	_, err := f.note(within(t), m, "unknown")
	require.ErrorIs(t, err, remote.ErrNoAnswer)
	require.ErrorContains(t, err, "update status of fleet/a")
	require.NoError(t, s.SignalAll(syscall.SIGCONT))
	f.noteAtLast(t, m, "known")
}

// TestOlderCopyRestored: the server comes back with an older copy of its data. The term ends, and what is stored now
// counts.
func TestOlderCopyRestored(t *testing.T) {
	s := newServer(t)
	f := openFleet(t, s, Options{})
	m := f.create(t, keyA)
	s.Stop()
	old := filepath.Join(filepath.Dir(s.Data()), "old")
	require.NoError(t, os.Rename(s.Data(), old))
	require.NoError(t, os.CopyFS(s.Data(), os.DirFS(old)))
	restore := func() {
		require.NoError(t, os.RemoveAll(s.Data()))
		require.NoError(t, os.Rename(old, s.Data()))
	}
	require.NoError(t, own(s.Data()))
	require.NoError(t, s.Start())
	terms := f.leads(t, "a")
	term := next(t, terms)
	for i := range 50 {
		m = f.noteAtLast(t, m, fmt.Sprint(i))
	}
	forgotten := f.create(t, object.Key{Namespace: "fleet", Name: "b"})
	s.Kill()
	restore()
	require.NoError(t, s.Start())

	<-term.Context().Done()
	require.ErrorIs(t, term.Err(), lead.ErrLost)
	next(t, terms)
	require.Equal(t, 1, f.times(remote.AlarmLostWrites))
	require.Empty(t, f.message(), "as it was in the copy")
	_, err := f.Machines().Get(within(t), forgotten.Key)
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = f.note(within(t), m, "by what was lost")
	require.ErrorIs(t, err, store.ErrConflict)
}

// own gives data that root has copied to the server.
func own(data string) error {
	if os.Getuid() != 0 {
		return nil
	}
	return filepath.WalkDir(data, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return errors.Join(err, os.Chown(path, 65534, 65534))
	})
}

// TestLongTransaction: what others do for long in the same server holds nothing up.
func TestLongTransaction(t *testing.T) {
	in := schema()
	f, peer := openFleet(t, shared, Options{Schema: in}), openFleet(t, shared, Options{Schema: in})
	ctx := within(t)
	other, err := pgx.Connect(ctx, shared.URL())
	require.NoError(t, err)
	t.Cleanup(func() { _ = other.Close(context.Background()) })
	tx, err := other.Begin(ctx)
	require.NoError(t, err)
	_, err = tx.Exec(ctx, `create table elsewhere (n int)`) // it has a transaction ID now
	require.NoError(t, err)
	m := f.create(t, keyA)
	f.noteAtLast(t, m, "seen")
	eventually(t, "the peer follows", func() bool { return peer.message() == "seen" })
	all, err := peer.Machines().Live().List(ctx, store.Query{})
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.NoError(t, tx.Rollback(ctx))
}

// TestLateCommit: a row whose transaction began before others and commits after them is not missed.
func TestLateCommit(t *testing.T) {
	in := schema()
	f := openFleet(t, shared, Options{Schema: in})
	peer := openFleet(t, shared, Options{Schema: in})
	m := f.create(t, keyA)
	ctx := within(t)
	other, err := pgx.Connect(ctx, shared.URL())
	require.NoError(t, err)
	t.Cleanup(func() { _ = other.Close(context.Background()) })
	tx, err := other.Begin(ctx)
	require.NoError(t, err)
	_, err = tx.Exec(ctx, strings.ReplaceAll(`update $s.objects set xid = pg_current_xact_id(), writes = writes + 1, version = 7,
document = replace(document::text, '"Message":""', '"Message":"late"')::json where kind = 'machine'`, "$s", pgx.Identifier{in}.Sanitize()))
	require.NoError(t, err)
	b := f.create(t, object.Key{Namespace: "fleet", Name: "b"})
	eventually(t, "the peer sees what came later", func() bool {
		_, err := peer.Machines().Get(ctx, b.Key)
		return err == nil
	})
	require.NoError(t, tx.Commit(ctx))
	for _, p := range []*fleet{f, peer} {
		eventually(t, "the late row", func() bool { return p.message() == "late" })
	}
	_, err = f.note(ctx, m, "conflict")
	require.ErrorIs(t, err, store.ErrConflict)
}

// TestFenceByHistory: writers of a leader write as fast as they can while others take over. A trigger records under which
// token the table was written, and under which token the lease was at that time: none is late. Some leases expire by
// themselves.
func TestFenceByHistory(t *testing.T) {
	const takeovers, writers, enough = 30, 16, 40
	in := schema()
	e, ctx := open(t, shared, in), within(t)
	s := pgx.Identifier{in}.Sanitize()
	_, err := e.pool.Exec(ctx, strings.ReplaceAll(`create table $s.history (token bigint, leader bigint);
create function $s.note() returns trigger language plpgsql as $$
begin
	insert into $s.history select (new.document #>> '{}')::bigint, token from $s.leader;
	return new;
end $$;
create trigger note before insert or update on $s.objects for each row execute function $s.note()`, "$s", s))
	require.NoError(t, err)
	token, err := e.Lease().Take(ctx, "0", time.Second)
	require.NoError(t, err)
	for round := range takeovers {
		var wrote atomic.Int64
		many := make(chan struct{})
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				key := remote.Key{Kind: "thing", Key: object.Key{Name: fmt.Sprint(w)}}
				for {
					now, err := e.Get(ctx, key)
					if err == nil {
						_, err = e.Swap(ctx, remote.Swap{Key: key, Version: now.Version, Content: fmt.Append(nil, uint64(token)), Token: token})
					}
					if errors.Is(err, store.ErrFenced) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					if wrote.Add(1) == enough {
						close(many)
					}
				}
			})
		}
		select {
		case <-many:
		case <-ctx.Done():
			t.Fatal("too few writes")
		}
		if round%10 > 0 {
			require.NoError(t, e.Lease().Release(ctx, token))
		}
		next := token
		for next == token {
			if next, err = e.Lease().Take(ctx, "next", time.Second); errors.Is(err, lead.ErrHeld) {
				next = token
				require.NoError(t, e.Lease().Wait(ctx))
				continue
			}
			require.NoError(t, err)
		}
		all.Wait()
		require.Greater(t, next, token)
		token = next
	}
	var seen, late int
	require.NoError(t, e.pool.QueryRow(ctx, `select count(*), count(*) filter (where token <> leader) from `+s+`.history`).Scan(&seen, &late))
	require.Zero(t, late)
	require.GreaterOrEqual(t, seen, takeovers*enough)
	t.Logf("%d writes under %d terms, none late", seen, takeovers)
}

// TestTakeoverWaitsForWrites: a write that holds the lock on the leader's row is part of the old term; the next one begins
// after it. Renewals go on beside it.
func TestTakeoverWaitsForWrites(t *testing.T) {
	e, ctx := open(t, shared, schema()), within(t)
	token, err := e.Lease().Take(ctx, "a", time.Second)
	require.NoError(t, err)
	tx, err := e.pool.Begin(ctx)
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	var passed bool
	var writes *int64
	var xid *string
	require.NoError(t, tx.QueryRow(ctx, e.sql.insert, int64(token), "thing", "", "a", int64(1), "1").Scan(&passed, &writes, &xid))
	require.True(t, passed)
	require.NoError(t, e.Lease().Renew(ctx, token, time.Second))
	require.NoError(t, e.Lease().Release(ctx, token))
	taken := make(chan error, 1)
	go func() {
		_, err := e.Lease().Take(ctx, "b", time.Minute)
		taken <- err
	}()
	eventually(t, "the takeover waits", func() bool {
		var waiting int
		err := e.pool.QueryRow(ctx, `select count(*) from pg_stat_activity where wait_event_type = 'Lock'`).Scan(&waiting)
		return err == nil && waiting > 0
	})
	require.Empty(t, taken)
	require.NoError(t, tx.Commit(ctx))
	require.NoError(t, <-taken)
}

// TestPurged: rows of objects that are long gone are removed, and an object of that name does not begin below their
// order.
func TestPurged(t *testing.T) {
	in := schema()
	e, ctx := open(t, shared, in), within(t)
	key := remote.Key{Kind: "thing", Key: object.Key{Name: "a"}}
	made, err := e.Swap(ctx, remote.Swap{Key: key, Content: []byte("1")})
	require.NoError(t, err)
	gone, err := e.Swap(ctx, remote.Swap{Key: key, Version: made.Version})
	require.NoError(t, err)
	rows := pgx.Identifier{in, "objects"}.Sanitize()
	count := func() (n int) {
		_, err := e.pool.Exec(ctx, e.sql.purge)
		require.NoError(t, err)
		require.NoError(t, e.pool.QueryRow(ctx, `select count(*) from `+rows).Scan(&n))
		return n
	}
	require.Equal(t, 1, count())
	_, err = e.pool.Exec(ctx, `update `+rows+` set changed = now() - interval '2 hours'`)
	require.NoError(t, err)
	require.Zero(t, count())
	again, err := e.Swap(ctx, remote.Swap{Key: key, Content: []byte("2")})
	require.NoError(t, err)
	require.Greater(t, again.Order, gone.Order)
}

// TestRights: who lacks a right is told which.
func TestRights(t *testing.T) {
	s := newServer(t, "fsync=off")
	ctx := within(t)
	owner, err := pgx.Connect(ctx, s.URL())
	require.NoError(t, err)
	t.Cleanup(func() { _ = owner.Close(context.Background()) })
	_, err = owner.Exec(ctx, `create role guest login password 'hush-hush'`)
	require.NoError(t, err)
	address := strings.Replace(s.URL(), "fleet@", "guest:hush-hush@", 1)
	_, err = Open(ctx, address, Options{})
	require.ErrorIs(t, err, store.ErrForbidden)
	require.ErrorContains(t, err, `schema "millwright"`)
	require.NotContains(t, err.Error(), "hush")
	openFleet(t, s, Options{})
	_, err = Open(ctx, address, Options{})
	require.ErrorIs(t, err, store.ErrForbidden)
	_, err = owner.Exec(ctx, `grant usage on schema millwright to guest; grant select, insert, update, delete on all tables in schema millwright to guest`)
	require.NoError(t, err)
	guest, err := Open(ctx, address, Options{})
	require.NoError(t, err)
	t.Cleanup(guest.Close)
	_, err = guest.Machines().Create(ctx, &machine.Machine{Meta: object.Meta{Key: keyA}})
	require.NoError(t, err)
	for _, bad := range []string{
		"postgres://fleet:hush-hush@/none?host=" + filepath.Dir(s.Data()), "postgres://fleet:hush-hush@/postgres?host=/nowhere",
		"postgres://fleet:hush-hush@:x", "hush-hush",
	} {
		_, err = Open(ctx, bad, Options{})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "hush")
	}
}

// TestAnswered: what the server refuses is an error of package store or remote, where there is one.
func TestAnswered(t *testing.T) {
	for code, want := range map[string]error{
		"53100": remote.ErrFull, "42501": store.ErrForbidden, "28P01": store.ErrUnauthenticated, "53300": store.ErrThrottled,
		"54000": store.ErrTooLarge, "25006": ErrStandby, "22021": store.ErrInvalid,
	} {
		err := answered(fmt.Errorf("call: %w", &pgconn.PgError{Code: code, Message: "refused", Detail: "hush"}))
		require.ErrorIs(t, err, want)
		require.ErrorContains(t, err, code)
		require.NotContains(t, err.Error(), "hush")
	}
	require.NoError(t, answered(nil))
}
