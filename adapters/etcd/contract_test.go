package etcd

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/remote"
	"github.com/millwright-go/millwright/remote/remotetest"
	"github.com/millwright-go/millwright/store/storetest"
)

// newDatabase returns a function that opens a new prefix.
func newDatabase(t *testing.T) func() remote.Engine {
	at := prefix()
	return func() remote.Engine {
		e, err := newEngine(t.Context(), shared.dial(t), Options{Prefix: at})
		require.NoError(t, err)
		return e
	}
}

func TestContract(t *testing.T) {
	suite := remotetest.Collections(newDatabase)
	suite.Costly, suite.Patience = true, time.Minute
	storetest.Run(t, suite)
}

// TestEngine: the engine keeps the contract of package remote.
func TestEngine(t *testing.T) { remotetest.Run(t, remotetest.Suite{New: newDatabase}) }
