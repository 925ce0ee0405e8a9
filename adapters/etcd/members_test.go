package etcd

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millwright-go/millwright/lead"
	"github.com/millwright-go/millwright/remote"
	"github.com/millwright-go/millwright/store"
)

// twoPaths returns a client that reaches the shared server on two ways.
func twoPaths(t *testing.T) (*clientv3.Client, []*proxy) {
	t.Helper()
	paths := []*proxy{newProxy(t, shared.endpoint), newProxy(t, shared.endpoint)}
	client := dialAll(t, paths[0].endpoint, paths[1].endpoint)
	for _, p := range paths {
		eventually(t, "a connection", func() bool {
			_, err := client.Get(within(t), "x")
			p.mu.Lock()
			defer p.mu.Unlock()
			return err == nil && len(p.links) > 0
		})
	}
	return client, paths
}

// TestSilentMember: a server of several that is suspended or cut off keeps its connections, and calls of it hang. Reads and
// renewals are answered all the same, the cache follows, and writes go elsewhere after a moment.
func TestSilentMember(t *testing.T) {
	client, paths := twoPaths(t)
	o := Options{Prefix: prefix(), Options: remote.Options{CallTimeout: time.Second}}
	db, alarms := openFleet(t, client, o)
	writer, _ := openFleet(t, shared.dial(t), o)
	ctx := within(t)
	m := create(t, writer, "a")
	e, err := newEngine(ctx, client, o)
	require.NoError(t, err)
	token, err := e.Lease().Take(ctx, "a", time.Minute)
	require.NoError(t, err)
	for i, p := range paths {
		p.silence()
		for range 4 {
			_, err := db.Machines().Live().Get(ctx, m.Key)
			require.NoError(t, err)
			call, done := context.WithTimeout(ctx, o.CallTimeout)
			require.NoError(t, e.Lease().Renew(call, token, time.Minute))
			done()
		}
		text := fmt.Sprint("path ", i)
		m, err = note(ctx, writer, m, text)
		require.NoError(t, err)
		eventually(t, "the cache follows", func() bool {
			got, err := db.Machines().Get(ctx, m.Key)
			return err == nil && got.Status.LastOperation.Message == text
		})
		eventually(t, "writes go elsewhere", func() bool {
			for range 6 {
				next, err := note(ctx, db, m, fmt.Sprint(text, time.Now()))
				if errors.Is(err, store.ErrConflict) { // an answer was lost
					next, err = writer.Machines().Live().Get(ctx, m.Key)
				}
				if err != nil {
					require.ErrorIs(t, err, remote.ErrNoAnswer)
					return false
				}
				m = next
			}
			return true
		})
		p.hear()
		eventually(t, "both serve again", func() bool { return len(client.Endpoints()) == 2 })
	}
	require.Zero(t, alarms.times(remote.AlarmLostWrites))
}

// TestAllSilent: while no server answers, the alarm says so, also if it begins in the middle of what Follow does first; and
// no candidate hangs.
func TestAllSilent(t *testing.T) {
	p := newProxy(t, shared.endpoint)
	o := Options{Prefix: prefix(), Options: remote.Options{CallTimeout: 300 * time.Millisecond}}
	db, alarms := openFleet(t, dialAll(t, p.endpoint), o)
	other, _ := openFleet(t, shared.dial(t), o)
	e, err := newEngine(within(t), dialAll(t, p.endpoint), o)
	require.NoError(t, err)
	create(t, other, "a")
	_, err = db.Machines().List(within(t), store.Query{})
	require.NoError(t, err)
	_, err = e.Lease().Take(within(t), "a", time.Minute)
	require.NoError(t, err)
	for range 3 {
		p.silence()
		eventually(t, "the alarm", func() bool { return alarms.present(remote.AlarmAway) != nil })
		require.Error(t, e.Lease().Wait(within(t)))
		_, err := db.Machines().Live().List(within(t), store.Query{})
		require.ErrorIs(t, err, remote.ErrNoAnswer)
		p.hear()
		eventually(t, "its end", func() bool { return alarms.present(remote.AlarmAway) == nil })
	}
}

// TestOtherClusterBehindTheAddress: the servers behind an address become those of another cluster, as after a restore that
// was not told to the processes. The term ends, and nothing is written there.
func TestOtherClusterBehindTheAddress(t *testing.T) {
	here, there := newServer(t, "-fast"), newServer(t, "-fast")
	p := newProxy(t, here.endpoint)
	db, alarms := openFleet(t, dialAll(t, p.endpoint), Options{})
	ctx := within(t)
	m := create(t, db, "a")
	terms := leadUntil(t, db, "a")
	term := next(t, terms)
	for range 100 { // its revision is higher, as after --bump-revision
		_, err := there.dial(t).Put(ctx, "/other", "")
		require.NoError(t, err)
	}
	copyData(t, here.dial(t), there.dial(t), DefaultPrefix)
	before, err := there.dial(t).Get(ctx, DefaultPrefix, clientv3.WithPrefix())
	require.NoError(t, err)
	p.lead(there.endpoint)
	<-term.Context().Done()
	require.ErrorIs(t, term.Err(), lead.ErrLost) // either the cluster or the lease was noticed first
	eventually(t, "the alarm", func() bool { return errors.Is(alarms.present(remote.AlarmAway), ErrCluster) })
	_, err = db.Machines().Create(ctx, sample("b"))
	require.ErrorIs(t, err, ErrCluster)
	_, err = db.Machines().Live().Get(ctx, m.Key)
	require.ErrorIs(t, err, ErrCluster)
	after, err := there.dial(t).Get(ctx, DefaultPrefix, clientv3.WithPrefix())
	require.NoError(t, err)
	require.Equal(t, before.Kvs, after.Kvs)
	p.lead(here.endpoint)
	next(t, terms)
	_, err = db.Machines().Create(ctx, sample("b"))
	require.NoError(t, err)
}

// failing returns a client whose calls of a method fail as long as fails returns true.
func failing(t *testing.T, fails func(method string) bool) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{shared.endpoint},
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				if fails(method) {
					return status.Error(codes.Internal, "broken")
				}
				return invoke(ctx, method, req, reply, cc, opts...)
			})},
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// TestFollowFailsOnce: a call that fails for a moment is not taken for lost writes.
func TestFollowFailsOnce(t *testing.T) {
	calls, fails := 0, 0
	client := failing(t, func(string) bool { calls++; return calls == fails })
	for n := range 4 {
		e, err := newEngine(within(t), client, Options{Prefix: prefix()})
		require.NoError(t, err)
		var got listing
		ctx, stop := context.WithCancel(within(t))
		got.stop = stop
		calls, fails = 0, n+1
		_ = e.Follow(ctx, &got)
		require.Empty(t, got.forgot, "when call %d fails", n+1)
		stop()
	}
}

// TestRestoreNoticedLate: of two processes one notices later than the other that etcd went back. It takes over what the
// other one has found out, and does not make everybody read everything once more.
func TestRestoreNoticedLate(t *testing.T) {
	at := prefix()
	first, err := newEngine(within(t), shared.dial(t), Options{Prefix: at})
	require.NoError(t, err)
	second, err := newEngine(within(t), shared.dial(t), Options{Prefix: at})
	require.NoError(t, err)
	for i, e := range []*engine{first, second} {
		e.mu.Lock()
		e.newest = 1 << 40 // as if it had seen that before the restore
		e.mu.Unlock()
		var got listing
		ctx, stop := context.WithCancel(within(t))
		got.stop = stop
		require.Error(t, e.Follow(ctx, &got))
		require.Len(t, got.forgot, 1, "process %d", i)
	}
	require.Equal(t, first.current(), second.current())

	// A process that knew a later incarnation than the copy has makes a new one.
	kept := first.current()
	other := kept
	other.name, other.number = "later", kept.number+5
	first.become(other, first.cluster)
	first.mu.Lock()
	first.newest = 1 << 40
	first.mu.Unlock()
	var got listing
	ctx, stop := context.WithCancel(within(t))
	got.stop = stop
	require.Error(t, first.Follow(ctx, &got))
	require.NotEqual(t, kept.name, first.current().name)
	require.Greater(t, first.current().number, other.number)
}

// TestStandbyNotices: what a process has only seen counts as well when etcd goes back.
func TestStandbyNotices(t *testing.T) {
	e, err := newEngine(within(t), shared.dial(t), Options{Prefix: prefix()})
	require.NoError(t, err)
	e.reached(1 << 40)
	_, err = e.Get(within(t), remote.Key{Kind: "thing"})
	require.ErrorContains(t, err, "after 1099511627776")
}

// TestReplacedIsNoConflict: while another process has found that etcd went back, and this one has not read everything yet,
// a write fails at once. A deletion does not try again and again.
func TestReplacedIsNoConflict(t *testing.T) {
	e, err := newEngine(within(t), shared.dial(t), Options{Prefix: prefix()})
	require.NoError(t, err)
	key := remote.Key{Kind: "thing"}
	key.Name = "a"
	made, err := e.Swap(within(t), remote.Swap{Key: key, Content: []byte("1")})
	require.NoError(t, err)
	_, err = e.client.Put(within(t), e.incarnationKey(), `{"Incarnation":"x","Cluster":"1"}`)
	require.NoError(t, err)
	_, err = e.Swap(within(t), remote.Swap{Key: key, Version: made.Version})
	require.ErrorIs(t, err, errReplaced)
	require.NotErrorIs(t, err, store.ErrConflict)
}

// TestDeadlineOfTheServer: etcd may notice the end of a call's time a moment earlier than the client.
func TestDeadlineOfTheServer(t *testing.T) {
	require.ErrorIs(t, answered(status.Error(codes.DeadlineExceeded, "late")), remote.ErrNoAnswer)
	require.ErrorIs(t, answered(context.DeadlineExceeded), remote.ErrNoAnswer)
	require.NotErrorIs(t, answered(context.Canceled), remote.ErrNoAnswer)
}
