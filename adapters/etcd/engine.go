package etcd

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millwright-go/millwright/lead"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/remote"
	"github.com/millwright-go/millwright/store"
)

// The keys of a fleet are PREFIX/objects/KIND/NAMESPACE/NAME, with namespace and name escaped as in URLs, and the
// following.
func (e *engine) objectsPrefix() string  { return e.prefix + "/objects/" }
func (e *engine) leaderKey() string      { return e.prefix + "/leader" }
func (e *engine) incarnationKey() string { return e.prefix + "/incarnation" }

func (e *engine) keyOf(k remote.Key) string {
	return e.objectsPrefix() + k.Kind + "/" + url.PathEscape(k.Namespace) + "/" + url.PathEscape(k.Name)
}

// parseKey returns the key of an object. A key that is none belongs to a kind that no program knows.
func (e *engine) parseKey(raw []byte) remote.Key {
	path := strings.TrimPrefix(string(raw), e.objectsPrefix())
	if parts := strings.Split(path, "/"); len(parts) == 3 {
		space, err1 := url.PathUnescape(parts[1])
		name, err2 := url.PathUnescape(parts[2])
		k := remote.Key{Kind: parts[0], Key: object.Key{Namespace: space, Name: name}}
		if err1 == nil && err2 == nil && e.keyOf(k) == string(raw) {
			return k
		}
	}
	return remote.Key{Kind: "key", Key: object.Key{Name: path}}
}

func (i incarnation) version(revision int64) string {
	return i.name + "-" + strconv.FormatInt(revision, 10)
}

// revisionIn returns the revision in a version of the incarnation. It returns false if the version is another one's.
func (i incarnation) revisionIn(version string) (int64, bool) {
	if version == "" {
		return 0, true
	}
	digits, ok := strings.CutPrefix(version, i.name+"-")
	if !ok {
		return 0, false
	}
	revision, err := strconv.ParseInt(digits, 10, 64)
	return revision, err == nil && revision > 0
}

func (e *engine) record(in incarnation, kv *mvccpb.KeyValue) remote.Record {
	return remote.Record{
		Key: e.parseKey(kv.Key), Content: kv.Value, Version: in.version(kv.ModRevision), Order: uint64(kv.ModRevision),
	}
}

// Get implements remote.Engine.
func (e *engine) Get(ctx context.Context, k remote.Key) (remote.Record, error) {
	before := e.mark()
	resp, err := e.get(ctx, e.keyOf(k))
	if err != nil {
		return remote.Record{}, err
	}
	if err := e.saw(before, resp.Header); err != nil {
		return remote.Record{}, err
	}
	if len(resp.Kvs) == 0 {
		return remote.Record{Key: k}, nil
	}
	return e.record(before.incarnation, resp.Kvs[0]), nil
}

// List implements remote.Engine.
func (e *engine) List(ctx context.Context, kind string) ([]remote.Record, error) {
	prefix := e.objectsPrefix()
	if kind != "" {
		prefix += kind + "/"
	}
	all, _, err := e.list(ctx, prefix)
	return all, err
}

// pageSize is how many records one answer has at most.
const pageSize = 1000

// list returns the records under a prefix as they are at the revision that it returns. Each page has a time of its own.
func (e *engine) list(ctx context.Context, prefix string) ([]remote.Record, int64, error) {
	before := e.mark()
	var all []remote.Record
	from, end, revision := prefix, clientv3.GetPrefixRangeEnd(prefix), int64(0)
	for {
		page, done := context.WithTimeout(ctx, e.timeout)
		resp, err := e.get(page, from, clientv3.WithRange(end), clientv3.WithLimit(pageSize), clientv3.WithRev(revision))
		done()
		if err != nil {
			return nil, 0, err
		}
		if err := e.saw(before, resp.Header); err != nil {
			return nil, 0, err
		}
		if revision == 0 {
			revision = resp.Header.Revision
		}
		for _, kv := range resp.Kvs {
			all = append(all, e.record(before.incarnation, kv))
		}
		if !resp.More {
			return all, revision, nil
		}
		from = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00"
	}
}

// Swap implements remote.Engine.
func (e *engine) Swap(ctx context.Context, s remote.Swap) (remote.Record, error) {
	before := e.mark()
	in := before.incarnation
	revision, ok := in.revisionIn(s.Version)
	switch {
	case errors.Is(before.went, ErrCluster):
		return remote.Record{}, before.went
	case !ok:
		return remote.Record{}, store.ErrConflict
	}
	key := e.keyOf(s.Key)
	conditions := []clientv3.Cmp{
		clientv3.Compare(clientv3.ModRevision(key), "=", revision),
		clientv3.Compare(clientv3.ModRevision(e.incarnationKey()), "=", in.revision),
	}
	if s.Token != 0 {
		conditions = append(conditions, clientv3.Compare(clientv3.CreateRevision(e.leaderKey()), "=", int64(s.Token)))
	}
	write := clientv3.OpDelete(key)
	if s.Content != nil {
		write = clientv3.OpPut(key, string(s.Content))
	}
	resp, err := e.client.Txn(ctx).If(conditions...).Then(write).
		Else(clientv3.OpGet(e.leaderKey(), clientv3.WithKeysOnly()), clientv3.OpGet(e.incarnationKey())).Commit()
	if err != nil {
		if ctx.Err() != nil {
			e.suspected.Store(true)
		}
		return remote.Record{}, answered(err)
	}
	if err := e.saw(before, resp.Header); err != nil {
		return remote.Record{}, err
	}
	if resp.Succeeded {
		at := resp.Header.Revision
		return remote.Record{
			Key: s.Key, Content: s.Content, Version: in.version(at), Order: uint64(at),
		}, nil
	}
	leader := resp.Responses[0].GetResponseRange().Kvs
	if s.Token != 0 && (len(leader) == 0 || leader[0].CreateRevision != int64(s.Token)) {
		return remote.Record{}, store.ErrFenced
	}
	if now := resp.Responses[1].GetResponseRange().Kvs; len(now) == 0 || now[0].ModRevision != in.revision {
		e.replaced()
		return remote.Record{}, errReplaced // not a conflict, after which a deletion would begin again at once
	}
	return remote.Record{}, store.ErrConflict
}

// errReplaced: another process has found that etcd went back to an older state.
var errReplaced = errors.New("the data have another incarnation")

// identity is what the key of the incarnation has.
type identity struct {
	Incarnation string
	Number      int64
	Cluster     string // in hexadecimal
}

// known reads the identity of the data, and the revision of its key, which is zero if there is none.
func (e *engine) known(ctx context.Context) (id identity, revision int64, here uint64, err error) {
	resp, err := e.get(ctx, e.incarnationKey())
	switch {
	case err != nil:
		return id, 0, 0, err
	case len(resp.Kvs) == 0:
		return id, 0, resp.Header.ClusterId, nil
	}
	if err := json.Unmarshal(resp.Kvs[0].Value, &id); err != nil {
		return id, 0, 0, fmt.Errorf("%s: %w", e.incarnationKey(), err)
	}
	return id, resp.Kvs[0].ModRevision, resp.Header.ClusterId, nil
}

// identify reads the incarnation. It makes one if there is none, or if the data are adopted from another cluster.
func (e *engine) identify(ctx context.Context, adopt bool) error {
	for {
		id, revision, here, err := e.known(ctx)
		if err != nil {
			return err
		}
		if revision != 0 {
			data, err := strconv.ParseUint(id.Cluster, 16, 64)
			switch {
			case err != nil:
				return fmt.Errorf("%s: it names no cluster", e.incarnationKey())
			case data == here:
				e.become(incarnation{id.Incarnation, id.Number, revision}, here)
				return nil
			case !adopt:
				return &ClusterError{Data: data, Here: here}
			}
		}
		if err := e.renew(ctx, revision, here, id.Number+1); err != nil {
			return err
		}
	}
}

// succeed makes an incarnation that follows was, unless another process has done so.
func (e *engine) succeed(ctx context.Context, was incarnation) error {
	id, revision, here, err := e.known(ctx)
	if err != nil || id.Number > was.number {
		return err
	}
	return e.renew(ctx, revision, here, was.number+1)
}

// renew writes a new incarnation, unless another process has done so. revision is that of its key.
func (e *engine) renew(ctx context.Context, revision int64, cluster uint64, number int64) error {
	content, err := json.Marshal(identity{strings.ToLower(rand.Text())[:12], number, strconv.FormatUint(cluster, 16)})
	if err != nil {
		return err
	}
	key := e.incarnationKey()
	_, err = e.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).
		Then(clientv3.OpPut(key, string(content))).Commit()
	return answered(err)
}

// become begins an incarnation. What was known of another one's revisions does not count.
func (e *engine) become(i incarnation, cluster uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i != e.incarnation {
		e.position, e.newest, e.listed = 0, 0, false
	}
	e.incarnation, e.cluster = i, cluster
}

func (e *engine) current() incarnation { return e.mark().incarnation }

// mark is what was known when a call began.
type mark struct {
	incarnation incarnation
	revision    int64 // the highest that etcd is known to have had
	went        error
}

func (e *engine) mark() mark {
	e.mu.Lock()
	defer e.mu.Unlock()
	return mark{e.incarnation, e.newest, e.went}
}

// saw takes the header of an answer to a call that began at before. If the revision is below one that was known
// then, an older copy of etcd was restored; if the cluster is another one, the endpoints lead there. In both cases the
// answer says nothing, and Follow lists everything.
func (e *engine) saw(before mark, header *etcdserverpb.ResponseHeader) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case header.ClusterId != e.cluster:
		return e.goneBack(&ClusterError{Data: e.cluster, Here: header.ClusterId})
	case before.incarnation != e.incarnation:
		return errReplaced
	case header.Revision < before.revision:
		return e.goneBack(fmt.Errorf("etcd answers with revision %d after %d", header.Revision, before.revision))
	}
	e.newest = max(e.newest, header.Revision)
	return nil
}

// goneBack says that etcd has another state than before, and returns why. The caller holds e.mu.
func (e *engine) goneBack(why error) error {
	if e.went == nil || errors.Is(why, ErrCluster) {
		e.went = why
	}
	select {
	case e.again <- struct{}{}:
	default:
	}
	return why
}

// replaced says that the data have another incarnation.
func (e *engine) replaced() {
	e.mu.Lock()
	defer e.mu.Unlock()
	_ = e.goneBack(errReplaced)
}

// Lease implements remote.Engine.
func (e *engine) Lease() lead.Lease { return (*lease)(e) }

// answered returns the error of a call as package remote has it.
func answered(err error) error {
	var of error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rpctypes.ErrNoSpace):
		of = remote.ErrFull
	case errors.Is(err, rpctypes.ErrRequestTooLarge):
		of = store.ErrTooLarge
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		of = store.ErrForbidden
	case errors.Is(err, rpctypes.ErrUserEmpty), errors.Is(err, rpctypes.ErrAuthFailed), errors.Is(err, rpctypes.ErrInvalidAuthToken):
		of = store.ErrUnauthenticated
	case errors.Is(err, rpctypes.ErrTooManyRequests):
		of = store.ErrThrottled
	case status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max"):
		of = store.ErrTooLarge // refused by the client
	case errors.Is(err, context.DeadlineExceeded), status.Code(err) == codes.DeadlineExceeded:
		of = remote.ErrNoAnswer
	default:
		return fmt.Errorf("etcd: %w", err)
	}
	return fmt.Errorf("%w: etcd: %w", of, err)
}
