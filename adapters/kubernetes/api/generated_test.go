// Package api_test tests the Go types of the kinds: what is generated from them, and the fields and
// names that they share with machine-controller-manager (MCM).
package api_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Deep copies and definitions are what "go generate" writes now.
func TestGeneratedFilesAreUpToDate(t *testing.T) {
	for kinds, files := range map[string]int{"v1alpha1": 5, "pools/v1alpha1": 2} {
		t.Run(kinds, func(t *testing.T) {
			dir, err := filepath.Abs(t.TempDir())
			require.NoError(t, err)
			cmd := exec.Command("go", "-C", "../tools", "tool", "controller-gen", "object", "crd",
				"paths=./../api/"+kinds, "output:object:dir="+dir, "output:crd:dir="+dir)
			cmd.Env = append(os.Environ(), "GOWORK=off")
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)

			fresh, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, fresh, files, "a kind was added or removed: update the number of files in this test")
			for _, file := range fresh {
				stored := filepath.Join("../config/crds", file.Name())
				if strings.HasSuffix(file.Name(), ".go") {
					stored = filepath.Join(kinds, file.Name())
				}
				want, err := os.ReadFile(filepath.Join(dir, file.Name()))
				require.NoError(t, err)
				have, err := os.ReadFile(stored)
				require.NoError(t, err)
				assert.Equal(t, string(want), string(have), "%s is stale: run go generate ./api/...", stored)
			}
		})
	}
}
