package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"

	"github.com/millwright-go/millwright/remote"
)

const (
	// progressEvery is the time between two requests for progress while somebody waits for it.
	progressEvery = 20 * time.Millisecond
	// beat is how often Follow asks whether etcd answers, and whether it went back to an older state: a watch from
	// a revision that is yet to come is silent.
	beat = time.Second
)

// Follow implements remote.Engine. It resumes where the last call has ended, if it can.
func (e *engine) Follow(ctx context.Context, sink remote.Sink) error {
	if err := e.resumable(ctx, sink); err != nil {
		return err
	}
	e.mu.Lock()
	listed := e.listed
	e.mu.Unlock()
	if !listed {
		all, revision, err := e.list(ctx, e.objectsPrefix())
		if err != nil {
			return err
		}
		sink.Replace(all, uint64(revision))
		e.mu.Lock()
		e.listed = true
		e.mu.Unlock()
		e.reached(revision)
	}
	return e.watch(ctx, sink)
}

// resumable finds out whether etcd has lost writes. If so, it gives the data another incarnation.
func (e *engine) resumable(ctx context.Context, sink remote.Sink) error {
	call, done := context.WithTimeout(ctx, e.timeout)
	defer done()
	was := e.current()
	_, failed := e.alive(call)
	went := e.mark().went
	switch {
	case went == nil && failed != nil:
		return failed
	case errors.Is(went, ErrCluster) && failed != nil:
		if errors.Is(failed, ErrCluster) {
			sink.Forget(failed)
		}
		return failed
	case went != nil && !errors.Is(went, errReplaced) && !errors.Is(went, ErrCluster):
		if err := e.succeed(call, was); err != nil {
			return err
		}
	}
	if err := e.identify(call, false); err != nil {
		return err
	}
	if went == nil {
		if e.current() == was {
			return nil
		}
		went = errReplaced
	}
	e.mu.Lock()
	e.went, e.listed = nil, false
	select {
	case <-e.again:
	default:
	}
	e.mu.Unlock()
	sink.Forget(went)
	return nil
}

// alive asks whether etcd answers, and for its revision. It notices if etcd went back.
func (e *engine) alive(ctx context.Context) (int64, error) {
	before := e.mark()
	resp, err := e.get(ctx, e.incarnationKey(), clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return resp.Header.Revision, e.saw(before, resp.Header)
}

// errStalled: a server has stopped to show changes, and keeps the connection.
var errStalled = errors.New("the watch shows nothing although etcd has changed")

// stream returns a context for a watch with a gRPC stream of its own: the client would begin a watch on a stream that
// has stalled, as long as another watch is on it.
func stream(ctx context.Context, name string) context.Context {
	return clientv3.WithRequireLeader(metadata.AppendToOutgoingContext(ctx, "millwright-stream", name))
}

// watch shows changes until the watch breaks.
func (e *engine) watch(ctx context.Context, sink remote.Sink) error {
	ctx, cancel := context.WithCancel(stream(ctx, fmt.Sprint("follow-", e.streams)))
	defer cancel()
	beats, space := make(chan pulse, 1), make(chan error, 1)
	go e.beats(ctx, beats)
	go e.lookAfter(ctx, space)
	opened := make(chan clientv3.WatchChan, 1)
	from := e.at() + 1
	go func() { // it returns when a server has answered
		opened <- e.client.Watch(ctx, e.prefix+"/", clientv3.WithPrefix(), clientv3.WithRev(from), clientv3.WithProgressNotify(), clientv3.WithFragment())
	}()
	var changes clientv3.WatchChan
	var ask <-chan time.Time
	pace := pace{at: e.at(), patience: 1 + int(e.timeout/beat)}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-e.again:
			return errReplaced
		case changes = <-opened:
		case p := <-beats:
			switch {
			case p.err != nil:
				return p.err
			case pace.stalled(e.at(), p.revision):
				e.streams++
				e.suspected.Store(true)
				return errStalled
			case pace.missed == 0:
				sink.Alive()
			}
			e.want()
		case <-e.wanted:
			ask = e.askProgress(ctx, changes, pace.due)
		case <-ask:
			ask = e.askProgress(ctx, changes, pace.due)
		case err := <-space:
			sink.Space(err)
		case resp, ok := <-changes:
			if !ok {
				return errors.New("the watch has ended")
			}
			if err := e.take(resp, sink); err != nil {
				return err
			}
		}
	}
}

// pace is whether a watch keeps up with etcd.
type pace struct {
	at       int64 // where it was at the last beat
	due      int64 // where etcd was then
	missed   int   // for how many beats it has shown nothing, although it was due
	patience int
}

// stalled takes a beat, and reports whether the watch shows nothing any more.
func (p *pace) stalled(at, revision int64) bool {
	if at >= p.due || at > p.at {
		p.missed = 0
	} else {
		p.missed++
	}
	p.at, p.due = at, revision
	return p.missed > p.patience
}

// askProgress asks for progress if somebody waits for it, or if it is due, because revisions of others than the watched
// keys bring no event. It returns when to do so again.
func (e *engine) askProgress(ctx context.Context, changes clientv3.WatchChan, due int64) <-chan time.Time {
	e.mu.Lock()
	needed, waited := len(e.waiters) > 0 || e.position < due, len(e.waiters) > 0
	e.mu.Unlock()
	if needed && changes != nil {
		call, done := context.WithTimeout(ctx, progressEvery) // it waits while the client connects
		_ = e.client.RequestProgress(call)
		done()
	}
	if !waited {
		return nil
	}
	return time.After(progressEvery)
}

// want wakes Follow, so that it asks for progress.
func (e *engine) want() {
	select {
	case e.wanted <- struct{}{}:
	default:
	}
}

// take shows one answer of a watch.
func (e *engine) take(resp clientv3.WatchResponse, sink remote.Sink) error {
	if err := resp.Err(); err != nil {
		if errors.Is(err, rpctypes.ErrCompacted) || resp.CompactRevision != 0 {
			e.mu.Lock()
			e.listed = false
			e.mu.Unlock()
		}
		return fmt.Errorf("watch: %w", answered(err))
	}
	e.mu.Lock()
	in, cluster := e.incarnation, e.cluster
	e.mu.Unlock()
	if id := resp.Header.ClusterId; id != cluster {
		return &ClusterError{Data: cluster, Here: id}
	}
	for _, ev := range resp.Events {
		switch key := string(ev.Kv.Key); {
		case strings.HasPrefix(key, e.objectsPrefix()):
			r := e.record(in, ev.Kv)
			if ev.Type == clientv3.EventTypeDelete {
				r.Content, r.Version = nil, ""
			}
			sink.Show(r)
		case key == e.incarnationKey():
			e.replaced()
		}
	}
	switch n := len(resp.Events); {
	case n > 0:
		// Not the header's revision: it may be ahead of the events.
		e.reached(resp.Events[n-1].Kv.ModRevision)
	case resp.IsProgressNotify():
		e.reached(resp.Header.Revision)
		sink.Alive()
	}
	return nil
}

// pulse is one answer to the question whether etcd is alive.
type pulse struct {
	revision int64
	err      error
}

// beats asks regularly how etcd is, until ctx ends.
func (e *engine) beats(ctx context.Context, to chan<- pulse) {
	every := time.NewTicker(beat)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		call, done := context.WithTimeout(ctx, e.timeout)
		revision, err := e.alive(call)
		done()
		select {
		case to <- pulse{revision, err}:
		case <-ctx.Done():
		}
	}
}

func (e *engine) at() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.position
}

// reached says that everything up to a revision was shown.
func (e *engine) reached(revision int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.position, e.newest = max(e.position, revision), max(e.newest, revision)
	for w, until := range e.waiters {
		if until <= e.position {
			close(w)
			delete(e.waiters, w)
		}
	}
}

// Fresh implements remote.Engine. It asks etcd for the present revision, and waits for the watch to reach it.
func (e *engine) Fresh(ctx context.Context) error {
	revision, err := e.alive(ctx)
	if err != nil {
		return err
	}
	shown := e.until(revision)
	if shown == nil {
		return nil
	}
	defer e.stopWaiting(shown)
	e.want()
	select {
	case <-shown:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: revision %d of %d", remote.ErrBehind, e.at(), revision)
	}
}

// until returns a channel that is closed when Follow has shown everything up to a revision; nil: it has.
func (e *engine) until(revision int64) chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.position >= revision {
		return nil
	}
	w := make(chan struct{})
	e.waiters[w] = revision
	return w
}

func (e *engine) stopWaiting(w chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.waiters, w)
}
