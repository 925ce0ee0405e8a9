package app

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestInvalidSettings: the error about an invalid setting names the setting, the source of its value, and
// the problem.
func TestInvalidSettings(t *testing.T) {
	dir := t.TempDir()
	file := dir + "/settings.yaml"
	for _, c := range []struct {
		sources
		want string
	}{
		{sources{args: []string{"--bogus"}}, "settings: unknown flag --bogus"},
		{sources{args: []string{"--worker=3"}}, `settings: unknown flag --worker, did you mean "--workers"?`},
		{sources{args: []string{"extra"}}, "settings: unexpected argument extra"},
		{sources{args: []string{"--workers"}}, "workers (from a flag): has no value"},
		{sources{args: []string{"--workers=x"}}, `workers (from a flag): expected a valid 64 bit int but got "x"`},
		{sources{args: []string{"--workers=0"}}, "workers (from a flag): must be at least 1"},
		{sources{env: map[string]string{"MILLWRIGHT_WORKERS": "0"}}, "workers (from MILLWRIGHT_WORKERS): must be at least 1"},
		{sources{env: map[string]string{"MILLWRIGHT_WORKERS": "many"}}, `workers (from MILLWRIGHT_WORKERS): expected a valid 64 bit int but got "many"`},
		{sources{file: "workers: 0"}, "workers (from " + file + "): must be at least 1"},
		{sources{file: "workers: many"}, "workers (from " + file + `): expected a valid 64 bit int but got "many"`},
		{sources{file: "worker: 3"}, "worker (from " + file + "): there is no such setting of a file"},
		{sources{file: "config: x"}, "config (from " + file + "): there is no such setting of a file"},
		{sources{file: "help: true"}, "help (from " + file + "): there is no such setting of a file"},
		{sources{file: "version: true"}, "version (from " + file + "): there is no such setting of a file"},
		{sources{file: "workers:"}, "workers (from " + file + "): has no value"},
		{sources{file: "kinds: {a: b}"}, "kinds (from " + file + "): must be a plain value or a list of such"},
		{sources{file: "kinds: [[machine]]"}, "kinds (from " + file + "): entry 1 must be one plain value"},
		{sources{file: "kinds: [machine, \"set,class\"]"}, "kinds (from " + file + "): entry 2 must be one plain value"},
		{sources{args: []string{"--log-level=loud"}}, `log-level (from a flag): must be one of "debug","info","warn","error" but got "loud"`},
		{sources{file: "log-format: xml"}, "log-format (from " + file + `): must be one of "json","text" but got "xml"`},
		{sources{args: []string{"--leader-elect=maybe"}}, `leader-elect (from a flag): bool value must be true, 1, yes, false, 0 or no but got "maybe"`},
		{sources{args: []string{"--kinds=machine,node"}}, `kinds (from a flag): "node" is none of machine, set, deployment, class, secret, pool`},
		{sources{args: []string{"--shard=3/3"}}, `shard (from a flag): "3/3" is no INDEX/OF with 0 <= INDEX < OF, such as 0/3`},
		{sources{args: []string{"--shard=1"}}, `shard (from a flag): "1" is no INDEX/OF with 0 <= INDEX < OF, such as 0/3`},
		{sources{args: []string{"--shard=-1/3"}}, `shard (from a flag): "-1/3" is no INDEX/OF with 0 <= INDEX < OF, such as 0/3`},
		{sources{args: []string{"--other-managers=none,other", "--namespace=x"}}, "other-managers (from a flag): none stands alone"},
		{sources{args: []string{"--other-managers=other"}}, `other-managers (from a flag): "other" needs a namespace: NAMESPACE/LEASE`},
		{sources{args: []string{"--other-managers=a/b/c"}}, `other-managers (from a flag): "a/b/c" is no [NAMESPACE/]LEASE`},
		{sources{args: []string{"--other-managers=/b"}}, `other-managers (from a flag): "/b" is no [NAMESPACE/]LEASE`},
		{sources{args: []string{"--no-target", "--target-kubeconfig=x"}}, "no-target (from a flag): contradicts target-kubeconfig"},
		{sources{args: []string{"--kube-api-qps=-1"}}, "kube-api-qps (from a flag): must not be negative"},
		{sources{args: []string{"--kube-api-burst=0"}}, "kube-api-burst (from a flag): must be at least 1"},
		{sources{args: []string{"--leader-elect-retry-period=0s"}}, "leader-elect-retry-period (from a flag): must be more than zero"},
		{sources{args: []string{"--leader-elect-retry-period=9s"}}, "leader-elect-renew-deadline: must be more than 1.2 times leader-elect-retry-period"},
		{sources{args: []string{"--leader-elect-lease-duration=10s"}}, "leader-elect-lease-duration (from a flag): must be more than leader-elect-renew-deadline"},
		{sources{args: []string{"--leader-elect-lease-duration=15500ms"}}, "leader-elect-lease-duration (from a flag): must be whole seconds"},
		{sources{args: []string{"--shutdown-timeout=0s"}}, "shutdown-timeout (from a flag): must be more than zero"},
		{sources{args: []string{"--metrics-bind-address=here"}}, `metrics-bind-address (from a flag): "here" is no HOST:PORT with a port from 0 to 65535`},
		{sources{args: []string{"--health-bind-address=:70000"}}, `health-bind-address (from a flag): ":70000" is no HOST:PORT with a port from 0 to 65535`},
		{sources{args: []string{"--pprof-bind-address=:http"}}, `pprof-bind-address (from a flag): ":http" is no HOST:PORT with a port from 0 to 65535`},
		{sources{args: []string{"--max-drains=-1"}}, "max-drains (from a flag): must not be negative"},
		{sources{args: []string{"--resync=0s"}}, "resync (from a flag): must be more than zero"},
		{sources{args: []string{"--settle=0s"}}, "settle (from a flag): must be more than zero"},
		{sources{args: []string{"--driver-timeout=0s"}}, "driver-timeout (from a flag): must be more than zero"},
		{sources{args: []string{"--driver-grace=0s"}}, "driver-grace (from a flag): must be more than zero"},
		{sources{args: []string{"--driver-grace=30s"}}, "driver-grace (from a flag): must be less than shutdown-timeout, 30s"},
		{sources{args: []string{"--driver-concurrency=-1"}}, "driver-concurrency (from a flag): must not be negative"},
		{sources{args: []string{"--driver-qps=-1"}}, "driver-qps (from a flag): must not be negative"},
		{sources{args: []string{"--driver-burst=0"}}, "driver-burst (from a flag): must be at least 1"},
		{sources{args: []string{"--machine-drain-timeout=soon"}}, `machine-drain-timeout (from a flag): expected duration but got "soon": time: invalid duration "soon"`},
		{sources{args: []string{"--machine-drain-timeout=0s"}}, "machine-drain-timeout (from a flag): must be at least a second"},
		{sources{file: "machine-pv-reattach-timeout: 1ms"}, "machine-pv-reattach-timeout (from " + file + "): must be at least a second"},
		{sources{args: []string{"--machine-hook-timeout=1ms"}}, "machine-hook-timeout (from a flag): must be at least a second, or 0"},
		{sources{args: []string{"--machine-safety-orphan-brake=0"}}, "machine-safety-orphan-brake (from a flag): must be at least 1"},
		{sources{args: []string{"--set-burst=0"}}, "set-burst (from a flag): must be from 1 to 10000"},
		{sources{args: []string{"--set-crash-loop-base=1h"}}, "set-crash-loop-max: must be at least set-crash-loop-base"},
		{sources{args: []string{"--safety-class-backoff-base=1h"}}, "safety-class-backoff-max: must be at least safety-class-backoff-base"},
		{sources{args: []string{"--set-age-order=Tallest"}}, "set-age-order (from a flag): is unknown: Tallest"},
		{sources{args: []string{"--drain-at-timeout=Nap"}}, `drain-at-timeout (from a flag): "Nap" is unknown`},
		{sources{args: []string{"--update-limit=-1"}}, `update-limit (from a flag): rollout: "-1" is negative`},
		{sources{file: "workers: 1\nworkers: 2"}, "config (from a flag): " + file + ` is no YAML file of settings: error converting YAML to JSON: yaml: unmarshal errors: line 2: key "workers" already set in map`},
		{sources{file: "a: [b\nc"}, "config (from a flag): " + file + " is no YAML file of settings: error converting YAML to JSON: yaml: line 2: did not find expected ',' or ']'"},
	} {
		t.Run(strings.Join(append(c.args, fmt.Sprint(c.env), c.file), " "), func(t *testing.T) {
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			r, err := sources{args: c.args, file: c.file}.read(dir, nil)
			require.Error(t, err)
			require.Equal(t, c.want, oneLine(err))
			require.ErrorIs(t, err, ErrSettings)
			require.Equal(t, StatusSettings, Status(err))
			require.NotNil(t, r)
		})
	}
}

// TestOtherErrors: errors about a missing file and a provider's setting, and the status of others.
func TestOtherErrors(t *testing.T) {
	_, err := sources{args: []string{"--config=missing.yaml"}}.read("", nil)
	require.EqualError(t, err, "config (from a flag): open missing.yaml: no such file or directory")
	_, err = sources{}.read("", &providerSettings{})
	require.EqualError(t, err, "region: is needed")
	require.Equal(t, StatusDone, Status(nil))
	require.Equal(t, StatusFailed, Status(os.ErrClosed))
	require.Equal(t, StatusSettings, Status(fmt.Errorf("%w: region", ErrSettings)))
}
