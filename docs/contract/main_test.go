package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// table is the file of the recovery table.
const table = "../../codes/testdata/recovery.csv"

// TestPageIsUpToDate fails if a default, the recovery table or the template has changed, and make docs was
// not run.
func TestPageIsUpToDate(t *testing.T) {
	want, err := page(table)
	require.NoError(t, err)
	have, err := os.ReadFile("../reference/contract.md")
	require.NoError(t, err)
	assert.Equal(t, string(want), string(have), "run make docs")
}

// TestRetriesAreTheContractsCodes lists, by call, the codes that the contract does not retry and this
// library does.
func TestRetriesAreTheContractsCodes(t *testing.T) {
	all, err := retries(table)
	require.NoError(t, err)
	calls := map[string][]string{}
	for _, r := range all {
		calls[r.Call] = append(calls[r.Call], r.Code)
	}
	assert.Equal(t, map[string][]string{
		"CreateMachine": {
			"CANCELED", "INVALID_ARGUMENT", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "PRECONDITION_FAILED", "OUT_OF_RANGE",
			"UNIMPLEMENTED", "INTERNAL", "UNAUTHENTICATED",
		},
		"DeleteMachine": {
			"CANCELED", "INVALID_ARGUMENT", "PERMISSION_DENIED", "PRECONDITION_FAILED", "UNIMPLEMENTED", "INTERNAL", "UNAUTHENTICATED",
		},
		"GetMachineStatus": {"CANCELED", "INVALID_ARGUMENT", "PERMISSION_DENIED", "PRECONDITION_FAILED", "INTERNAL", "UNAUTHENTICATED"},
		"ListMachines":     {"CANCELED", "INVALID_ARGUMENT", "PERMISSION_DENIED", "UNIMPLEMENTED", "INTERNAL", "UNAUTHENTICATED"},
	}, calls)
}

func TestRunWritesThePage(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, run([]string{dir, table}))
	want, err := page(table)
	require.NoError(t, err)
	have, err := os.ReadFile(filepath.Join(dir, "contract.md"))
	require.NoError(t, err)
	assert.Equal(t, string(want), string(have))
	assert.Error(t, run([]string{dir}))
	assert.Error(t, run([]string{dir, "gone.csv"}))
	assert.Error(t, run([]string{filepath.Join(dir, "nowhere"), table}))
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		5 * time.Second: "5 s", 90 * time.Second: "90 s", 10 * time.Minute: "10 min", 2 * time.Hour: "2 h", 241 * time.Second: "241 s",
	} {
		assert.Equal(t, want, duration(d))
	}
}
