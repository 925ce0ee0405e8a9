package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machine"
)

func TestPagesAreUpToDate(t *testing.T) {
	all, err := pages()
	require.NoError(t, err)
	require.NotEmpty(t, all)
	for _, p := range all {
		have, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(p.path)))
		require.NoError(t, err)
		assert.True(t, bytes.Equal(p.text, have), "docs/%s is not up to date: run make docs", p.path)
	}
}

// TestNoDrawingIsLeftBehind: there is no Graphviz file without a table.
func TestNoDrawingIsLeftBehind(t *testing.T) {
	all, err := pages()
	require.NoError(t, err)
	drawn := map[string]bool{}
	for _, p := range all {
		drawn[filepath.Base(p.path)] = true
	}
	found, err := filepath.Glob("*.dot")
	require.NoError(t, err)
	for _, name := range found {
		assert.True(t, drawn[name], "docs/diagrams/%s belongs to no table", name)
	}
}

func TestRunWritesThePages(t *testing.T) {
	dir := t.TempDir()
	for _, below := range []string{"diagrams", "concepts"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, below), 0o755))
	}
	require.NoError(t, run([]string{dir}))
	all, err := pages()
	require.NoError(t, err)
	for _, p := range all {
		have, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(p.path)))
		require.NoError(t, err)
		assert.Equal(t, string(p.text), string(have))
	}
	assert.Error(t, run(nil))
	assert.Error(t, run([]string{filepath.Join(dir, "nowhere")}))
}

func TestCellsKeepTheirTable(t *testing.T) {
	odd := machine.NewTable("odd", "", nil, []machine.Edge{{From: "", On: "a|b", To: "C", Why: "one\ntwo | three"}})
	assert.Equal(t, "| from | on | to | why |\n|---|---|---|---|\n"+
		`| *(none)* | a\|b | C | one two \| three |`+"\n", edges(odd))
}
