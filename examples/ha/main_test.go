package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/test/pglab"
)

// TestMain makes this test program a machine or a candidate, if it was started as one.
func TestMain(m *testing.M) {
	agent.Main()
	if len(os.Args) > 1 && os.Args[1] == "-candidate" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestPlay: whatever happens to leaders, no machine is doubled, lost or left, and each rollout makes as many machines as
// it needs.
func TestPlay(t *testing.T) {
	t.Run("etcd", func(t *testing.T) { playOn(t, "") })
	t.Run("PostgreSQL", func(t *testing.T) {
		server, err := pglab.New()
		if errors.Is(err, pglab.ErrNotInstalled) {
			t.Skip(err)
		}
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, server.Close()) })
		playOn(t, server.URL())
	})
}

func playOn(t *testing.T, store string) {
	t.Helper()
	var out strings.Builder
	err := run(t.Context(), []string{"-store", store}, &out)
	t.Log(out.String())
	require.NoError(t, err)
	require.Regexp(t, `4 rollouts, 48 machines created, 0 doubled, 0 lost, 0 orphans`, out.String())
}

// TestInterrupted: nothing is left behind.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out strings.Builder
	err := run(ctx, nil, stopAt{&out, "leads", cancel})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "left")
}

// stopAt calls stop when a text is written.
type stopAt struct {
	out  *strings.Builder
	text string
	stop func()
}

func (s stopAt) Write(p []byte) (int, error) {
	if strings.Contains(string(p), s.text) {
		s.stop()
	}
	return s.out.Write(p)
}
