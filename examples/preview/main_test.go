package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// programEnvironment is the variable that makes this test program run as the example.
const programEnvironment = "MILLWRIGHT_TEST_PREVIEW"

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

// TestPreviewOfARollout runs the command in README, and compares the output with the table there.
func TestPreviewOfARollout(t *testing.T) {
	chart := filepath.Join(t.TempDir(), "rollout.svg")
	status, out, complaints := start(t, "-replicas", "50", "-max-surge", "20%", "-max-unavailable", "0",
		"-create", "90s", "-fail", "5%", "-o", chart)
	require.Zero(t, status, complaints)
	assert.Empty(t, complaints)
	for _, part := range []string{
		"web: 50 machines wanted, surge 10, unavailable 0\ncomplete after 28m43s\n52 machines created, 2 of them failed, 52 deleted\n",
		"old web-v1 50 -> 40 ", "60 of 60 machines available, floor is 50: 10 old machines may go", "chart: " + chart,
	} {
		assert.Contains(t, out, part)
	}
	svg, err := os.ReadFile(chart)
	require.NoError(t, err)
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(readme), "-fail 5%\n")
	table, _, _ = strings.Cut(table, "```")
	rows := strings.Split(strings.TrimSpace(table), "\n")
	require.Len(t, rows, 6)
	for _, row := range rows {
		if strings.TrimSpace(row) != "..." {
			assert.Contains(t, out, row, "the README shows a row that the preview does not have")
		}
	}
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	for err == nil {
		_, err = decoder.Token()
	}
	assert.ErrorIs(t, err, io.EOF)
	assert.Contains(t, string(svg), "floor 50")
}

// TestPictures: the charts in README are those of README's command, for screens and for phones.
func TestPictures(t *testing.T) {
	chart := filepath.Join(t.TempDir(), "rollout.svg")
	for width, picture := range map[string]string{"0": "../../docs/preview.svg", "380": "../../docs/preview-narrow.svg"} {
		status, _, complaints := start(t, "-replicas", "50", "-max-surge", "20%", "-max-unavailable", "0",
			"-create", "90s", "-fail", "5%", "-o", chart, "-width", width)
		require.Zero(t, status, complaints)
		svg, err := os.ReadFile(chart)
		require.NoError(t, err)
		shown, err := os.ReadFile(picture)
		require.NoError(t, err)
		assert.Equal(t, string(shown), string(svg), "%s is outdated: run README's command with -width %s -o %s", picture, width, picture)
	}
}

// TestFlags: each flag changes what is previewed.
func TestFlags(t *testing.T) {
	for args, want := range map[string]string{
		"":                                "10 machines wanted, surge 3, unavailable 2\ncomplete after 3m30s",
		"-replicas 3":                     "web: 3 machines wanted, surge 1, unavailable 0\ncomplete after 5m",
		"-from 0":                         "complete after 1m30s\n10 machines created, 0 deleted",
		"-from 4 -roll=false":             "complete after 1m30s\n6 machines created, 0 deleted",
		"-roll=false":                     "nothing to do",
		"-delete 10m":                     "complete after 13m",
		"-min-ready 1m":                   "complete after 5m39s",
		"-fail 100%":                      "every creation fails",
		"-limit 1m":                       "not complete after 1m0s",
		"-rows 2":                         "steps left out",
		"-max-surge 0 -replicas 4":        "surge 0, unavailable 1",
		"-max-surge 0 -max-unavailable 0": "surge 0, unavailable 1\ncomplete after 15m",
		"-max-unavailable 2 -from 10":     "surge 3, unavailable 2",
		"-replicas 0 -max-surge 1":        "web: 0 machines wanted, surge 1",
		"-create 0s -delete 0s":           "complete after 0s",
	} {
		t.Run(args, func(t *testing.T) {
			status, out, complaints := start(t, strings.Fields(args)...)
			require.Zero(t, status, complaints)
			assert.Contains(t, out, want)
		})
	}
}

// TestBadFlags: one line on the error output with a hint, and status 2.
func TestBadFlags(t *testing.T) {
	for args, want := range map[string]string{
		"-replicas many":  `invalid value "many" for flag -replicas`,
		"-replicas -1":    "-replicas must be from 0 to 50000",
		"-replicas 50001": "-replicas must be from 0 to 50000",
		"-from -2":        "-from must be from 0 to 50000",
		"-max-surge x":    `invalid value "x" for flag -max-surge`,
		"-fail 101%":      "model.fail must not be more than 100%",
		"-create -1s":     "model.create must not be negative",
		"-delete soon":    `invalid value "soon" for flag -delete`,
		"-min-ready 25h":  "-min-ready must be from 0 to 24h0m0s",
		"-rows -1":        "-rows must not be negative",
		"-nonsense":       "flag provided but not defined: -nonsense",
		"now":             `there is nothing to be done with "now"`,
		"-o":              "flag needs an argument: -o",
	} {
		t.Run(args, func(t *testing.T) {
			status, out, complaints := start(t, strings.Fields(args)...)
			assert.Equal(t, 2, status)
			assert.Empty(t, out)
			assert.Contains(t, complaints, want)
			assert.Equal(t, 1, strings.Count(complaints, "\n"))
			assert.True(t, strings.HasPrefix(complaints, "preview: "))
			assert.True(t, strings.HasSuffix(complaints, " (-h lists the flags)\n"))
		})
	}
}

func TestUnwritableChart(t *testing.T) {
	status, _, complaints := start(t, "-o", filepath.Join(t.TempDir(), "missing", "rollout.svg"))
	assert.Equal(t, 1, status)
	assert.Equal(t, 1, strings.Count(complaints, "\n"))
	assert.NotContains(t, complaints, "-h")
}

func TestHelp(t *testing.T) {
	status, out, complaints := start(t, "-h")
	assert.Zero(t, status)
	assert.Empty(t, complaints)
	for _, name := range []string{
		"-replicas", "-from", "-roll", "-max-surge", "-max-unavailable", "-min-ready", "-create", "-delete",
		"-fail ", "-limit", "-rows", "-o ",
	} {
		assert.Contains(t, out, "  "+name)
	}
}
