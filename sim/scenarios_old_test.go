package sim_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/scenario"
)

// TestScenariosOfOld plays what soaks once found, made as small as possible: each scenario violated
// something before the fault that it is named after was fixed.
// Invariants: P7 P22 P35 P50 P51 P53
func TestScenariosOfOld(t *testing.T) {
	files, err := filepath.Glob("testdata/scenarios/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			s := &sim.Scenario{}
			require.NoError(t, json.Unmarshal(text, s))
			require.NoError(t, errorOf(play(t, s).Violation))
		})
	}
}

// TestMoves is a sample of the scenarios in which moves from set to set are interrupted (P7, P10).
// Invariants: P7 P10
func TestMoves(t *testing.T) {
	for seed := range uint64(60) {
		require.NoError(t, errorOf(play(t, scenario.Moves(seed)).Violation), "seed %d", seed)
	}
}
