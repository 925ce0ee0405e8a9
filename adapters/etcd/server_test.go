package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/millwright-go/millwright/lead"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/remote"
	"github.com/millwright-go/millwright/store"
)

// TestServerKilled: etcd is killed in the middle of writes, and is back after a while. No acknowledged write is lost,
// no error ends anything, and the caches of two processes go on.
func TestServerKilled(t *testing.T) {
	s := newServer(t)
	db, alarms := openFleet(t, s.dial(t), Options{})
	peer, _ := openFleet(t, s.dial(t), Options{})
	ctx := within(t)
	m := create(t, db, "a")
	acknowledged := ""
	write := func(from, to int) {
		for i := from; i < to; {
			text := fmt.Sprint(i)
			next, err := note(ctx, db, m, text)
			switch {
			case err == nil:
				m, acknowledged = next, text
				i++
			case errors.Is(err, store.ErrConflict): // an answer was lost
				m, err = db.Machines().Live().Get(ctx, m.Key)
				require.NoError(t, err)
			default:
				require.NoError(t, ctx.Err())
			}
		}
	}
	write(0, 20)
	s.kill()
	eventually(t, "the absence is noticed", func() bool { return alarms.present(remote.AlarmAway) != nil })
	cached, err := db.Machines().Get(ctx, m.Key)
	require.NoError(t, err, "a standby reads")
	require.Equal(t, "19", cached.Status.LastOperation.Message)
	s.restart(t)
	write(20, 40)
	eventually(t, "the peer goes on", func() bool {
		got, err := peer.Machines().Get(ctx, m.Key)
		return err == nil && got.Status.LastOperation.Message == acknowledged
	})
	eventually(t, "the alarm ends", func() bool { return alarms.present(remote.AlarmAway) == nil })
	require.Zero(t, alarms.times(remote.AlarmLostWrites))
}

// TestServerSuspended: calls of a server that does not answer end in time, and their effect is said to be unknown.
func TestServerSuspended(t *testing.T) {
	s := newServer(t)
	db, _ := openFleet(t, s.dial(t), Options{Options: remote.Options{CallTimeout: 300 * time.Millisecond}})
	m := create(t, db, "a")
	s.signal(t, syscall.SIGSTOP)
	_, err := note(within(t), db, m, "unknown")
	require.ErrorIs(t, err, remote.ErrNoAnswer)
	require.ErrorContains(t, err, "update status of fleet/a")
	_, err = db.Machines().Live().Get(within(t), m.Key)
	require.ErrorIs(t, err, remote.ErrNoAnswer)
	s.signal(t, syscall.SIGCONT)
	eventually(t, "it answers again", func() bool {
		_, err := db.Machines().Live().Get(within(t), m.Key)
		return err == nil
	})
}

// TestOlderCopyRestored: etcd comes back with an older copy of its data. The term ends, the caches show what is stored
// now, and no version of before is that of another state.
func TestOlderCopyRestored(t *testing.T) {
	s := newServer(t)
	db, alarms := openFleet(t, s.dial(t), Options{})
	ctx := within(t)
	m := create(t, db, "a")
	forgotten := "b"
	s.signal(t, syscall.SIGTERM)
	require.NoError(t, s.process.Wait())
	data, old := filepath.Join(s.dir, "one"), filepath.Join(s.dir, "old")
	require.NoError(t, os.CopyFS(old, os.DirFS(data)))
	s.restart(t)
	terms := leadUntil(t, db, "a")
	term := next(t, terms)
	versions := map[string]bool{}
	for i := 0; i < 50; {
		if now, err := note(ctx, db, m, fmt.Sprint(i)); err == nil {
			m = now
			versions[m.Version] = true
			i++
		}
		require.NoError(t, ctx.Err())
	}
	create(t, db, forgotten)
	s.kill()
	require.NoError(t, os.RemoveAll(data))
	require.NoError(t, os.Rename(old, data))
	s.restart(t)

	<-term.Context().Done()
	require.ErrorIs(t, term.Err(), lead.ErrLost) // either the restore or the lease was noticed first
	eventually(t, "the alarm", func() bool { return alarms.times(remote.AlarmLostWrites) > 0 })
	next(t, terms)
	require.Equal(t, 1, alarms.times(remote.AlarmLostWrites))
	cached, err := db.Machines().Get(ctx, m.Key)
	require.NoError(t, err)
	require.Empty(t, cached.Status.LastOperation.Message, "as it was in the copy")
	_, err = db.Machines().Get(ctx, object.Key{Namespace: "fleet", Name: forgotten})
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = note(ctx, db, m, "by what was lost")
	require.ErrorIs(t, err, store.ErrConflict)
	for i := range 60 {
		cached, err = note(ctx, db, cached, fmt.Sprint("again ", i))
		require.NoError(t, err)
		require.False(t, versions[cached.Version], cached.Version)
	}
}

// TestCopyInAnotherCluster: who opens a copy of a fleet is refused, until they say that they mean it.
func TestCopyInAnotherCluster(t *testing.T) {
	a, b := newServer(t).dial(t), newServer(t).dial(t)
	db, _ := openFleet(t, a, Options{})
	m := create(t, db, "a")
	copyData(t, a, b, DefaultPrefix)
	_, err := Open(within(t), b, Options{})
	require.ErrorIs(t, err, ErrCluster)
	require.ErrorContains(t, err, "Adopt")
	there, _ := openFleet(t, b, Options{Adopt: true})
	got, err := there.Machines().Live().Get(within(t), m.Key)
	require.NoError(t, err)
	require.Equal(t, m.UID, got.UID)
	require.NotEqual(t, m.Version, got.Version)
	openFleet(t, b, Options{})
}

// TestFull: a full etcd refuses writes, and says so. Reads work, and nobody takes over. With room, all goes on.
func TestFull(t *testing.T) {
	s := newServer(t, "-quota", "3000000")
	client := s.dial(t)
	db, alarms := openFleet(t, client, Options{})
	ctx := within(t)
	m := create(t, db, "a")
	large, err := db.Secrets().Create(ctx, &machine.Secret{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "s"}}})
	require.NoError(t, err)
	for i := byte(0); err == nil; i++ {
		next := large.Clone()
		next.Data = map[string][]byte{"a": bytes.Repeat([]byte{i}, 200_000)}
		if next, err = db.Secrets().Update(ctx, next); err == nil {
			large = next
		}
	}
	require.ErrorIs(t, err, remote.ErrFull)
	require.ErrorIs(t, alarms.present(remote.AlarmFull), remote.ErrFull)
	_, err = db.Machines().Live().Get(ctx, m.Key)
	require.NoError(t, err)
	_, err = db.Machines().Live().List(ctx, store.Query{})
	require.NoError(t, err)
	e, err := newEngine(ctx, client, Options{})
	require.NoError(t, err)
	_, err = e.Lease().Take(ctx, "b", 2*time.Second)
	require.ErrorIs(t, err, remote.ErrFull)

	got, err := client.Get(ctx, DefaultPrefix)
	require.NoError(t, err)
	_, err = client.Compact(ctx, got.Header.Revision, clientv3.WithCompactPhysical())
	require.NoError(t, err)
	_, err = client.Defragment(ctx, s.endpoint)
	require.NoError(t, err)
	_, err = client.AlarmDisarm(ctx, &clientv3.AlarmMember{})
	require.NoError(t, err)
	_, err = note(ctx, db, m, "room")
	require.NoError(t, err)
	eventually(t, "the alarm ends", func() bool { return alarms.present(remote.AlarmFull) == nil })
}

// TestTooLarge: an object that etcd does not take is refused with an error that says so.
func TestTooLarge(t *testing.T) {
	db, _ := openFleet(t, shared.dial(t), Options{Prefix: prefix()})
	for _, size := range []int{1_600_000, 5_000_000} { // etcd refuses the one, the client the other
		_, err := db.Secrets().Create(within(t), &machine.Secret{
			Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "large"}},
			Data: map[string][]byte{"a": make([]byte, size)},
		})
		require.ErrorIs(t, err, store.ErrTooLarge)
		require.ErrorContains(t, err, "create fleet/large")
	}
}

// TestCompacted: Follow lists everything again, if etcd has compacted away what it would resume from.
func TestCompacted(t *testing.T) {
	s := newServer(t)
	client, ctx := s.dial(t), within(t)
	e, err := newEngine(ctx, client, Options{})
	require.NoError(t, err)
	key := remote.Key{Kind: "thing", Key: object.Key{Name: "a"}}
	first, err := e.Swap(ctx, remote.Swap{Key: key, Content: []byte("1")})
	require.NoError(t, err)
	_, err = e.Swap(ctx, remote.Swap{Key: key, Version: first.Version})
	require.NoError(t, err)
	now, err := client.Get(ctx, DefaultPrefix)
	require.NoError(t, err)
	_, err = client.Compact(ctx, now.Header.Revision)
	require.NoError(t, err)

	e.listed, e.position = true, int64(first.Order)-1 // as if it had been away since
	var got listing
	require.Error(t, e.Follow(ctx, &got))
	require.Zero(t, got.lists)
	stopped, stop := context.WithCancel(ctx)
	got.stop = stop
	require.Error(t, e.Follow(stopped, &got))
	require.Equal(t, 1, got.lists)
	require.Empty(t, got.forgot)
}

// listing is a sink that counts lists, and ends its Follow with the first.
type listing struct {
	lists  int
	forgot []error
	stop   func()
}

func (l *listing) Replace([]remote.Record, uint64) { l.lists++; l.stop() }
func (l *listing) Show(remote.Record)              {}
func (l *listing) Forget(why error)                { l.forgot = append(l.forgot, why) }
func (l *listing) Alive()                          {}
func (l *listing) Space(error)                     {}

// TestPermissions: a user that may not use the prefix is told so.
func TestPermissions(t *testing.T) {
	s := newServer(t)
	root := s.dial(t)
	ctx := within(t)
	for _, user := range []string{"root", "fleet"} {
		_, err := root.UserAdd(ctx, user, "secret-"+user)
		require.NoError(t, err)
		_, err = root.RoleAdd(ctx, user)
		require.NoError(t, err)
		_, err = root.UserGrantRole(ctx, user, user)
		require.NoError(t, err)
	}
	_, err := root.RoleGrantPermission(ctx, "fleet", "/mine/", clientv3.GetPrefixRangeEnd("/mine/"), clientv3.PermissionType(clientv3.PermReadWrite))
	require.NoError(t, err)
	_, err = root.AuthEnable(ctx)
	require.NoError(t, err)
	_, err = Open(ctx, s.dial(t), Options{Prefix: "/mine"})
	require.ErrorIs(t, err, store.ErrUnauthenticated)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.endpoint}, Username: "fleet", Password: "secret-fleet"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	_, err = Open(ctx, client, Options{Prefix: "/theirs"})
	require.ErrorIs(t, err, store.ErrForbidden)
	require.ErrorContains(t, err, "/theirs")
	require.NotContains(t, err.Error(), "secret")
	db, _ := openFleet(t, client, Options{Prefix: "/mine"})
	create(t, db, "a")
	next(t, leadUntil(t, db, "a"))
}

// TestNobodyThere: Open says which server does not answer, and why.
func TestNobodyThere(t *testing.T) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix:///nowhere/etcd.sock"}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	_, err = Open(within(t), client, Options{})
	require.ErrorContains(t, err, "/nowhere/etcd.sock")
	require.ErrorContains(t, err, "no such file")
}

func TestIsOlder(t *testing.T) {
	for version, want := range map[string]bool{
		"3.4.38": true, "3.5.7": true, "3.5.8": false, "3.5.21": false, "3.6.0-rc.1": false, "3.7.3": false, "4.0.0": false,
		"2.9.9": true, "3.5": true, "": true, "x.y.z": true,
	} {
		require.Equal(t, want, isOlder(version), version)
	}
}
