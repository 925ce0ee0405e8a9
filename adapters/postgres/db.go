package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/millwright-go/millwright/remote"
)

// Options of Open. The zero Options have good defaults.
type Options struct {
	remote.Options

	// Schema has the tables of the fleet. Open makes it, if it is not there. Each fleet has its own. Empty:
	// DefaultSchema.
	Schema string
}

// DefaultSchema is the Schema of Options that name none.
const DefaultSchema = "millwright"

// DB is a fleet in PostgreSQL. Open makes it.
type DB struct {
	*remote.DB
	engine *engine
}

// Close ends all watches and connections.
func (db *DB) Close() {
	db.DB.Close()
	db.engine.pool.Close()
}

// These are errors of Open. Errors come wrapped; use errors.Is.
var (
	// ErrVersion: the server is older than PostgreSQL 13.
	ErrVersion = errors.New("the server is too old")
	// ErrStandby: the server is a standby, which takes no writes. It comes from calls as well, while the address leads
	// to one.
	ErrStandby = errors.New("the server is a standby")
)

// Open returns the fleet in a schema of the database with an address, which is a URL or keywords and values as libpq
// takes them. pool_max_conns in it bounds the connections; without it there are 16 at most. Open fails if the server is
// too old (ErrVersion) or a standby (ErrStandby), if the user lacks a right (store.ErrForbidden), or if the data have
// another layout (remote.ErrLayout). Errors do not contain the password.
func Open(ctx context.Context, address string, o Options) (*DB, error) {
	e, err := newEngine(ctx, address, o)
	if err != nil {
		return nil, fmt.Errorf("open a fleet in PostgreSQL: %w", err)
	}
	db, err := remote.Open(ctx, e, o.Options)
	if err != nil {
		e.pool.Close()
		return nil, fmt.Errorf("open a fleet in PostgreSQL: %w", err)
	}
	return &DB{db, e}, nil
}

const (
	// openTimeout bounds how long Open waits for the server.
	openTimeout = 10 * time.Second
	// statementTimeout bounds each statement at the server, and so for how long one of a client that is gone can keep
	// the next leader waiting.
	statementTimeout = 5 * time.Second
	// connections is how many connections there are, if the address does not say.
	connections = 16
	// oldest is the oldest version of PostgreSQL that has the type xid8.
	oldest = 13
)

// newEngine connects, and makes the tables if they are not there.
func newEngine(ctx context.Context, address string, o Options) (*engine, error) {
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, errors.New("the address can't be parsed") // the error would hold it
	}
	if config.MaxConns <= 0 || config.MaxConns == defaultConnections() {
		config.MaxConns = connections
	}
	config.ConnConfig.RuntimeParams["application_name"] = cmp.Or(config.ConnConfig.RuntimeParams["application_name"], "millwright")
	config.ConnConfig.RuntimeParams["statement_timeout"] = strconv.FormatInt(statementTimeout.Milliseconds(), 10)
	config.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = config.ConnConfig.RuntimeParams["statement_timeout"]
	ctx, done := context.WithTimeout(ctx, openTimeout)
	defer done()
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, answered(err)
	}
	e := &engine{pool: pool, sql: statements(cmp.Or(o.Schema, DefaultSchema)), wake: make(chan struct{}, 1)}
	e.polled.L = &e.mu
	if err := e.prepare(ctx, cmp.Or(o.Schema, DefaultSchema)); err != nil {
		pool.Close()
		return nil, err
	}
	return e, nil
}

// defaultConnections is how many connections pgxpool makes, if the address does not say.
func defaultConnections() int32 {
	config, err := pgxpool.ParseConfig("host=none")
	if err != nil {
		return 0
	}
	return config.MaxConns
}

// prepare checks the server, and makes the tables if they are not there.
func (e *engine) prepare(ctx context.Context, schema string) error {
	var version int
	var standby bool
	var tables *string
	err := e.pool.QueryRow(ctx, `select current_setting('server_version_num')::int, pg_is_in_recovery(), to_regclass($1)::text`,
		pgx.Identifier{schema, "leader"}.Sanitize()).Scan(&version, &standby, &tables)
	switch {
	case err != nil:
		return answered(err)
	case version/10000 < oldest:
		return fmt.Errorf("%w: it is PostgreSQL %d, and needs %d", ErrVersion, version/10000, oldest)
	case standby:
		return ErrStandby
	case tables != nil:
		return nil
	}
	err = pgx.BeginFunc(ctx, e.pool, func(tx pgx.Tx) error {
		// Programs that start together make the tables one after the other.
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtext($1))`, "millwright:"+schema); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, e.sql.create)
		return err
	})
	if err != nil {
		return fmt.Errorf("make the tables of schema %q: %w", schema, answered(err))
	}
	return nil
}
