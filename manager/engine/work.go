package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/millwright-go/millwright/object"
)

// Pauses after passes that could not be finished: doubled from the first to
// the last, per key.
const (
	firstPause = 200 * time.Millisecond
	lastPause  = 3 * time.Minute
)

// Backoff doubles with each failure in a row, from 200 ms to 3 min.
func Backoff(failures int) time.Duration {
	wait := firstPause
	for i := 1; i < failures && wait < lastPause; i++ {
		wait *= 2
	}
	return min(wait, lastPause)
}

// Worker reconciles objects of one kind, as a [Reconciler] does.
type Worker interface {
	Name() string
	Reconcile(ctx context.Context, key object.Key) (Result, error)
}

// Work reconciles one key of a queue after the other until the queue is closed. A pass that could not be
// finished is tried again after a pause. taken is told, with each key, how many others are due; nil: it is
// not told. Several calls at a time share the keys of a queue.
func (e *Engine) Work(ctx context.Context, q *Queue, w Worker, taken func(due int)) {
	for {
		key, ok := q.Next()
		if !ok {
			return
		}
		if taken != nil {
			taken(q.Depth())
		}
		result, err := w.Reconcile(ctx, key)
		if err != nil {
			q.Fail(key, e.again(ctx, q, w.Name(), key, err))
			continue
		}
		q.Done(key, result.At)
	}
}

// again says when to try a pass again that could not be finished.
func (e *Engine) again(ctx context.Context, q *Queue, kind string, key object.Key, err error) time.Time {
	if ctx.Err() != nil {
		return time.Time{}
	}
	shortest := Backoff(q.Failed(key))
	wait := shortest
	e.Guard.Hook(kind, key, func() { // Log and Jitter are the embedder's
		e.Log.LogAttrs(ctx, slog.LevelWarn, "pass not finished", slog.String("kind", kind),
			slog.String("object", key.String()), slog.String("error", err.Error()), slog.Duration("retry", shortest))
		wait = max(shortest, e.Jitter(shortest))
	})
	return e.Now().Add(wait)
}
