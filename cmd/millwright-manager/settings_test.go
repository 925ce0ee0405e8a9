package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/cmd/millwright-manager/app"
)

// TestSources: the command takes its settings from a file, from variables, which override the file, and
// from flags, which override both.
func TestSources(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "settings.yaml")
	require.NoError(t, os.WriteFile(file, []byte("namespace: of-file\nkinds: [machine]\nshard: 0/2\nmetrics-bind-address: ''\nhealth-bind-address: ''\nsimulated-dir: "+t.TempDir()+"\n"), 0o600))
	for _, c := range []struct {
		name, namespace, lease string
		env, args              []string
	}{
		{"file", "of-file", "millwright-manager-machine-0-of-2", nil, nil},
		{"variable", "of-env", "millwright-manager-machine-set-0-of-2", []string{"MILLWRIGHT_NAMESPACE=of-env", "MILLWRIGHT_KINDS=set,machine"}, nil},
		{"flag", "of-flag", "millwright-manager-machine-set-1-of-3", []string{"MILLWRIGHT_NAMESPACE=of-env", "MILLWRIGHT_KINDS=set,machine", "MILLWRIGHT_SHARD=1/2"}, []string{"--namespace=of-flag", "--shard=1/3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			env := append([]string{"MILLWRIGHT_CONFIG=" + file, "MILLWRIGHT_KUBECONFIG=" + kubeconfig()}, c.env...)
			p := start(t, env, c.args...)
			within(t, patience, "the start", func() bool { return len(p.logged(t, "starting")) == 1 })
			entry := p.logged(t, "starting")[0]
			require.Equal(t, c.namespace, entry["namespace"])
			require.Equal(t, c.lease, entry["lease"])
			require.Equal(t, app.StatusDone, p.stop(t))
		})
	}
}

// TestMisconfiguration: invalid settings end the command at once, with one line on standard error and
// StatusSettings.
func TestMisconfiguration(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want string
		env  []string
		args []string
	}{
		{"simulated-dir: is needed", nil, nil},
		{`settings: unknown flag --simulated-die, did you mean "--simulated-dir"?`, nil, []string{"--simulated-die=x"}},
		{"kubeconfig: is needed outside of a cluster: unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined", nil, []string{"--simulated-dir=x"}},
		{"kubeconfig (from MILLWRIGHT_KUBECONFIG): stat missing: no such file or directory", []string{"MILLWRIGHT_KUBECONFIG=missing"}, []string{"--simulated-dir=x"}},
		{"machine-drain-timeout (from MILLWRIGHT_MACHINE_DRAIN_TIMEOUT): must be at least a second", []string{"MILLWRIGHT_MACHINE_DRAIN_TIMEOUT=1ms"}, []string{"--simulated-dir=x"}},
		{"leader-elect-resource-namespace: is needed outside of a cluster where namespace is not set", nil, []string{"--simulated-dir=x", "--kubeconfig=" + kubeconfig()}},
		{"settings: simulated-boot must not be negative", nil, []string{"--simulated-dir=x", "--simulated-boot=-1s", "--kubeconfig=" + kubeconfig(), "--namespace=x"}},
		{"health-bind-address (from a flag): listen tcp 203.0.113.1:80: bind: cannot assign requested address", nil, []string{"--simulated-dir=x", "--health-bind-address=203.0.113.1:80", "--kubeconfig=" + kubeconfig(), "--namespace=x"}},
		{"pprof-bind-address (from a flag): listen tcp 203.0.113.1:80: bind: cannot assign requested address", nil, []string{"--simulated-dir=x", "--health-bind-address=", "--pprof-bind-address=203.0.113.1:80", "--kubeconfig=" + kubeconfig(), "--namespace=x"}},
		{"metrics-bind-address (from a flag): listen tcp 203.0.113.1:80: bind: cannot assign requested address", nil, []string{"--simulated-dir=x", "--health-bind-address=", "--metrics-bind-address=203.0.113.1:80", "--kubeconfig=" + kubeconfig(), "--namespace=x"}},
	} {
		t.Run(c.want, func(t *testing.T) {
			t.Parallel()
			anyPort := []string{"MILLWRIGHT_METRICS_BIND_ADDRESS=127.0.0.1:0", "MILLWRIGHT_HEALTH_BIND_ADDRESS=127.0.0.1:0"}
			p := start(t, append(anyPort, c.env...), c.args...)
			require.Equal(t, app.StatusSettings, p.end(t))
			name := filepath.Base(p.Path)
			require.Equal(t, name+": "+c.want+"\n", p.errs.String())
			require.Empty(t, strings.TrimSpace(p.out.String()))
		})
	}
}
