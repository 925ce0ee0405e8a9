package apistore_test

import (
	"testing"
	"time"

	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/storetest"
)

// TestContract runs the contract tests of package store against a real API server.
func TestContract(t *testing.T) {
	storetest.Run(t, storetest.Suite{
		New: func(t *testing.T, _ func() time.Time) store.Collection[*storetest.Object] {
			t.Helper()
			return newCollection(t, server.Config, untracked)
		},
		OwnClock:     true,
		EndsTogether: true,
		Costly:       true,
		Patience:     2 * time.Minute,
	})
}
