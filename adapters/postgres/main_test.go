package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/remote"
	"github.com/millwright-go/millwright/remote/remotetest"
	"github.com/millwright-go/millwright/store/storetest"
	"github.com/millwright-go/millwright/test/pglab"
)

// shared is a server that most tests use, each with a schema of its own.
var shared *pglab.Server

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	shared, err = pglab.New("fsync=off")
	if errors.Is(err, pglab.ErrNotInstalled) {
		fmt.Printf("the tests of adapters/postgres are left out: %v\n", err)
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = shared.Close() }()
	return m.Run()
}

var schemas atomic.Int64

// schema returns one that no other test has.
func schema() string { return fmt.Sprintf("fleet %d", schemas.Add(1)) }

// within returns a context that ends a hang.
func within(t testing.TB) context.Context {
	t.Helper()
	ctx, done := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(done)
	return ctx
}

// open returns an engine.
func open(t *testing.T, s *pglab.Server, schema string) *engine {
	t.Helper()
	e, err := newEngine(within(t), s.URL(), Options{Schema: schema})
	require.NoError(t, err)
	t.Cleanup(e.pool.Close)
	return e
}

// newDatabase returns a function that opens a new schema.
func newDatabase(t *testing.T) func() remote.Engine {
	in := schema()
	return func() remote.Engine { return open(t, shared, in) }
}

func TestContract(t *testing.T) {
	suite := remotetest.Collections(newDatabase)
	suite.Costly, suite.Patience = true, time.Minute
	storetest.Run(t, suite)
}

// TestEngine: the engine keeps the contract of package remote.
func TestEngine(t *testing.T) { remotetest.Run(t, remotetest.Suite{New: newDatabase}) }
