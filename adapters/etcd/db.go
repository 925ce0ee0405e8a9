package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/millwright-go/millwright/remote"
)

// Options of Open. The zero Options have good defaults.
type Options struct {
	remote.Options

	// Prefix is that of all keys, without a slash at its end. Each fleet has its own. Empty: DefaultPrefix.
	Prefix string
	// Adopt takes over the data of another cluster, for example after a restore from a snapshot into a new one. Make
	// sure that no process manages the fleet through the other cluster any more. False: Open fails with a
	// *ClusterError.
	Adopt bool
	// Quota is the server's --quota-backend-bytes, for servers that do not tell it (before 3.6). Zero:
	// DefaultQuota.
	Quota int64
}

// The defaults of Options: a prefix, and etcd's own quota.
const (
	DefaultPrefix = "/millwright"
	DefaultQuota  = 2 << 30
)

// DB is a fleet in etcd. Open makes it.
type DB struct{ *remote.DB }

// These are the errors of Open. Errors come wrapped; use errors.Is.
var (
	// ErrVersion: a server is older than 3.5.8. Such servers may say that a watch is complete before it is.
	ErrVersion = errors.New("the server is too old")
	// ErrCluster is what every *ClusterError is.
	ErrCluster = errors.New("the data are of another cluster")
)

// ClusterError says that the data under the prefix were written in another cluster. If they are a copy, and
// another process manages the fleet by the original, managing the copy would double its machines.
type ClusterError struct{ Data, Here uint64 }

// Error names both clusters.
func (e *ClusterError) Error() string {
	return fmt.Sprintf("the data are of cluster %x, and this is cluster %x: a copy or a restore; see Options.Adopt", e.Data, e.Here)
}

// Is makes errors.Is(err, ErrCluster) true.
func (e *ClusterError) Is(target error) bool { return target == ErrCluster }

// Open returns the fleet under a prefix. The client must be used for nothing else, and must stay open for as long as
// the DB, which chooses among its endpoints those that answer; leave AutoSyncInterval zero. Open fails if a server is too old (ErrVersion), if the data are those of another cluster (ErrCluster), of
// another layout (remote.ErrLayout), or if the user lacks a permission for the prefix (store.ErrForbidden).
func Open(ctx context.Context, client *clientv3.Client, o Options) (*DB, error) {
	e, err := newEngine(ctx, client, o)
	if err != nil {
		return nil, fmt.Errorf("open %s in etcd: %w", e.prefix, err)
	}
	db, err := remote.Open(ctx, e, o.Options)
	if err != nil {
		return nil, fmt.Errorf("open %s in etcd: %w", e.prefix, err)
	}
	return &DB{db}, nil
}

// engine implements remote.Engine.
type engine struct {
	client    *clientv3.Client
	endpoints []string // all that the client was made with
	prefix    string
	quota     int64
	timeout   time.Duration
	suspected atomic.Bool   // a server may have stopped to answer
	wanted    chan struct{} // wakes Follow, because somebody waits for progress

	mu          sync.Mutex
	cluster     uint64
	incarnation incarnation
	listed      bool  // the sink has all records, up to position
	position    int64 // Follow has shown everything up to this revision
	newest      int64 // the highest revision that etcd is known to have had
	went        error // not nil: etcd has another state than before, which Follow must list
	waiters     map[chan struct{}]int64
	again       chan struct{} // wakes Follow, so that it looks at went
	streams     int           // how many streams of Follow have stalled
	leases      leases
}

// incarnation tells the data from what they were before a restore. It is part of every version, so that no version
// comes back although revisions do.
type incarnation struct {
	name     string
	number   int64 // rises with each restore that was noticed
	revision int64 // of its key
}

// newEngine returns an engine, also with an error.
func newEngine(ctx context.Context, client *clientv3.Client, o Options) (*engine, error) {
	e := &engine{
		client: client, endpoints: client.Endpoints(), prefix: strings.TrimRight(cmp.Or(o.Prefix, DefaultPrefix), "/"),
		quota: cmp.Or(o.Quota, DefaultQuota), timeout: cmp.Or(o.CallTimeout, remote.DefaultCallTimeout),
		wanted: make(chan struct{}, 1), waiters: make(map[chan struct{}]int64), again: make(chan struct{}, 1),
	}
	ctx, done := context.WithTimeout(ctx, openTimeout)
	defer done()
	if err := e.checkVersions(ctx); err != nil {
		return e, err
	}
	return e, e.identify(ctx, o.Adopt)
}

// openTimeout bounds how long Open waits for etcd.
const openTimeout = 10 * time.Second

// oldest is the oldest version of etcd whose progress notifications are right.
var oldest = [3]int{3, 5, 8}

// checkVersions asks the servers for their versions. One that does not answer is no error, if another does.
func (e *engine) checkVersions(ctx context.Context) error {
	var failed error
	answers := 0
	for _, m := range e.members(ctx, openTimeout/4) {
		switch {
		case m.err != nil:
			failed = fmt.Errorf("%s: %w", m.endpoint, answered(m.err))
		case isOlder(m.status.Version):
			return fmt.Errorf("%w: %s is etcd %s, and needs %d.%d.%d",
				ErrVersion, m.endpoint, m.status.Version, oldest[0], oldest[1], oldest[2])
		default:
			answers++
		}
	}
	if answers > 0 {
		return nil
	}
	if why := e.unreachable(ctx); why != nil {
		return fmt.Errorf("%w: %w", failed, why)
	}
	return failed
}

// unreachable returns why there is no connection, which the client keeps to itself when the time of a call ends.
func (e *engine) unreachable(ctx context.Context) error {
	one, done := context.WithTimeout(ctx, openTimeout/4)
	defer done()
	_, err := etcdserverpb.NewMaintenanceClient(e.client.ActiveConnection()).
		Status(one, &etcdserverpb.StatusRequest{}, grpc.WaitForReady(false))
	return err
}

func isOlder(version string) bool {
	version, _, _ = strings.Cut(version, "-")
	parts := strings.Split(version, ".")
	for i, want := range oldest {
		if i >= len(parts) {
			return true
		}
		n, err := strconv.Atoi(parts[i])
		if err != nil || n < want {
			return true
		}
		if n > want {
			return false
		}
	}
	return false
}
