// Package testkit holds what the tests of several packages share.
package testkit

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files that tests compare with")

// Update reports whether the flag -update is set: golden files are rewritten.
func Update() bool { return *update }

// compared holds the paths that Golden was called with.
var compared sync.Map

// Golden compares a text with the golden file at path. With -update it writes the file first.
func Golden(t testing.TB, path, got string) {
	t.Helper()
	compared.Store(filepath.Clean(path), true)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update to write the file, then read it")
	require.Equal(t, string(want), got, "%s: run the test with -update to rewrite it, then read the difference", path)
}

// Story compares the text of a story with testdata/stories/<name>.txt, the spaces of the name
// written as dashes.
func Story(t testing.TB, name, got string) {
	t.Helper()
	Golden(t, filepath.Join("testdata", "stories", strings.ReplaceAll(name, " ", "-")+".txt"), got)
}

// unused returns the files that no test has compared anything with, although they have the directory
// and the extension of a golden file.
func unused() (files []string) {
	compared.Range(func(path, _ any) bool {
		pattern := filepath.Join(filepath.Dir(path.(string)), "*"+filepath.Ext(path.(string)))
		found, _ := filepath.Glob(pattern)
		for _, file := range found {
			if _, ok := compared.Load(file); !ok && !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
		return true
	})
	return files
}
