package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/scenario"
)

func soak(args ...string) (status int, out, errs string) {
	var o, e bytes.Buffer
	status = run(args, &o, &e)
	return status, o.String(), e.String()
}

// TestShortSoak: a few scenarios violate nothing, and the summary says what happened in them.
func TestShortSoak(t *testing.T) {
	scenarios := "100"
	if testing.Short() {
		scenarios = "12"
	}
	status, out, errs := soak("-scenarios", scenarios, "-seed", "7", "-dir", t.TempDir())
	require.Zero(t, status, "%s%s", out, errs)
	for _, line := range []string{
		`scenarios +` + scenarios, `steps +\d{4,}`, `kills +\d\d+`, `manager killed after a call +\d+`,
		`outage of the target cluster +\d+`, `violations +0`,
	} {
		require.Regexp(t, line+` *\n`, out)
	}
}

// TestSeedsAreConsecutive: a soak of two scenarios plays the given seed and the next one.
func TestSeedsAreConsecutive(t *testing.T) {
	steps := func(args ...string) (n int) {
		_, out, _ := soak(args...)
		found := regexp.MustCompile(` steps +(\d+)`).FindStringSubmatch(out)
		require.NotNil(t, found, out)
		n, err := strconv.Atoi(found[1])
		require.NoError(t, err)
		return n
	}
	first, second := steps("-seed", "7", "-scenarios", "1"), steps("-seed", "8", "-scenarios", "1")
	require.NotEqual(t, first, second)
	require.Equal(t, first+second, steps("-seed", "7", "-scenarios", "2"))
}

// TestViolationIsExplained: a soak with a limit that is too short fails. The scenario that it writes fails
// in the same way when it is played again.
func TestViolationIsExplained(t *testing.T) {
	dir := t.TempDir()
	status, out, errs := soak("-seed", "2", "-scenarios", "8", "-settle", "1s", "-dir", dir)
	require.Equal(t, exitViolated, status, "%s%s", out, errs)
	require.Regexp(t, `violations +1 *\n`, out)
	require.Regexp(t, `faults: (none|\w+ \S+(, \w+ \S+){0,2})\n`, out, "the smallest scenario has few kinds of faults")
	command := regexp.MustCompile(`go run \./sim/cmd/soak -replay (\S+)`).FindStringSubmatch(out)
	require.NotNil(t, command, out)
	require.Equal(t, dir, filepath.Dir(command[1]))
	said := regexp.MustCompile(`violation of settled: .*`).FindString(out)
	require.NotEmpty(t, said)

	status, again, errs := soak("-replay", command[1])
	require.Equal(t, exitViolated, status, "%s%s", again, errs)
	require.Contains(t, again, said)
	require.Contains(t, again, "violated: sim: seed")
}

// TestEachStormIsRepeated: the printed command plays the same scenario, with each flag that selects other
// scenarios.
func TestEachStormIsRepeated(t *testing.T) {
	violated := regexp.MustCompile(`\nviolated: .*`)
	for _, drawn := range [][]string{nil, {"-pools"}, {"-moves"}, {"-open"}, {"-shrinking", "3s"}} {
		dir := t.TempDir()
		args := append([]string{"-seed", "1", "-scenarios", "8", "-settle", "1s", "-shrink", "0", "-dir", dir}, drawn...)
		status, out, errs := soak(args...)
		require.Equal(t, exitViolated, status, "%v: %s%s", drawn, out, errs)

		seed := regexp.MustCompile(`go run \./sim/cmd/soak (-seed .*)`).FindStringSubmatch(out)
		require.NotNil(t, seed, out)
		status, again, _ := soak(append(strings.Fields(seed[1]), "-dir", dir, "-shrink", "0")...)
		require.Equal(t, exitViolated, status)
		require.Equal(t, violated.FindString(out), violated.FindString(again), "%v", drawn)
	}
}

// TestReplayNeedsTheDriver: a scenario that was found with a driver of Options.Driver is not replayed
// without it.
func TestReplayNeedsTheDriver(t *testing.T) {
	s := scenario.Random(1)
	s.Options.Driver = func(w *sim.World) driver.Driver { return w.Provider() }
	text, err := json.Marshal(s)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "violation.json")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	status, out, errs := soak("-replay", file)
	require.Equal(t, exitMistake, status, out)
	require.Empty(t, out)
	require.Contains(t, errs, "violation.json: sim: the scenario needs code that is not written down: set Options.Driver")
}

// TestMistakes: mistakes of the user are reported in one line, with exit status 2.
func TestMistakes(t *testing.T) {
	garbage := filepath.Join(t.TempDir(), "garbage")
	require.NoError(t, os.WriteFile(garbage, []byte("{"), 0o600))
	for want, args := range map[string][]string{
		"unexpected argument":    {"5m"},
		"must not be negative":   {"-for", "-1s"},
		"-workers at least 1":    {"-workers", "0"},
		"no such file":           {"-replay", garbage + "s"},
		"unexpected end of JSON": {"-replay", garbage},
		"not defined":            {"-nonsense"},
	} {
		status, _, errs := soak(args...)
		require.Equal(t, exitMistake, status, "%v", args)
		require.Contains(t, errs, want)
	}
	status, _, errs := soak("-h")
	require.Zero(t, status)
	require.Contains(t, errs, "-replay")
}

// TestAllContinuesAfterAViolation: with -all, all scenarios are played, and all violations are counted.
func TestAllContinuesAfterAViolation(t *testing.T) {
	status, out, errs := soak("-scenarios", "3", "-seed", "2", "-settle", "1s", "-all", "-shrink", "1", "-dir", t.TempDir())
	require.Equal(t, exitViolated, status, errs)
	require.Regexp(t, `scenarios +3 *\n`, out)
	require.Regexp(t, `violations +3 *\n`, out)
}

// TestShrinkingSoak: -shrinking plays scenarios without kills, and excludes -pools.
func TestShrinkingSoak(t *testing.T) {
	status, out, errs := soak("-scenarios", "2", "-shrinking", "3s", "-dir", t.TempDir())
	require.Zero(t, status, "%s%s", out, errs)
	require.Regexp(t, `kills +0 *\n`, out)
	status, _, _ = soak("-shrinking", "3s", "-pools")
	require.Equal(t, exitMistake, status)
}
