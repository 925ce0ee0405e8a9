package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the files under testdata")

// programEnvironment is the variable that makes this test program run as the example.
const programEnvironment = "MILLWRIGHT_TEST_DRAINPLAN"

func TestMain(m *testing.M) {
	if os.Getenv(programEnvironment) != "" {
		main()
	}
	os.Exit(m.Run())
}

// start runs the example in another process.
func start(t *testing.T, in string, args ...string) (status int, out, complaints string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), programEnvironment+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &stdout, &stderr
	err = cmd.Run()
	if failed := (&exec.ExitError{}); errors.As(err, &failed) {
		err = nil
	}
	require.NoError(t, err)
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// at is the flag with the time of the dumps.
const at = "-at=2026-05-04T06:30:00Z"

// TestPlans compares the output with the files under testdata.
func TestPlans(t *testing.T) {
	for name, args := range map[string][]string{
		"shop":         {"-node", "worker-1", "testdata/shop.yaml"},
		"shop-forced":  {"-node", "worker-1", "-force", "testdata/shop.yaml"},
		"shop-retries": {"-node", "worker-1", "-retries", "3", "-heal", "5m", "testdata/shop.yaml"},
		"pair":         {"-node", "edge", "-timeout", "10m", "testdata/pair.json"},
		"tolerates":    {"testdata/tolerates.json"},
		"shared":       {"testdata/shared.json"},
		"unhealthy":    {"testdata/unhealthy.json"},
		"groups":       {"testdata/groups.json"},
		"protected":    {"-safe-to-evict", "testdata/protected.json"},
		"both":         {"-node", "worker-2", "testdata/pair.json", "testdata/shop.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			status, out, complaints := start(t, "", append([]string{at}, args...)...)
			require.Zero(t, status, complaints)
			assert.Empty(t, complaints)
			path := filepath.Join("testdata", name+".txt")
			if *update {
				require.NoError(t, os.WriteFile(path, []byte(out), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err, "to write the file: go -C examples test ./drainplan -update")
			assert.Equal(t, string(want), out)
		})
	}
}

// TestFormsOfDumps: the output is the same for YAML and JSON, for one list and several documents, and
// from the standard input.
func TestFormsOfDumps(t *testing.T) {
	text, err := os.ReadFile("testdata/shop.yaml")
	require.NoError(t, err)
	want, err := os.ReadFile("testdata/shop.txt")
	require.NoError(t, err)
	var asJSON, documents []byte
	next := yamlDocuments(text)
	asJSON, err = next()
	require.NoError(t, err)
	for _, line := range strings.SplitAfter(string(text), "\n")[3:] {
		if strings.HasPrefix(line, "- ") {
			documents = append(documents, "---\n"...)
		}
		documents = append(documents, strings.TrimPrefix(strings.TrimPrefix(line, "- "), "  ")...)
	}
	for name, form := range map[string][]byte{"yaml": text, "json": asJSON, "documents": documents} {
		status, out, complaints := start(t, string(form), at, "-node=worker-1", "-")
		require.Zero(t, status, "%s: %s", name, complaints)
		assert.Equal(t, string(want), out, name)
	}
}

func TestCheck(t *testing.T) {
	status, out, _ := start(t, "", at, "-check", "-node=worker-1", "testdata/shop.yaml")
	assert.Equal(t, exitBlocked, status, "a budget refuses an eviction")
	assert.Contains(t, out, "shop/queue")
	free := `{"kind":"Pod","metadata":{"name":"a"},"spec":{"nodeName":"n"}}`
	status, out, complaints := start(t, free, at, "-check", "-node=n", "-")
	assert.Zero(t, status, out+complaints)
	status, _, _ = start(t, free, at, "-check", "-node=n", "-timeout=10s", "-")
	assert.Equal(t, exitBlocked, status, "the pod does not end before the timeout")
}

// TestMistakes: a mistake gives one line on the error output, and status 2.
func TestMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		args []string
		want string
	}{
		"no file":        {"", nil, "name a file with the dump, or - for the standard input (-h lists the flags)"},
		"missing file":   {"", []string{"missing.yaml"}, "missing.yaml: no such file or directory"},
		"a directory":    {"", []string{"testdata"}, "testdata: "},
		"empty":          {" \n", []string{"-"}, "-: empty"},
		"only a comment": {"# nothing\n---\n", []string{"-"}, "-: no object in it"},
		"not YAML":       {"a: [", []string{"-"}, "-: document 1: yaml: "},
		"not JSON":       {"{", []string{"-"}, "-: document 1: unexpected EOF"},
		"a list":         {"[1, 2]", []string{"-"}, "-: document 1: not an object of Kubernetes"},
		"no kind":        {"metadata: {name: a}", []string{"-"}, "-: document 1: an object without kind"},
		"no name":        {"kind: Pod", []string{"-"}, "-: document 1: a Pod without metadata.name"},
		"in a list":      {"kind: List\nitems: [{kind: Node, metadata: {name: n}}, {kind: Pod}]", []string{"-"}, "-: document 1: item 2: a Pod without metadata.name"},
		"wrong type":     {"kind: Pod\nmetadata: {name: a}\nspec: {priority: high}", []string{"-"}, "-: document 1: Pod a: spec.priority can't be a string"},
		"odd key":        {"kind: Pod\n? [a]\n: b", []string{"-"}, "-: document 1: "},
		"no node":        {"kind: Secret", []string{"-"}, "there is no node in the dump"},
		"two nodes":      {"", []string{"testdata/shop.yaml"}, "there are 2 nodes in the dump, name one by -node: worker-1, worker-2"},
		"other node":     {"", []string{"-node=x", "testdata/shop.yaml"}, "neither node x nor a pod on it is in the dump"},
		"bad time":       {"", []string{"-at=noon", "-"}, `-at must be a time such as 2026-05-04T06:30:00Z, not "noon" (-h`},
		"bad timeout":    {"", []string{"-timeout=5ms", "-"}, "-timeout must be zero or at least a second (-h"},
		"bad retries":    {"", []string{"-retries=-1", "-"}, "-retries must not be negative (-h"},
		"bad heal":       {"", []string{"-heal=0s", "-"}, "-heal must be more than zero (-h"},
		"bad flag":       {"", []string{"-nonsense"}, "flag provided but not defined: -nonsense (-h"},
	} {
		t.Run(name, func(t *testing.T) {
			status, out, complaints := start(t, c.in, c.args...)
			assert.Equal(t, exitUsage, status)
			assert.Empty(t, out)
			assert.True(t, strings.HasPrefix(complaints, "drainplan: "+c.want), complaints)
			assert.Equal(t, 1, strings.Count(complaints, "\n"))
		})
	}
}

func TestHelp(t *testing.T) {
	status, out, complaints := start(t, "", "-h")
	assert.Zero(t, status)
	assert.Empty(t, complaints)
	for _, name := range []string{"-node", "-force", "-at", "-check", "-heal", "-timeout", "-retries"} {
		assert.Contains(t, out, "  "+name)
	}
}

// TestControlCharacters: control characters in names of a dump are replaced in the output, so that they
// neither control the terminal nor begin a new line.
func TestControlCharacters(t *testing.T) {
	dump := `{"kind":"List","items":[
		{"kind":"Node","metadata":{"name":"n\u001b[2J","annotations":{"pre-drain.millwright-go/\u001b]0;x\u0007":""}}},
		{"kind":"Pod","metadata":{"name":"a\u001b[31m\n+0s  end","namespace":"s\u202e","ownerReferences":[{"kind":"DaemonSet","name":"d\u009b1m","controller":true}]},
			"spec":{"nodeName":"n\u001b[2J"}},
		{"kind":"Pod","metadata":{"name":"b\r","namespace":"s\u202e","uid":"u"},"spec":{"nodeName":"n\u001b[2J"}}]}`
	status, out, complaints := start(t, dump, at, "-")
	require.Zero(t, status, complaints)
	assert.Contains(t, out, "s\ufffd/a\ufffd[31m +0s  end")
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		assert.Equal(t, -1, strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }), "%q", line)
	}
	for _, in := range []string{`{"kind":"Pod","metadata":{"name":"a\u001b[31m"},"spec":{"priority":"high"}}`, `{"kind":"Node\u001b","items":1}`} {
		_, _, complaints = start(t, in, at, "-")
		assert.NotEmpty(t, complaints)
		assert.NotContains(t, complaints, "\x1b")
	}
	_, _, complaints = start(t, `{"kind":"Node","metadata":{"name":"n"}}`, at, "-node=x\x1b[2J", "-")
	assert.Contains(t, complaints, "neither node x\ufffd[2J")
}
