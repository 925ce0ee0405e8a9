package main

import (
	"encoding/base64"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-go/millwright/cmd/millwright-manager/app"
	"github.com/millwright-go/millwright/cmd/millwright-manager/internal/trial"
)

// patience limits any wait. The computer may be slow and busy.
const patience = 5 * time.Minute

// TestTakeover: one of two processes is the leader. If it is killed, the other one becomes the leader
// when the lease has expired; if it is stopped, at once.
func TestTakeover(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.create(trial.Class(w.namespace, "small", "s", "x")...)
	w.create(trial.Deployment(w.namespace, "web", "small", 1))
	short := []string{"--leader-elect-lease-duration=12s", "--leader-elect-renew-deadline=10s", "--leader-elect-retry-period=300ms"}
	first := w.manage(short...)
	w.eventually("a leader", func() bool { return w.leader() != "" })
	killed := w.leader()
	second := w.manage(short...)
	w.eventually("a machine", w.settled("web", 1))
	require.Equal(t, killed, w.leader())
	require.NoError(t, first.Process.Kill())
	first.end(t)
	w.patch("web", `{"spec":{"replicas":2}}`)
	w.eventually("the other to lead", func() bool { return w.leader() != killed })
	w.eventually("two machines", w.settled("web", 2))

	require.Equal(t, app.StatusDone, second.stop(t))
	require.Empty(t, w.leader(), "the lease must be released")
	// These leases last an hour, so the fourth process can lead only if the third releases its lease.
	long := []string{"--leader-elect-lease-duration=1h", "--leader-elect-renew-deadline=50m", "--leader-elect-retry-period=300ms"}
	third := w.manage(long...)
	w.eventually("the third to lead", func() bool { return w.leader() != "" })
	stopped := w.leader()
	w.manage(long...)
	w.patch("web", `{"spec":{"replicas":3}}`)
	w.eventually("three machines", w.settled("web", 3))
	require.Equal(t, stopped, w.leader())
	require.Equal(t, app.StatusDone, third.stop(t))
	w.eventually("the fourth to lead", func() bool { return w.leader() != "" && w.leader() != stopped })
	w.patch("web", `{"spec":{"replicas":1}}`)
	w.eventually("one machine", w.settled("web", 1))
}

// TestLostLease: a process that loses its lease ends with an error.
func TestLostLease(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	brief := []string{"--leader-elect-lease-duration=10s", "--leader-elect-renew-deadline=8s", "--leader-elect-retry-period=200ms"}
	p := w.manage(brief...)
	w.eventually("a leader", func() bool { return w.leader() != "" })
	before := w.leader()
	require.NoError(t, p.Process.Signal(syscall.SIGSTOP))
	other := w.manage(brief...)
	w.eventually("the other to lead", func() bool { return w.leader() != before })
	require.NoError(t, p.Process.Signal(syscall.SIGCONT))
	require.Equal(t, app.StatusFailed, p.end(t))
	require.Contains(t, p.errs.String(), ": leader election lost\n")
	require.Equal(t, app.StatusDone, other.stop(t))
}

// TestNamespaceIsDeleted: if the namespace of a fleet is deleted, with the lease, the manager still
// deletes the fleet, also if another manager takes over meanwhile. Then the namespace is gone.
func TestNamespaceIsDeleted(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	brief := []string{"--leader-elect-lease-duration=12s", "--leader-elect-renew-deadline=10s", "--leader-elect-retry-period=300ms"}
	first := w.manage(brief...)
	w.eventually("a leader", func() bool { return w.leader() != "" })
	leader := w.leader()
	require.False(t, w.leaseKept())
	w.create(trial.Class(w.namespace, "small", "s", "x")...)
	w.create(trial.Deployment(w.namespace, "web", "small", 3))
	w.eventually("three machines", w.settled("web", 3))
	w.eventually("a lease with a finalizer", w.leaseKept)
	slow := append([]string{"--simulated-delete=2s", "--workers=1"}, brief...)
	second := w.manage(slow...)
	require.Equal(t, app.StatusDone, first.stop(t))
	w.eventually("the second to lead", func() bool { return w.leader() != "" && w.leader() != leader })
	require.True(t, w.leaseKept(), "a lease without a leader must stay while there is a fleet")

	require.NoError(t, w.core.CoreV1().Namespaces().Delete(t.Context(), w.namespace, metav1.DeleteOptions{}))
	w.eventually("the deletion of a VM", func() bool { return len(w.vms()) < 3 })
	require.Equal(t, app.StatusDone, second.stop(t))
	require.NotEmpty(t, w.vms(), "the test is too slow: all VMs are gone before the third manager takes over")
	third := w.manage(brief...)
	w.eventually("the deletion of all VMs", func() bool {
		select {
		case <-third.ended:
			require.Fail(t, "the manager ended before the fleet")
		default:
		}
		return len(w.vms()) == 0
	})
	w.eventually("the deletion of the namespace", func() bool {
		_, err := w.core.CoreV1().Namespaces().Get(t.Context(), w.namespace, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// TestLeaseWithoutAFleet: the lease keeps its finalizer only as long as there is a fleet. So it does not
// delay the deletion of an empty namespace.
func TestLeaseWithoutAFleet(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	class := trial.Class(w.namespace, "small", "s", "x")
	web := trial.Deployment(w.namespace, "web", "small", 1)
	w.create(append(class, web)...)
	w.manage()
	w.eventually("a machine", w.settled("web", 1))
	w.eventually("a lease with a finalizer", w.leaseKept)
	for _, o := range append(class, web) {
		require.NoError(t, w.client.Delete(t.Context(), o))
	}
	w.eventually("a lease without a finalizer", func() bool { return !w.leaseKept() })
	require.Empty(t, w.vms())
	require.NotEmpty(t, w.leader())
}

// TestShutdownInRollout: a process that is stopped in a rollout cancels running calls, waits for them,
// and ends. The next process continues. No log at any level has user data or a token.
func TestShutdownInRollout(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	const secret = "a-secret-of-user-data"
	w.create(trial.Class(w.namespace, "small", "s", secret+" <<BOOTSTRAP_TOKEN>> <<MACHINE_NAME>>")...)
	w.create(trial.Class(w.namespace, "large", "l", secret+" <<BOOTSTRAP_TOKEN>> <<MACHINE_NAME>>")...)
	w.create(trial.Deployment(w.namespace, "web", "small", 5))
	var all []*process
	run := func() *process {
		p := w.manage("--log-level=debug", "--simulated-create=300ms", "--shutdown-timeout=1h")
		all = append(all, p)
		return p
	}
	first := run()
	w.eventually("five machines", w.settled("web", 5))
	old := w.vms()
	require.Len(t, old, 5)
	w.patch("web", `{"spec":{"template":{"spec":{"class":{"name":"large"}}}}}`)
	w.eventually("the rollout to begin", func() bool {
		return slices.ContainsFunc(w.vms(), func(n string) bool { return !slices.Contains(old, n) })
	})
	require.Equal(t, app.StatusDone, first.stop(t))
	require.Empty(t, w.leader())
	require.False(t, w.settled("web", 5)(), "the test is too slow: the rollout has ended already")
	second := run()
	w.eventually("the rollout to end", w.settled("web", 5))
	w.eventually("the deletion of the old VMs", func() bool {
		vms := w.vms()
		return len(vms) == 5 && !slices.ContainsFunc(vms, func(n string) bool { return slices.Contains(old, n) })
	})
	require.Equal(t, app.StatusDone, second.stop(t))

	token := regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`)
	for _, p := range all {
		log := p.out.String() + p.errs.String()
		require.Contains(t, log, `"level":"DEBUG"`)
		require.Contains(t, log, w.vms()[0][:4], "the log has no names of machines")
		for _, part := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret))[:24]} {
			require.NotContains(t, log, part)
		}
		require.NotRegexp(t, token, log)
	}
}

// TestPages: health, readiness and metrics are served by default, profiles only with their setting.
func TestPages(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.create(trial.Class(w.namespace, "small", "s", "x")...)
	w.create(trial.Deployment(w.namespace, "web", "small", 1))
	health, metrics, pprof := address(t), address(t), address(t)
	get := func(at, path string) (int, string) {
		resp, err := http.Get("http://" + at + path)
		if err != nil {
			return 0, ""
		}
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode, string(body)
	}
	status := func(at, path string) int { code, _ := get(at, path); return code }
	p := w.manage("--health-bind-address="+health, "--metrics-bind-address="+metrics)
	w.eventually("health", func() bool { return status(health, "/healthz") == http.StatusOK })
	w.eventually("readiness", func() bool { return status(health, "/readyz") == http.StatusOK })
	w.eventually("a machine", w.settled("web", 1))
	_, body := get(metrics, "/metrics")
	require.Contains(t, body, `millwright_machines{namespace="`+w.namespace+`",phase="Running"} 1`)
	require.Contains(t, body, "millwright_effect_seconds_count")
	require.Contains(t, body, `leader_election_master_status{name="millwright-manager"} 1`)
	for _, at := range []string{health, metrics} {
		require.Equal(t, http.StatusNotFound, status(at, "/debug/pprof/"))
	}
	require.Equal(t, app.StatusDone, p.stop(t))
	q := w.manage("--pprof-bind-address=" + pprof)
	w.eventually("profiles", func() bool { return status(pprof, "/debug/pprof/") == http.StatusOK })
	require.Zero(t, status(health, "/healthz"))
	w.eventually("a leader", func() bool { return w.leader() != "" })
	require.Equal(t, app.StatusDone, q.stop(t))
	require.Empty(t, strings.TrimSpace(q.errs.String()))
}
