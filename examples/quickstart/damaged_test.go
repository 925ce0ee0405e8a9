package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/adapters/bolt"
	"github.com/millwright-go/millwright/examples/quickstart/home"
)

// TestDamagedStateIsNamed: the program does not go on with a directory that has an unreadable file.
// The error names the file, and the store is closed again.
func TestDamagedStateIsNamed(t *testing.T) {
	for file, contents := range map[string][]string{
		home.ProgressFile:        {"", "{", "[]", `{"act":-1}`, `{"act":99}`, `{"chosen":7}`},
		"ledger":                 {"x\n", "{}\n[]\n", "\x00\x00\n"},
		"tasks":                  {"x\n", "{}\n[]\n"},
		"desks/node-1/u-1.order": {"", "{", "[]"},
		storeFile:                {"", "no store", "\x00"},
	} {
		for _, content := range contents {
			t.Run(file+" "+content, func(t *testing.T) {
				h := lasting(t)
				opened(t, h)
				path := h.In(file)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
				require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
				ctx, cancel := context.WithCancelCause(t.Context())
				cancel(errors.New("the test is over"))
				err := perform(ctx, io.Discard, h.Path)
				require.ErrorContains(t, err, path)
				_, err = bolt.Open(h.Store(), bolt.Options{LockTimeout: -1})
				require.NotErrorIs(t, err, bolt.ErrLocked)
			})
		}
	}
}

// A record that can't be read is named by its file too.
func TestDamagedRecordIsNamed(t *testing.T) {
	h := lasting(t)
	path := filepath.Join(h.records(), clusterName, "a.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	_, err := h.recordsOf(clusterName).Read("a")
	require.ErrorContains(t, err, path)
}
