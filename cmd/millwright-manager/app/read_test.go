package app

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// providerSettings are the own settings of a provider.
type providerSettings struct {
	Region string `required:"" help:"Where."`
	Zones  int    `default:"3" help:"How many."`
}

// sources are the sources of a program's settings.
type sources struct {
	args []string
	env  map[string]string
	file string // content of the file; empty: there is no file
}

// read reads settings from the sources. It removes the variables when it returns.
func (s sources) read(dir string, settings any) (*reading, error) {
	if s.file != "" {
		name := filepath.Join(dir, "settings.yaml")
		if err := os.WriteFile(name, []byte(s.file), 0o600); err != nil {
			return nil, err
		}
		s.args = append([]string{"--config=" + name}, s.args...)
	}
	for name, value := range s.env {
		_ = os.Setenv(name, value)
		defer func() { _ = os.Unsetenv(name) }()
	}
	r, err := newReading(&Program{Name: "test", Settings: settings}, s.args, io.Discard)
	if err != nil {
		return nil, err
	}
	return r, r.read()
}

// value returns the value of a setting, in the syntax of flags.
func (r *reading) value(t require.TestingT, setting string) string {
	for _, flag := range r.parser.Model.Flags {
		if flag.Name == setting {
			return flagText(flag.Target.Interface())
		}
	}
	require.Fail(t, "there is no setting "+setting)
	return ""
}

// variable returns the environment variable of a setting.
func variable(setting string) string {
	return "MILLWRIGHT_" + strings.ToUpper(strings.ReplaceAll(setting, "-", "_"))
}

// samples has settings of each type, with their defaults and three other values.
var samples = map[string][]string{
	"namespace":                   {"", "a", "b", "c"},
	"kubeconfig":                  {"", "/a", "/b", "/c"},
	"workers":                     {"64", "1", "2", "3"},
	"driver-qps":                  {"0", "0.5", "2", "100"},
	"log-level":                   {"info", "debug", "warn", "error"},
	"no-target":                   {"false", "true", "true", "true"},
	"leader-elect":                {"true", "false", "false", "false"},
	"leader-elect-lease-duration": {"15s", "20s", "1m", "2h"},
	"kinds":                       {"", "machine", "set,machine", "class"},
	"machine-drain-timeout":       {"2h", "1h", "1m30s", "3h5m"},
	"node-conditions":             {"KernelDeadlock,ReadonlyFilesystem,DiskPressure,NetworkUnavailable", "A", "A,B", "C"},
	"update-limit":                {"10%", "1", "50%", "3"},
	"safety-up":                   {"2", "3", "4", "5"},
	"autoscaler-scaledown-annotation-during-rollout": {"true", "false", "false", "false"},
	"set-age-order": {"", "Newest", "Random", "Newest"},
	"zones":         {"3", "4", "5", "6"},
}

// TestPrecedence: a flag overrides a variable, and a variable overrides the file, for settings of every
// type, including a provider's.
func TestPrecedence(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		setting := rapid.SampledFrom(slices.Sorted(maps.Keys(samples))).Draw(t, "setting")
		values := samples[setting]
		flag, env, file := rapid.Bool().Draw(t, "flag"), rapid.Bool().Draw(t, "env"), rapid.Bool().Draw(t, "file")
		s, want, source := sources{args: []string{"--region=x"}, env: map[string]string{}}, values[0], ""
		if file {
			s.file, want, source = fmt.Sprintf("%s: %q\n", setting, values[1]), values[1], filepath.Join(dir, "settings.yaml")
		}
		if env {
			s.env[variable(setting)], want, source = values[2], values[2], variable(setting)
		}
		if flag {
			s.args, want, source = append(s.args, "--"+setting+"="+values[3]), values[3], "a flag"
		}
		r, err := s.read(dir, &providerSettings{})
		require.NoError(t, err)
		require.Equal(t, want, r.value(t, setting))
		for name, value := range s.env {
			_ = os.Setenv(name, value)
			defer func() { _ = os.Unsetenv(name) }()
		}
		require.Equal(t, source, r.source(setting))
	})
}

// TestTypes: samples has settings of every type.
func TestTypes(t *testing.T) {
	r, err := sources{args: []string{"--region=x"}}.read(t.TempDir(), &providerSettings{})
	require.NoError(t, err)
	covered := map[string]bool{}
	for _, flag := range r.parser.Model.Flags {
		if samples[flag.Name] != nil {
			covered[flag.Target.Type().String()] = true
		}
	}
	for _, flag := range r.parser.Model.Flags {
		switch flag.Target.Type().String() {
		case "kong.helpFlag", "kong.VersionFlag", "drain.Treatment":
		default:
			require.True(t, covered[flag.Target.Type().String()], "samples has no setting of type %s, such as %s", flag.Target.Type(), flag.Name)
		}
	}
}

// TestFile: values in the file may be strings, numbers, booleans and lists of YAML.
func TestFile(t *testing.T) {
	r, err := sources{file: `
no-target: true
workers: 7
driver-qps: 2.5
kinds: [machine, set]
machine-drain-timeout: 1h
update-limit: 3
safety-replacements: 20%
node-conditions: []
region: x
zones: 9
`}.read(t.TempDir(), &providerSettings{})
	require.NoError(t, err)
	s := &r.settings
	require.True(t, s.NoTarget)
	require.Equal(t, 7, s.Workers)
	require.InDelta(t, 2.5, s.DriverQPS, 0)
	require.Equal(t, []string{"machine", "set"}, s.Kinds)
	require.Equal(t, "1h", flagText(r.rules.drain.Timeout))
	require.Equal(t, "3", r.rules.deployment.UpdateLimit.String())
	require.Equal(t, "20%", r.rules.safety.Replacements.String())
	require.Empty(t, r.rules.machine.NodeConditions)
	require.NotNil(t, r.rules.machine.NodeConditions)
	require.Equal(t, "9", r.value(t, "zones"))
}

// TestConfigFromVariable: a variable can name the file.
func TestConfigFromVariable(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f.yaml")
	require.NoError(t, os.WriteFile(name, []byte("namespace: there"), 0o600))
	r, err := sources{env: map[string]string{"MILLWRIGHT_CONFIG": name}}.read("", nil)
	require.NoError(t, err)
	require.Equal(t, "there", r.settings.Namespace)
}

// TestVariables: every setting has a variable, except help and version.
func TestVariables(t *testing.T) {
	r, err := newReading(&Program{Settings: &providerSettings{}}, nil, io.Discard)
	require.NoError(t, err)
	for _, flag := range r.parser.Model.Flags {
		if flag.Name == "help" || flag.Name == "version" {
			require.Empty(t, flag.Tag.Envs)
			continue
		}
		require.Equal(t, []string{variable(flag.Name)}, flag.Tag.Envs)
		require.NotRegexp(t, `^port$|^service-|-port$|-service-host$`, flag.Name, "Kubernetes sets such variables itself")
		require.NotEmpty(t, flag.Help, flag.Name)
	}
}

// TestUnknownVariables: variables with the prefix that are no setting are found, but not those that
// Kubernetes sets for services.
func TestUnknownVariables(t *testing.T) {
	for _, name := range []string{
		"MILLWRIGHT_LOG_LVL", "MILLWRIGHT_PORT", "MILLWRIGHT_PORT_8080_TCP", "MILLWRIGHT_PORT_8080_TCP_ADDR",
		"MILLWRIGHT_SERVICE_HOST", "MILLWRIGHT_METRICS_SERVICE_PORT_HTTP", "MILLWRIGHT_NAMESPACE", "MILLWRIGHTS_FOO",
	} {
		t.Setenv(name, "x")
	}
	r, err := sources{}.read(t.TempDir(), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"MILLWRIGHT_LOG_LVL"}, r.unknownVariables())
}

// TestProviderSettings: a provider's setting can't have the name of another one. Settings must be a
// pointer.
func TestProviderSettings(t *testing.T) {
	_, err := newReading(&Program{Settings: &struct{ Workers int }{}}, nil, io.Discard)
	require.ErrorContains(t, err, "workers")
	_, err = newReading(&Program{Settings: providerSettings{}}, nil, io.Discard)
	require.ErrorContains(t, err, "pointer to a struct")
}

func TestHelpAndVersion(t *testing.T) {
	for _, arg := range []string{"--help", "-h", "--version"} {
		var out strings.Builder
		p := Program{Name: "test", Args: []string{arg}, Settings: &providerSettings{}, out: &out}
		require.NoError(t, p.Run(t.Context()))
		require.Contains(t, out.String(), "test")
	}
}

// FuzzFile: a file gives values of known settings, or an error; never a panic.
func FuzzFile(f *testing.F) {
	for _, text := range []string{"", "namespace: x", "kinds: [machine, set]", "workers: 1e3", "a: {b: c}", "workers:", "- x", "kinds: [[a]]", "no-target: yes\n", "namespace: &a x\nshard: *a"} {
		f.Add(text)
	}
	r, err := newReading(&Program{Name: "fuzz"}, nil, io.Discard)
	require.NoError(f, err)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		name := filepath.Join(dir, "f.yaml")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		c := &file{name: name}
		if err := c.read(r.parser.Model.Flags); err != nil {
			require.ErrorIs(t, err, ErrSettings)
			require.NotContains(t, oneLine(err), "\n")
			return
		}
		for setting := range c.values {
			require.True(t, slices.ContainsFunc(r.parser.Model.Flags, func(f *kong.Flag) bool { return f.Name == setting }), setting)
		}
	})
}

// TestShortDuration: the short form of a duration has the same value.
func TestShortDuration(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := durations.Draw(t, "d")
		var got struct{ D time.Duration }
		parser, err := kong.New(&got)
		require.NoError(t, err)
		_, err = parser.Parse([]string{"--d=" + shortDuration(d)})
		require.NoError(t, err)
		require.Equal(t, d, got.D)
	})
}
