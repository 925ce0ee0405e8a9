package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMapping(t *testing.T) {
	file := filepath.Join(t.TempDir(), "map.txt")
	require.NoError(t, os.WriteFile(file, []byte("# a comment\n\nthe floor\tthe minimum\npath\told/\tnew/\n"), 0o600))
	words, paths, err := mapping(file)
	require.NoError(t, err)
	require.Equal(t, "below the minimum", words.Replace("below the floor"))
	require.Equal(t, "new/testdata/a.txt", paths.Replace("old/testdata/a.txt"))
	for _, odd := range []string{"no tab\n", "path\tone\n", "\tnothing before\n"} {
		require.NoError(t, os.WriteFile(file, []byte(odd), 0o600))
		_, _, err = mapping(file)
		require.ErrorContains(t, err, "no tab between", odd)
	}
}

func TestDifference(t *testing.T) {
	require.Empty(t, difference("a\nb\n", "a\nb\n"))
	require.Equal(t, "  line 2\n  - b\n  + c\n", difference("a\nb\n", "a\nc\n"))
	require.Equal(t, "  line 2\n  - b\n  + \n", difference("a\nb", "a"))
}
