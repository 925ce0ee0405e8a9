package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// source is a file with something for each kind of change.
const source = `package counting

type status struct{ n int }

func note(*status) {}

func count(s *status, limit int) bool {
	if s.n < limit && limit > 0 {
		s.n = s.n + 1
		note(s)
		return true
	}
	for s.n >= limit {
		return false
	}
	switch {
	case limit == 3, !count(s, 4):
	}
	left := limit
	_ = left
	return left != 0
}

func unnamed(int) bool { return 1 < 2 }
`

// TestChanges: each kind of change is made wherever it is possible. Functions with unnamed parameters are
// left alone.
func TestChanges(t *testing.T) {
	all, err := changesOf("counting/a.go", source)
	require.NoError(t, err)
	var texts []string
	for _, c := range all {
		texts = append(texts, fmt.Sprintf("%d: %s -> %s", c.line, c.from, c.Text))
	}
	assert.Equal(t, []string{
		"8: s.n < limit && limit > 0 -> !(s.n < limit && limit > 0)",
		"8: && -> ||", "8: < -> <=", "8: > -> >=", "8: 0 -> 1", "8: 0 -> -1",
		"9: s.n = s.n + 1 -> ", "9: + -> -", "9: 1 -> 2", "9: 1 -> 0",
		"10: note(s) -> ",
		"11: true -> false",
		"13: s.n >= limit -> !(s.n >= limit)", "13: >= -> >",
		"14: false -> true",
		"17: limit == 3 -> !(limit == 3)", "17: !count(s, 4) -> !(!count(s, 4))",
		"17: 3 -> 4", "17: 3 -> 2", "17: 4 -> 5", "17: 4 -> 3",
		"21: 0 -> 1", "21: 0 -> -1",
	}, texts)
}

// TestSample: the same seed draws the same changes, and another seed draws others.
func TestSample(t *testing.T) {
	draw := func(seed uint64) []change {
		all, err := changesOf("counting/a.go", source)
		require.NoError(t, err)
		return sample(all, 5, seed)
	}
	assert.Len(t, draw(1), 5)
	assert.Equal(t, draw(1), draw(1))
	assert.NotEqual(t, draw(1), draw(2))
}

// TestCompiling: a change that removes the only use of a variable does not compile, and is left out. Other
// changes of the function stay.
func TestCompiling(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	write("go.mod", "module example.com/m\n\ngo 1.25\n")
	const text = "package p\n\ntype s struct{ n int }\n\nfunc use(s) {}\n\nfunc f(a s) s {\n\tx := 1\n\ta.n = x\n\tuse(a)\n\treturn a\n}\n"
	write("p/a.go", text)
	all, err := changes(root, []string{"p"})
	require.NoError(t, err)
	require.Len(t, all, 4)
	good, err := compiling(root, all)
	require.NoError(t, err)
	var found []string
	for _, c := range good {
		found = append(found, c.from+" -> "+c.Text)
	}
	assert.Equal(t, []string{"1 -> 2", "1 -> 0", "use(a) -> "}, found)
}
