package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/adapters/kubernetes/controllers"
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// readArgs returns the settings that a program with these flags reads.
func readArgs(t *testing.T, args ...string) *reading {
	t.Helper()
	r, err := sources{args: args}.read("", nil)
	require.NoError(t, err)
	return r
}

// TestLeases: managers have the same lease if they have the same shard and the same kinds, in any order.
// Otherwise they have different leases.
func TestLeases(t *testing.T) {
	type part struct {
		kinds string
		shard controllers.Shard
	}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) (*settings, part) {
			s := &settings{}
			s.Kinds = rapid.Permutation(kinds).Draw(t, label)[:rapid.IntRange(0, len(kinds)).Draw(t, label+" kinds")]
			s.Shard = rapid.SampledFrom([]string{"", "0/1", "0/2", "1/2", "0/3", "2/3", "1/11", "11/12"}).Draw(t, label+" shard")
			p := part{}
			for _, kind := range kinds {
				if strings.Contains(strings.Join(s.Kinds, " "), kind) {
					p.kinds += kind + " "
				}
			}
			var err error
			p.shard, err = s.shard()
			require.NoError(t, err)
			if p.shard.Of == 1 {
				p.shard = controllers.Shard{}
			}
			return s, p
		}
		a, partA := draw("a")
		b, partB := draw("b")
		require.Equal(t, partA == partB, a.lease() == b.lease(), "%s and %s", a.lease(), b.lease())
		require.Regexp(t, `^millwright-manager[a-z0-9-]*$`, a.lease())
	})
	require.Equal(t, "mine", readArgs(t, "--leader-elect-resource-name=mine", "--shard=0/2").settings.lease())
	require.Equal(t, "millwright-manager-machine-set-1-of-3", readArgs(t, "--kinds=set,machine", "--shard=1/3").settings.lease())
}

func TestOtherManagers(t *testing.T) {
	require.Nil(t, readArgs(t, "--namespace=x").settings.otherManagers(), "nil means the default")
	require.Equal(t, []controllers.Lease{}, readArgs(t, "--other-managers=none").settings.otherManagers())
	require.Equal(t, []controllers.Lease{{Namespace: "x", Name: "a"}, {Namespace: "y", Name: "b"}},
		readArgs(t, "--namespace=x", "--other-managers=a,y/b").settings.otherManagers())
}

// TestOptions: settings set the options of the controllers and of the manager.
func TestOptions(t *testing.T) {
	r := readArgs(t, "--namespace=x", "--kinds=machine,set", "--shard=1/3", "--max-drains=4", "--workers=5", "--resync=7m", "--settle=3ms", "--driver-timeout=3m", "--driver-grace=4s",
		"--no-target", "--dry-run", "--other-managers=y/b", "--machine-health-timeout=42s", "--leader-elect-lease-duration=60s",
		"--leader-elect-renew-deadline=50s", "--leader-elect-retry-period=5s", "--shutdown-timeout=9s", "--metrics-bind-address=", "--health-bind-address=:1", "--pprof-bind-address=:2")
	log := slog.New(slog.DiscardHandler)
	o, err := r.options(driver.Unimplemented{}, Clusters{}, log)
	require.NoError(t, err)
	require.NotNil(t, o.Driver)
	o.Driver = nil
	require.Equal(t, controllers.Options{
		Namespace: "x", NoTarget: true, Kinds: o.Kinds, Shard: controllers.Shard{Index: 1, Of: 3},
		MachinePolicy: r.rules.machine, SetPolicy: r.rules.set, DeploymentPolicy: r.rules.deployment, SafetyPolicy: r.rules.safety, DrainPolicy: r.rules.drain,
		PoolPolicy: r.rules.pool, MaxDrains: 4, DryRun: true, OtherManagers: []controllers.Lease{{Namespace: "y", Name: "b"}},
		Workers: 5, Resync: 7 * time.Minute, CallTimeout: 6 * time.Minute, CallGrace: 4 * time.Second, Settle: 3 * time.Millisecond, Log: log,
	}, o)
	require.Len(t, o.Kinds, 2)
	require.Equal(t, 42*time.Second, o.MachinePolicy.HealthTimeout)

	m := r.settings.managerOptions(log)
	require.False(t, m.LeaderElection, "a dry run needs no leader")
	require.Equal(t, []any{"0", ":1", ":2"}, []any{m.Metrics.BindAddress, m.HealthProbeBindAddress, m.PprofBindAddress})
	require.Equal(t, []time.Duration{time.Minute, 50 * time.Second, 5 * time.Second, 9 * time.Second},
		[]time.Duration{*m.LeaseDuration, *m.RenewDeadline, *m.RetryPeriod, *m.GracefulShutdownTimeout})
	require.Equal(t, "x", m.LeaderElectionNamespace)
	require.Equal(t, "y", readArgs(t, "--namespace=x", "--leader-elect-resource-namespace=y").settings.managerOptions(log).LeaderElectionNamespace)

	m = readArgs(t).settings.managerOptions(log)
	require.True(t, m.LeaderElection)
	require.True(t, m.LeaderElectionReleaseOnCancel)
	require.Equal(t, "0", m.PprofBindAddress)
	for _, address := range []string{m.Metrics.BindAddress, m.HealthProbeBindAddress} {
		require.True(t, strings.HasPrefix(address, "127.0.0.1:"), "%s can be reached from other computers", address)
	}
	require.False(t, readArgs(t, "--no-leader-elect").settings.managerOptions(log).LeaderElection)
}

// TestTokens: groups of bootstrap tokens that a server would refuse are an error.
func TestTokens(t *testing.T) {
	target := Clusters{Target: &rest.Config{Host: "https://there"}}
	o, err := readArgs(t, "--bootstrap-token-auth-extra-groups=system:bootstrappers:fleet").options(driver.Unimplemented{}, target, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"system:bootstrappers:fleet"}, o.TokenGroups)
	r := readArgs(t, "--bootstrap-token-auth-extra-groups=admins")
	_, err = r.options(driver.Unimplemented{}, target, nil)
	require.ErrorContains(t, r.sourced(err), `bootstrap-token-auth-extra-groups (from a flag): group "admins"`)
	require.ErrorIs(t, err, ErrSettings)
}

// kubeconfig writes a kubeconfig for a server, and returns its path.
func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: server}
	c.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	c.CurrentContext = "c"
	name := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*c, name))
	return name
}

func TestConnect(t *testing.T) {
	here, there := kubeconfig(t, "https://here"), kubeconfig(t, "https://there")
	connect := func(args ...string) Clusters {
		c, err := readArgs(t, args...).settings.connect(nil)
		require.NoError(t, err)
		return c
	}
	c := connect("--kubeconfig=" + here)
	require.Equal(t, []any{"https://here", "https://here", float32(-1), float32(-1)}, []any{c.Control.Host, c.Target.Host, c.Control.QPS, c.Target.QPS})
	c = connect("--kubeconfig="+here, "--target-kubeconfig="+there, "--kube-api-qps=7.5", "--kube-api-burst=9")
	require.Equal(t, []any{"https://here", "https://there"}, []any{c.Control.Host, c.Target.Host})
	require.Equal(t, []any{float32(7.5), float32(7.5), 9, 9}, []any{c.Control.QPS, c.Target.QPS, c.Control.Burst, c.Target.Burst})
	require.Nil(t, connect("--kubeconfig="+here, "--no-target").Target)

	for setting, args := range map[string][]string{
		"kubeconfig":        {"--kubeconfig=missing"},
		"target-kubeconfig": {"--kubeconfig=" + here, "--target-kubeconfig=missing"},
	} {
		r := readArgs(t, args...)
		_, err := r.settings.connect(nil)
		require.EqualError(t, r.sourced(err), setting+" (from a flag): stat missing: no such file or directory")
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err := readArgs(t).settings.connect(nil)
	require.ErrorContains(t, err, "kubeconfig: is needed outside of a cluster")
	require.ErrorIs(t, err, ErrSettings)
}

// slow is a driver whose calls take a second. It records how many calls run at a time.
type slow struct {
	driver.Unimplemented
	now, most atomic.Int64 // running calls
	left      atomic.Int64 // nanoseconds from a call's start to its deadline
}

func (s *slow) CreateMachine(ctx context.Context, _ *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	n := s.now.Add(1)
	defer s.now.Add(-1)
	s.most.Store(max(n, s.most.Load()))
	deadline, _ := ctx.Deadline()
	s.left.Store(int64(time.Until(deadline)))
	select {
	case <-time.After(time.Second):
		return &driver.CreateMachineResponse{}, nil
	case <-ctx.Done():
		return nil, codes.New(codes.DeadlineExceeded, "late")
	}
}

// TestDriverLimits: the limits hold, and the timeout of a call begins after the wait for its turn.
func TestDriverLimits(t *testing.T) {
	for _, c := range []struct {
		args []string
		most int64
		took time.Duration // of six calls
	}{
		{nil, 6, time.Second},
		{[]string{"--driver-concurrency=2"}, 2, 3 * time.Second},
		{[]string{"--driver-qps=0.5", "--driver-burst=1"}, 1, 11 * time.Second},
		{[]string{"--driver-qps=0.5", "--driver-burst=4"}, 4, 5 * time.Second},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &slow{}
				d, _ := readArgs(t, append(c.args, "--driver-timeout=90s")...).settings.limited(s)
				began, ended := time.Now(), make(chan error)
				for range 6 {
					go func() {
						_, err := d.CreateMachine(t.Context(), &driver.CreateMachineRequest{Machine: &machine.Machine{Meta: object.Meta{Key: object.Key{Name: "m"}}}, Class: &machine.Class{}})
						ended <- err
					}()
				}
				for range 6 {
					require.NoError(t, <-ended)
					require.Equal(t, 90*time.Second, time.Duration(s.left.Load()))
				}
				require.Equal(t, c.took, time.Since(began))
				require.Equal(t, c.most, s.most.Load())
			})
		})
	}
}

// TestLog: errors and other messages have different writers. The level and the format are as set, also
// for the Kubernetes libraries.
func TestLog(t *testing.T) {
	var out, errs bytes.Buffer
	log := readArgs(t, "--log-level=info").settings.newLog(&out, &errs).With("a", 1).WithGroup("g")
	log.Debug("no")
	log.Info("yes", "b", 2)
	log.Error("bad")
	var entry map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &entry))
	require.Equal(t, []any{"yes", 1.0, map[string]any{"b": 2.0}}, []any{entry["msg"], entry["a"], entry["g"]})
	require.NoError(t, json.Unmarshal(errs.Bytes(), &entry))
	require.Equal(t, []any{"bad", "ERROR"}, []any{entry["msg"], entry["level"]})

	out.Reset()
	errs.Reset()
	log = readArgs(t, "--log-level=debug", "--log-format=text").settings.newLog(&out, &errs)
	before := klog.Background()
	setLibraryLog(log)
	defer klog.SetLogger(before)
	log.Debug("fine")
	klog.Info("from klog")
	klog.Error("bad klog")
	klog.Background().V(8).Info("a body")
	require.Contains(t, out.String(), "level=DEBUG msg=fine")
	require.Contains(t, out.String(), `msg="from klog"`)
	require.NotContains(t, out.String(), "a body")
	require.Contains(t, errs.String(), `msg="bad klog"`)
	require.NotContains(t, errs.String(), "from klog")
}

// TestNoDriver: a program without a driver fails.
func TestNoDriver(t *testing.T) {
	args := os.Args
	defer func() { os.Args = args }()
	os.Args = []string{"test", "--kubeconfig=" + kubeconfig(t, "https://127.0.0.1:1"), "--namespace=x", "--metrics-bind-address=", "--health-bind-address="}
	require.EqualError(t, Run(t.Context(), nil), "there is no driver")
}

// TestShutdownErrors: the errors of an orderly shutdown are logged at debug level: the released lease,
// and canceled requests. All others stay errors, also that the lease was lost before.
func TestShutdownErrors(t *testing.T) {
	var out, errs bytes.Buffer
	log := slog.New(shutdownHandler{readArgs(t).settings.newLog(&out, &errs).Handler()}).With("a", 1).WithGroup("g")
	const message = "error received after stop sequence was engaged"
	log.Error(message, "err", errors.New("leader election lost"))
	require.Empty(t, errs.String())
	log.Error(message, "err", errors.New("other"))
	log.Error("ended", "err", errors.New("leader election lost"))
	log.Warn(message, "err", errors.New("leader election lost"))
	require.Equal(t, 2, strings.Count(errs.String(), "\n"))
	require.Equal(t, 1, strings.Count(out.String(), "\n"))

	out.Reset()
	errs.Reset()
	before := klog.Background()
	setLibraryLog(readArgs(t, "--log-level=debug").settings.newLog(&out, &errs))
	defer klog.SetLogger(before)
	klog.Background().Error(fmt.Errorf("get: %w", context.Canceled), "no answer")
	require.Empty(t, errs.String())
	require.Contains(t, out.String(), `"DEBUG","msg":"no answer"`)
	klog.Background().Error(context.DeadlineExceeded, "no answer")
	require.Contains(t, errs.String(), "no answer")
}
