package postgres

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/remote"
	"github.com/millwright-go/millwright/store"
)

// engine implements remote.Engine.
type engine struct {
	pool *pgxpool.Pool
	sql  sql
	wake chan struct{} // has Follow look at once

	mu     sync.Mutex
	polled sync.Cond // something of the following has changed
	asked  uint64    // how often somebody has asked for a look
	looked uint64    // what asked was when the last look that was shown began
	seen   seen
}

// Get implements remote.Engine.
func (e *engine) Get(ctx context.Context, k remote.Key) (remote.Record, error) {
	rows, err := e.pool.Query(ctx, e.sql.get, k.Kind, k.Namespace, k.Name)
	if err != nil {
		return remote.Record{}, answered(err)
	}
	all, err := records(rows)
	if err != nil || len(all) == 0 {
		return remote.Record{Key: k}, err
	}
	return all[0], nil
}

// List implements remote.Engine.
func (e *engine) List(ctx context.Context, kind string) (all []remote.Record, err error) {
	err = e.unhurried(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, e.sql.list, kind)
		if err != nil {
			return err
		}
		all, err = records(rows)
		return err
	})
	return all, answered(err)
}

// unhurried runs statements that may take as long as ctx lasts.
func (e *engine) unhurried(ctx context.Context, do func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, e.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local statement_timeout = 0`); err != nil {
			return err
		}
		return do(tx)
	})
}

// records reads rows with the columns of an object.
func records(rows pgx.Rows) (all []remote.Record, err error) {
	defer rows.Close()
	for rows.Next() {
		var r row
		if err := rows.Scan(r.columns()...); err != nil {
			return nil, answered(err)
		}
		all = append(all, r.record())
	}
	return all, answered(rows.Err())
}

// row is a row of the table of objects.
type row struct {
	kind, namespace, name *string // nil: there is no row
	version, writes       *int64
	document              []byte
	xid                   *string
}

func (r *row) columns() []any {
	return []any{&r.kind, &r.namespace, &r.name, &r.version, &r.writes, &r.document, &r.xid}
}

func (r *row) record() remote.Record {
	return remote.Record{
		Key:     remote.Key{Kind: *r.kind, Key: object.Key{Namespace: *r.namespace, Name: *r.name}},
		Content: r.document, Version: strconv.FormatInt(*r.version, 36), Order: uint64(*r.writes),
	}
}

// Swap implements remote.Engine.
func (e *engine) Swap(ctx context.Context, s remote.Swap) (remote.Record, error) {
	next := newVersion()
	args := []any{int64(s.Token), s.Key.Kind, s.Key.Namespace, s.Key.Name, next}
	statement := e.sql.insert
	var document *string
	if s.Content != nil {
		text := string(s.Content)
		document = &text
	}
	args = append(args, document)
	if s.Version != "" {
		was, err := strconv.ParseInt(s.Version, 36, 64)
		if err != nil {
			return remote.Record{}, store.ErrConflict
		}
		statement, args = e.sql.update, append(args, was)
	}
	var passed bool
	var writes *int64
	var xid *string
	if err := e.pool.QueryRow(ctx, statement, args...).Scan(&passed, &writes, &xid); err != nil {
		return remote.Record{}, answered(err)
	}
	switch {
	case !passed:
		return remote.Record{}, store.ErrFenced
	case writes == nil:
		return remote.Record{}, store.ErrConflict
	}
	e.committed(number(*xid))
	return remote.Record{
		Key: s.Key, Content: s.Content, Version: strconv.FormatInt(next, 36), Order: uint64(*writes),
	}, nil
}

// committed notes a transaction that the server says is committed.
func (e *engine) committed(xid uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen.newest = max(e.seen.newest, xid)
}

// newVersion returns a random version.
func newVersion() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return int64(binary.BigEndian.Uint64(b[:]) >> 1)
}

// These are the states with which PostgreSQL refuses a statement.
const (
	stateInsufficientPrivilege = "42501"
	stateInvalidAuthorization  = "28000"
	stateInvalidPassword       = "28P01"
	stateDiskFull              = "53100"
	stateTooManyConnections    = "53300"
	stateLimitExceeded         = "54000"
	stateReadOnly              = "25006"
	stateBadText               = "22021" // a text with a zero byte
	stateNoTable               = "42P01"
)

// answered returns the error of a call as package remote has it.
func answered(err error) error {
	if err == nil {
		return nil
	}
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return fmt.Errorf("PostgreSQL: %w", err)
	}
	var of error
	switch refused.Code {
	case stateInsufficientPrivilege, stateNoTable:
		of = store.ErrForbidden
	case stateInvalidAuthorization, stateInvalidPassword:
		of = store.ErrUnauthenticated
	case stateDiskFull:
		of = remote.ErrFull
	case stateTooManyConnections:
		of = store.ErrThrottled
	case stateLimitExceeded:
		of = store.ErrTooLarge
	case stateReadOnly:
		of = ErrStandby
	case stateBadText:
		of = store.ErrInvalid
	default:
		return fmt.Errorf("PostgreSQL: %s (%s)", refused.Message, refused.Code)
	}
	return fmt.Errorf("%w: PostgreSQL: %s (%s)", of, refused.Message, refused.Code)
}
