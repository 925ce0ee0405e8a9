package etcd

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// A member of etcd that is suspended, or whose disk hangs, keeps its connections: the client does not notice it, and
// sends it its share of the calls. So calls that change nothing are made again elsewhere while there is no answer, and
// the client gets only those endpoints that answer.

const (
	// callAgain is how long a call that changes nothing waits for its answer until it is made again.
	callAgain = 200 * time.Millisecond
	// mostCalls is how often it is made at most.
	mostCalls = 3
)

// hedged makes a call that changes nothing, and makes it again while there is no answer. The client sends each to its
// next server. The first answer counts; an error does only if there is no other answer.
func hedged[R any](ctx context.Context, e *engine, call func(context.Context) (R, error)) (R, error) {
	if len(e.endpoints) < 2 {
		return call(ctx)
	}
	type answer struct {
		result R
		err    error
	}
	within, done := context.WithCancel(ctx)
	defer done()
	answers := make(chan answer, mostCalls)
	begin := func() {
		result, err := call(within)
		answers <- answer{result, err}
	}
	go begin()
	again := time.NewTicker(callAgain)
	defer again.Stop()
	for begun, failed := 1, 0; ; {
		select {
		case a := <-answers:
			if failed++; a.err == nil || failed == begun {
				return a.result, a.err
			}
		case <-again.C:
			if begun < mostCalls {
				e.suspected.Store(true)
				begun++
				go begin()
			}
		}
	}
}

// get reads keys.
func (e *engine) get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	resp, err := hedged(ctx, e, func(ctx context.Context) (*clientv3.GetResponse, error) { return e.client.Get(ctx, key, opts...) })
	return resp, answered(err)
}

// member is what a member says about itself.
type member struct {
	endpoint string
	status   *clientv3.StatusResponse
	err      error
}

// members asks all members at the same time.
func (e *engine) members(ctx context.Context, within time.Duration) []member {
	ctx, done := context.WithTimeout(ctx, within)
	defer done()
	all := make([]member, len(e.endpoints))
	var asked sync.WaitGroup
	for i, endpoint := range e.endpoints {
		asked.Go(func() {
			status, err := e.client.Status(ctx, endpoint)
			all[i] = member{endpoint, status, err}
		})
	}
	asked.Wait()
	return all
}

const (
	// spaceBeats is after how many beats Follow asks how much space is left.
	spaceBeats = 30
	// awayBeats is after how many beats it looks again at members that were left out.
	awayBeats = 2
	// spaceLow is the share of the quota from which little space is left.
	spaceLow = 0.8
)

// lookAfter looks at the members until ctx ends.
func (e *engine) lookAfter(ctx context.Context, space chan<- error) {
	every := time.NewTicker(beat)
	defer every.Stop()
	for n := 0; ; n++ {
		away := len(e.client.Endpoints()) < len(e.endpoints)
		if e.suspected.Swap(false) || n%spaceBeats == 0 || away && n%awayBeats == 0 {
			all := e.members(ctx, e.timeout/2)
			if ctx.Err() == nil {
				e.choose(all)
			}
			if err, known := e.spaceLeft(all); known {
				send(ctx, space, err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

// choose lets the client use the endpoints of those members that answer, and are with the others; all, if there is
// none.
func (e *engine) choose(all []member) {
	if len(all) < 2 {
		return
	}
	var good []string
	for _, m := range all {
		if m.err == nil && m.status.Leader != 0 {
			good = append(good, m.endpoint)
		}
	}
	if len(good) == 0 {
		good = e.endpoints
	}
	if !slices.Equal(good, e.client.Endpoints()) {
		e.client.SetEndpoints(good...)
	}
}

// spaceLeft returns an error if a member has little space left. It returns false if none has answered.
func (e *engine) spaceLeft(all []member) (low error, known bool) {
	for _, m := range all {
		if m.err != nil {
			continue
		}
		quota := m.status.DbSizeQuota
		if quota == 0 {
			quota = e.quota
		}
		known = true
		if float64(m.status.DbSizeInUse) >= spaceLow*float64(quota) || m.status.DbSize >= quota {
			low = fmt.Errorf("%s uses %d of %d bytes", m.endpoint, m.status.DbSizeInUse, quota)
		}
	}
	return low, known
}

func send(ctx context.Context, to chan<- error, err error) {
	select {
	case to <- err:
	case <-ctx.Done():
	}
}
