package scenario_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/scenario"
)

// TestSameSeedSameScenario: a seed gives the same scenario each time, and different seeds give different
// scenarios.
func TestSameSeedSameScenario(t *testing.T) {
	for name, draw := range map[string]func(seed uint64) *sim.Scenario{
		"Random": scenario.Random, "RandomPools": scenario.RandomPools, "Rush": scenario.Rush, "Moves": scenario.Moves, "Open": scenario.Open,
		"ScaleDown": func(seed uint64) *sim.Scenario { return scenario.ScaleDown(seed, time.Second) },
	} {
		seen := map[string]uint64{}
		for seed := range uint64(50) {
			first, again := draw(seed), draw(seed)
			require.Equal(t, seed, first.Options.Seed, name)
			first.Options.Seed, again.Options.Seed = 0, 0
			text := written(t, first)
			require.Equal(t, text, written(t, again), "%s of seed %d", name, seed)
			other, drawn := seen[text]
			require.False(t, drawn, "%s of seeds %d and %d", name, other, seed)
			seen[text] = seed
		}
	}
}

func written(t *testing.T, s *sim.Scenario) string {
	t.Helper()
	text, err := json.Marshal(s)
	require.NoError(t, err)
	return string(text)
}
