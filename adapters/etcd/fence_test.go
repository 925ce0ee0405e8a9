package etcd

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/millwright-go/millwright/lead"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/remote"
	"github.com/millwright-go/millwright/store"
)

// TestFenceByHistory: the writers of a leader write as fast as they can while others take over. etcd's history shows
// that none of their writes comes after the key of the next leader. Every tenth lease expires by itself, the others are
// revoked, as if they had.
func TestFenceByHistory(t *testing.T) {
	const takeovers, writers, enough = 30, 16, 40
	at, client, ctx := prefix(), shared.dial(t), within(t)
	e, err := newEngine(ctx, client, Options{Prefix: at})
	require.NoError(t, err)
	start, err := client.Get(ctx, at)
	require.NoError(t, err)

	token, err := e.Lease().Take(ctx, "0", time.Second)
	require.NoError(t, err)
	for round := range takeovers {
		many, expired := make(chan struct{}), round%10 == 0
		var all sync.WaitGroup
		writeUntilFenced(ctx, t, e, token, writers, &all, func(wrote int64) {
			if wrote == enough {
				close(many)
			}
		})
		<-many
		if !expired {
			require.NoError(t, e.Lease().Release(ctx, token))
		}
		next, err := takeAtLast(t, e, strconv.Itoa(round+1))
		require.NoError(t, err)
		require.Greater(t, next, token)
		all.Wait()
		token = next
	}

	seen, late := writesIn(ctx, t, e, at, start.Header.Revision)
	require.Zero(t, late)
	require.GreaterOrEqual(t, seen, takeovers*enough)
	t.Logf("%d writes under %d terms, none late", seen, takeovers)
}

// writeUntilFenced lets writers write under a token until they are told that its term is over. wrote is called with the
// number of each write that succeeded.
func writeUntilFenced(ctx context.Context, t *testing.T, e *engine, token lead.Token, writers int, all *sync.WaitGroup, wrote func(int64)) {
	var count atomic.Int64
	for w := range writers {
		all.Go(func() {
			key := remote.Key{Kind: "thing", Key: object.Key{Name: strconv.Itoa(w)}}
			for {
				now, err := e.Get(ctx, key)
				if err == nil {
					_, err = e.Swap(ctx, remote.Swap{
						Key: key, Version: now.Version, Content: strconv.AppendUint(nil, uint64(token), 10), Token: token,
					})
				}
				if err != nil {
					if !errors.Is(err, store.ErrFenced) {
						t.Error(err)
					}
					return
				}
				wrote(count.Add(1))
			}
		})
	}
}

// writesIn counts the writes in etcd's history since a revision, and those under another token than the leader's.
func writesIn(ctx context.Context, t *testing.T, e *engine, at string, since int64) (seen, late int) {
	t.Helper()
	client, leader := e.client, int64(0)
	end, err := client.Get(ctx, at)
	require.NoError(t, err)
	for resp := range client.Watch(ctx, at+"/", clientv3.WithPrefix(), clientv3.WithRev(since+1)) {
		for _, ev := range resp.Events {
			switch {
			case string(ev.Kv.Key) == e.leaderKey() && ev.Type == clientv3.EventTypeDelete:
				leader = 0
			case string(ev.Kv.Key) == e.leaderKey():
				leader = ev.Kv.CreateRevision
			case e.parseKey(ev.Kv.Key).Kind == "thing":
				by, err := strconv.ParseInt(string(ev.Kv.Value), 10, 64)
				require.NoError(t, err)
				if seen++; by != leader {
					late++
				}
			}
		}
		if n := len(resp.Events); n > 0 && resp.Events[n-1].Kv.ModRevision >= end.Header.Revision {
			break
		}
	}
	return seen, late
}

// takeAtLast takes the lease when it is free.
func takeAtLast(t *testing.T, e *engine, id string) (lead.Token, error) {
	for {
		token, err := e.Lease().Take(within(t), id, time.Second)
		if !errors.Is(err, lead.ErrHeld) {
			return token, err
		}
		require.NoError(t, e.Lease().Wait(within(t)))
	}
}

// TestLeaderKeyRemoved: a leader whose key somebody has removed notices it with the next renewal.
func TestLeaderKeyRemoved(t *testing.T) {
	client := shared.dial(t)
	e, err := newEngine(within(t), client, Options{Prefix: prefix()})
	require.NoError(t, err)
	token, err := e.Lease().Take(within(t), "a", time.Second)
	require.NoError(t, err)
	_, err = client.Delete(within(t), e.leaderKey())
	require.NoError(t, err)
	require.ErrorIs(t, e.Lease().Renew(within(t), token, 2*time.Second), lead.ErrLost)
	other, err := e.Lease().Take(within(t), "b", time.Second)
	require.NoError(t, err)
	require.ErrorIs(t, e.Lease().Renew(within(t), token, 2*time.Second), lead.ErrLost)
	require.NoError(t, e.Lease().Release(within(t), token))
	require.NoError(t, e.Lease().Renew(within(t), other, 2*time.Second), "a late release ends no other term")
}
