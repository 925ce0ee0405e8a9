package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPage makes the page of this repository. It does not check that the stored page is up to date: make
// docs writes it before a release.
func TestPage(t *testing.T) {
	text, err := page("../..")
	require.NoError(t, err)
	assert.Regexp(t, "(?m)^## `codes`\n\nPackage codes [^\n]*\n\n- Functions: .*`RecoveryFor`(.*\n)+?- Types: `Call`", string(text))
	for _, dir := range []string{"`manager/internal", "`docs/api`", "`adapters/", "`sim/cmd"} {
		assert.NotContains(t, string(text), "## "+dir)
	}
}

func TestRun(t *testing.T) {
	root := t.TempDir()
	write := func(file, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, file), []byte(text), 0o644))
	}
	write("a/a.go", "// Package a does. And more.\npackage a\n\nfunc F() {}\n\nfunc f() {}\n\ntype T int\n\nfunc NewT() T { return 0 }\n")
	write("a/a_test.go", "package a\n\nfunc Test() {}\n")
	write("a/internal/b/b.go", "package b\n\nfunc F() {}\n")
	write("c/go.mod", "module c\n")
	write("c/c.go", "package c\n\nfunc F() {}\n")
	file := filepath.Join(root, "api.md")
	require.NoError(t, run([]string{root, file}))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, preamble+"\n## `a`\n\nPackage a does.\n\n- Functions: `F` `NewT`\n- Types: `T`\n", string(text))
	assert.Error(t, run([]string{root}))
	write("a/broken.go", "package")
	assert.Error(t, run([]string{root, file}))
}
