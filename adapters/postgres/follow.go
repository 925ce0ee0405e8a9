package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/millwright-go/millwright/remote"
)

const (
	// soonest and latest bound the pause between two looks at the table. It doubles while nothing changes.
	soonest = 20 * time.Millisecond
	latest  = 250 * time.Millisecond
	// purgeEvery is how often rows of objects that are gone are removed, an hour after their end.
	purgeEvery = 10 * time.Minute
	// mostAway is after what time without a look everything is read again, because such rows may be removed.
	mostAway = 30 * time.Minute
)

// seen is what the looks so far have shown.
type seen struct {
	snapshot string // of the last look; empty: everything is to be read
	server   string // its start, its timeline and its identity
	newest   uint64 // the highest transaction that is known to have been committed
	at       time.Time
}

// look is the answer to one look at the table.
type look struct {
	snapshot, server string
	standby          bool
	records          []remote.Record
	newest           uint64
}

// Follow implements remote.Engine. It looks at the table again and again. A look shows the rows whose transactions were not
// visible in the snapshot of the last one: so it misses none that commits late, and waits for none.
func (e *engine) Follow(ctx context.Context, sink remote.Sink) error {
	pause, purged := soonest, time.Now()
	for {
		changed, err := e.lookOnce(ctx, sink)
		if err != nil {
			return err
		}
		if pause = min(2*pause, latest); changed {
			pause = soonest
		}
		if time.Since(purged) > purgeEvery {
			purged = time.Now()
			if _, err := e.pool.Exec(ctx, e.sql.purge); err != nil {
				return answered(err)
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-e.wake:
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// lookOnce looks at the table, and shows what has changed.
func (e *engine) lookOnce(ctx context.Context, sink remote.Sink) (changed bool, err error) {
	e.mu.Lock()
	asked, before := e.asked, e.seen
	e.mu.Unlock()
	if time.Since(before.at) > mostAway {
		before.snapshot = ""
	}
	now, err := e.look(ctx, before.snapshot)
	if err == nil && before.snapshot != "" && now.server != before.server {
		before.snapshot = "" // transactions may have the numbers of others that have failed
		now, err = e.look(ctx, "")
	}
	switch {
	case err != nil:
		return false, err
	case now.standby:
		return false, ErrStandby
	}
	if why := lost(before, now); why != nil {
		sink.Forget(why)
		now, err = e.look(ctx, "")
		if err != nil {
			return false, err
		}
		before = seen{}
	}
	if before.snapshot == "" {
		sink.Replace(now.records, 0)
	} else {
		for _, r := range now.records {
			sink.Show(r)
		}
		sink.Alive()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	newest := max(before.newest, now.newest)
	if before.server != "" {
		newest = max(newest, e.seen.newest) // an own write since
	}
	e.seen = seen{now.snapshot, now.server, newest, time.Now()}
	e.looked = asked
	e.polled.Broadcast()
	return len(now.records) > 0, nil
}

// lost returns why the server may have lost commits that were shown; nil: it has not.
func lost(before seen, now *look) error {
	if before.server == "" {
		return nil
	}
	_, identityBefore, _ := cutStart(before.server)
	_, identityNow, _ := cutStart(now.server)
	if identityBefore != identityNow {
		return errors.New("another server answers, or the same on another timeline")
	}
	if next := upperBound(now.snapshot); before.newest >= next {
		return fmt.Errorf("transaction %d was seen, and the next one is %d", before.newest, next)
	}
	return nil
}

// cutStart cuts the identity of a server from when it was started.
func cutStart(server string) (start, identity string, ok bool) {
	if i := strings.LastIndexByte(server, ' '); i > 0 {
		if j := strings.LastIndexByte(server[:i], ' '); j > 0 {
			return server[:j], server[j+1:], true
		}
	}
	return server, "", false
}

// upperBound returns the first transaction that a snapshot does not know yet: the second part of XMIN:XMAX:LIST.
func upperBound(snapshot string) uint64 {
	parts := strings.SplitN(snapshot, ":", 3)
	if len(parts) < 2 {
		return 0
	}
	return number(parts[1])
}

// number returns the number of a transaction.
func number(xid string) uint64 {
	n, _ := strconv.ParseUint(xid, 10, 64) // the server writes it
	return n
}

// look reads the rows that were not visible in a snapshot; all, if it is empty.
func (e *engine) look(ctx context.Context, since string) (*look, error) {
	if since == "" {
		var l *look
		err := e.unhurried(ctx, func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, e.sql.all)
			if err != nil {
				return err
			}
			l, err = read(rows)
			return err
		})
		return l, answered(err)
	}
	call, done := context.WithTimeout(ctx, remote.DefaultCallTimeout)
	defer done()
	rows, err := e.pool.Query(call, e.sql.since, since)
	if err != nil {
		return nil, answered(err)
	}
	return read(rows)
}

func read(rows pgx.Rows) (*look, error) {
	defer rows.Close()
	l := &look{}
	for rows.Next() {
		var r row
		if err := rows.Scan(append([]any{&l.snapshot, &l.server, &l.standby}, r.columns()...)...); err != nil {
			return nil, answered(err)
		}
		if r.kind == nil {
			continue
		}
		l.records = append(l.records, r.record())
		l.newest = max(l.newest, number(*r.xid))
	}
	return l, answered(rows.Err())
}

// Fresh implements remote.Engine: it waits for a look that begins after the call.
func (e *engine) Fresh(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.polled.Broadcast()
	})
	defer stop()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked++
	until := e.asked
	select {
	case e.wake <- struct{}{}:
	default:
	}
	for e.looked < until {
		if ctx.Err() != nil {
			return fmt.Errorf("%w: no look at it has ended", remote.ErrBehind)
		}
		e.polled.Wait()
	}
	return nil
}
