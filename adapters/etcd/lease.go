package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/millwright-go/millwright/lead"
)

// lease implements lead.Lease: a key that is bound to a lease of etcd. The token is the revision at which the key was
// created.
type lease engine

// leases are etcd's leases of the tokens that this process has taken.
type leases struct {
	mu  sync.Mutex
	ids map[lead.Token]clientv3.LeaseID
}

func (l *leases) of(t lead.Token) (clientv3.LeaseID, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id, ok := l.ids[t]
	return id, ok
}

func (l *leases) add(t lead.Token, id clientv3.LeaseID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ids == nil {
		l.ids = make(map[lead.Token]clientv3.LeaseID)
	}
	l.ids[t] = id
}

func (l *leases) remove(t lead.Token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.ids, t)
}

func (l *lease) key() string { return (*engine)(l).leaderKey() }

// Take implements lead.Lease.
func (l *lease) Take(ctx context.Context, id string, ttl time.Duration) (lead.Token, error) {
	now, err := (*engine)(l).get(ctx, l.key())
	if err != nil {
		return 0, err
	}
	if len(now.Kvs) > 0 {
		return 0, &lead.HeldError{By: string(now.Kvs[0].Value)}
	}
	granted, err := l.client.Grant(ctx, int64(math.Ceil(ttl.Seconds())))
	if err != nil {
		return 0, answered(err)
	}
	resp, err := l.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(l.key()), "=", 0)).
		Then(clientv3.OpPut(l.key(), id, clientv3.WithLease(granted.ID))).
		Else(clientv3.OpGet(l.key())).Commit()
	if err != nil {
		return 0, answered(err)
	}
	if resp.Succeeded {
		token := lead.Token(resp.Header.Revision)
		l.leases.add(token, granted.ID)
		return token, nil
	}
	_, _ = l.client.Revoke(ctx, granted.ID) // else it expires
	held := &lead.HeldError{}
	if kvs := resp.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
		held.By = string(kvs[0].Value)
	}
	return 0, held
}

// Renew implements lead.Lease. The key may be gone although the lease is not: somebody has removed it, or an older copy
// of etcd was restored.
func (l *lease) Renew(ctx context.Context, t lead.Token, _ time.Duration) error {
	id, ok := l.leases.of(t)
	if !ok {
		return lead.ErrLost
	}
	_, err := hedged(ctx, (*engine)(l), func(ctx context.Context) (*clientv3.LeaseKeepAliveResponse, error) {
		return l.client.KeepAliveOnce(ctx, id)
	})
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return fmt.Errorf("%w: it has expired in etcd", lead.ErrLost)
	}
	if err != nil {
		return answered(err)
	}
	resp, err := (*engine)(l).get(ctx, l.key())
	switch {
	case err != nil:
		return err
	case len(resp.Kvs) == 0:
		return fmt.Errorf("%w: its key is gone", lead.ErrLost)
	case resp.Kvs[0].CreateRevision != int64(t):
		return fmt.Errorf("%w: %s leads", lead.ErrLost, resp.Kvs[0].Value)
	}
	return nil
}

// Release implements lead.Lease.
func (l *lease) Release(ctx context.Context, t lead.Token) error {
	id, ok := l.leases.of(t)
	if !ok {
		return nil
	}
	_, err := l.client.Revoke(ctx, id)
	if err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return answered(err)
	}
	l.leases.remove(t)
	return nil
}

// lookAgain is after how long Wait returns although it has seen nothing: the server of the watch may have stopped to
// answer.
const lookAgain = time.Second

// Wait implements lead.Lease.
func (l *lease) Wait(ctx context.Context) error {
	within, done := context.WithTimeout(stream(ctx, "wait"), lookAgain)
	defer done()
	resp, err := (*engine)(l).get(within, l.key())
	if err != nil {
		return err
	}
	if len(resp.Kvs) == 0 {
		return nil
	}
	for change := range l.client.Watch(within, l.key(), clientv3.WithRev(resp.Header.Revision+1), clientv3.WithFilterPut()) {
		if err := change.Err(); err != nil {
			return answered(err)
		}
		if len(change.Events) > 0 {
			return nil
		}
	}
	return ctx.Err()
}
