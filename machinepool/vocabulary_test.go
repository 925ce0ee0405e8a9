package machinepool_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machinepool"
)

// TestVocabulary: the table of Cluster API's names in docs/concepts/pools.md has each field of a pool.
func TestVocabulary(t *testing.T) {
	page, err := os.ReadFile("../docs/concepts/pools.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "\n## Names in Cluster API\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	for _, of := range []any{machinepool.Spec{}, machinepool.Template{}, machinepool.Bootstrap{}, machinepool.Status{}} {
		kind := reflect.TypeOf(of)
		for i := range kind.NumField() {
			require.Contains(t, table, "`"+kind.Name()+"."+kind.Field(i).Name+"`")
		}
	}
}
