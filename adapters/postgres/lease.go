package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/millwright-go/millwright/lead"
)

// Lease implements remote.Engine.
func (e *engine) Lease() lead.Lease { return (*lease)(e) }

// lease implements lead.Lease by a row, and the server's clock.
type lease engine

// Take implements lead.Lease.
func (l *lease) Take(ctx context.Context, id string, ttl time.Duration) (lead.Token, error) {
	for {
		var token int64
		err := l.pool.QueryRow(ctx, l.sql.take, id, ttl.Seconds()).Scan(&token)
		if err == nil {
			return lead.Token(token), nil
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return 0, answered(err)
		}
		by, _, err := l.holder(ctx)
		switch {
		case err != nil:
			return 0, err
		case by != "":
			return 0, &lead.HeldError{By: by}
		}
	}
}

// holder returns who holds the lease, and for how long. Empty: nobody.
func (l *lease) holder(ctx context.Context) (id string, left time.Duration, err error) {
	var seconds float64
	err = l.pool.QueryRow(ctx, l.sql.holder).Scan(&id, &seconds)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", 0, nil
	}
	return id, time.Duration(seconds * float64(time.Second)), answered(err)
}

// Renew implements lead.Lease.
func (l *lease) Renew(ctx context.Context, t lead.Token, ttl time.Duration) error {
	done, err := l.pool.Exec(ctx, l.sql.renew, int64(t), ttl.Seconds())
	if err != nil {
		return answered(err)
	}
	if done.RowsAffected() > 0 {
		return nil
	}
	by, _, err := l.holder(ctx)
	if err != nil || by == "" {
		return fmt.Errorf("%w: it has expired in the database", lead.ErrLost)
	}
	return fmt.Errorf("%w: %s leads", lead.ErrLost, by)
}

// Release implements lead.Lease.
func (l *lease) Release(ctx context.Context, t lead.Token) error {
	_, err := l.pool.Exec(ctx, l.sql.release, int64(t))
	return answered(err)
}

// lookAgain is how often Wait looks whether the lease was given back.
const lookAgain = 100 * time.Millisecond

// Wait implements lead.Lease.
func (l *lease) Wait(ctx context.Context) error {
	for {
		by, left, err := l.holder(ctx)
		if err != nil || by == "" {
			return err
		}
		timer := time.NewTimer(max(min(left, lookAgain), time.Millisecond))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}
