package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the pictures of docs/concepts/simulation.md")

// programEnvironment is the variable that makes this test program run as the example.
const programEnvironment = "MILLWRIGHT_TEST_SIMREPORT"

func TestMain(m *testing.M) {
	if os.Getenv(programEnvironment) != "" {
		main()
	}
	os.Exit(m.Run())
}

// start runs the example in another process.
func start(t *testing.T, args ...string) (status int, out, complaints string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), programEnvironment+"=1")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if failed := (&exec.ExitError{}); errors.As(err, &failed) {
		err = nil
	}
	require.NoError(t, err)
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// pictures are the charts in docs/concepts/simulation.md, by -width: for screens, and for phones.
var pictures = map[string]string{"0": "../../docs/simulation.svg", "380": "../../docs/simulation-narrow.svg"}

// TestReportOfARollout: the program writes the same run as text, as a page and as a chart, and the
// chart is the one in docs/concepts/simulation.md.
func TestReportOfARollout(t *testing.T) {
	page, chart := filepath.Join(t.TempDir(), "run.html"), filepath.Join(t.TempDir(), "run.svg")
	status, out, complaints := start(t, "-html", page, "-svg", chart)
	require.Zero(t, status, complaints)
	assert.Empty(t, complaints)
	for _, part := range []string{
		"web: ", ", seed 7\n", "\nwanted: 26 (26 available in the end)\n", "\nviolations: 0 (", "(3 kills of the manager)\n",
		"owner: created with 20 machines of class small", "owner: class large wanted", "owner: 26 machines wanted",
		" fault  call to the provider failed\n", "\npage: " + page + "\nchart: " + chart + "\n",
	} {
		assert.Contains(t, out, part)
	}
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, part := range []string{"<h1>20 machines, while much goes wrong</h1>", `<svg class="phone"`, `<svg class="desk"`, "</html>"} {
		assert.Contains(t, string(html), part)
	}
	assert.Less(t, len(html), 200_000)
	for width, picture := range pictures {
		status, _, complaints := start(t, "-svg", chart, "-width", width)
		require.Zero(t, status, complaints)
		svg, err := os.ReadFile(chart)
		require.NoError(t, err)
		if *update {
			require.NoError(t, os.WriteFile(picture, svg, 0o644))
		}
		shown, err := os.ReadFile(picture)
		require.NoError(t, err)
		assert.Equal(t, string(shown), string(svg), "%s is outdated: run go -C examples test ./simreport -update", picture)
	}
}

// TestFlags: each flag changes its option.
func TestFlags(t *testing.T) {
	var out, complaints bytes.Buffer
	require.Zero(t, run([]string{"-machines", "3", "-seed", "2", "-rows", "5"}, &out, &complaints), complaints.String())
	text := out.String()
	assert.Contains(t, text, "seed 2\n")
	assert.Contains(t, text, "owner: created with 3 machines of class small")
	assert.Contains(t, text, "wanted: 4 (4 available in the end)")
	assert.LessOrEqual(t, strings.Count(text[:strings.Index(text, "\nPicture")], "\n"), 2+1+6)
	assert.NotContains(t, text, "page:")
}

// TestComplaints: invalid flags, and files that can't be written, are reported.
func TestComplaints(t *testing.T) {
	for args, want := range map[string]struct {
		status int
		text   string
	}{
		"-machines 0":             {exitUsage, "simreport: 0 machines are not from 1 to 500 (-h lists the flags)\n"},
		"-machines 501":           {exitUsage, "501 machines are not from 1 to 500"},
		"-rows 0":                 {exitUsage, "0 rows are no table"},
		"more":                    {exitUsage, `nothing to be done with "more"`},
		"-seed x":                 {exitUsage, "invalid value"},
		"-machines 1 -html /":     {exitFailed, "is a directory"},
		"-machines 1 -svg /a/b/c": {exitFailed, "no such file"},
	} {
		var complaints bytes.Buffer
		assert.Equal(t, want.status, run(strings.Fields(args), io.Discard, &complaints), args)
		assert.Contains(t, complaints.String(), want.text, args)
	}
	var out bytes.Buffer
	assert.Zero(t, run([]string{"-h"}, &out, io.Discard))
	assert.Contains(t, out.String(), "-html file")
}

// TestManySeeds: for every seed, the fleet converges without a violation.
func TestManySeeds(t *testing.T) {
	for seed := range uint64(12) {
		h, err := (&options{machines: 5 + int(seed), seed: seed}).simulate()
		require.NoError(t, err, "seed %d", seed)
		assert.Equal(t, h.Last().Wanted, h.Last().NewAvailable, "seed %d", seed)
	}
}
