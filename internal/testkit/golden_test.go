package testkit

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUnusedFiles: a file with the directory and extension of a golden file is found, a file with another
// extension or directory is not.
func TestUnusedFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.MkdirAll("testdata/stories", 0o755))
	require.NoError(t, os.MkdirAll("testdata/other", 0o755))
	for _, file := range []string{"stories/a-story.txt", "stories/forgotten.txt", "stories/data.json", "other/more.txt"} {
		require.NoError(t, os.WriteFile("testdata/"+file, []byte("text"), 0o644))
	}
	Story(t, "a story", "text")
	require.Equal(t, []string{"testdata/stories/forgotten.txt"}, unused())
}
