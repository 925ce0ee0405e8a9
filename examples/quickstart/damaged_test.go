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
)

// TestDamagedStateIsNamed: the program does not continue in a directory with an unreadable file. The
// error names the file, the file stays, and the store is closed again.
func TestDamagedStateIsNamed(t *testing.T) {
	for file, contents := range map[string][]string{
		"play.json":          {"", "{", "[]", `{"chosen":7}`},
		clusterName + "/one": {"x\n", "{}\n[]\n", "\x00\x00\n"},
		taskRoster + "/task": {"x\n", "{}\n[]\n"},
		storeFile:            {"", "no store", "\x00"},
	} {
		for _, content := range contents {
			t.Run(file+" "+content, func(t *testing.T) {
				dir := newStateDir(t)
				path := filepath.Join(dir, file)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
				require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
				ctx, cancel := context.WithCancelCause(t.Context())
				cancel(errors.New("the test is over"))
				err := run(ctx, io.Discard, dir)
				require.ErrorContains(t, err, path)
				require.FileExists(t, path)
				_, err = bolt.Open(filepath.Join(dir, storeFile), bolt.Options{LockTimeout: -1})
				require.NotErrorIs(t, err, bolt.ErrLocked)
			})
		}
	}
}
