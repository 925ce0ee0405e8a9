package controllers_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/millwright-go/millwright/adapters/kubernetes/controllers"
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
)

// TestHungCallsFailTheHealthCheck: many create calls of one class hang. The health check fails,
// machines of another class are still created, and the check recovers when the calls return.
func TestHungCallsFailTheHealthCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brisk)
	release := make(chan struct{})
	d := driver.Intercept(w.provider, func(ctx context.Context, call driver.CallInfo, next func(context.Context) error) error {
		if call.Method == codes.CreateMachine && call.Class.Name == "stuck" {
			<-release
			return context.Canceled
		}
		return next(ctx)
	})
	health := freeAddress(t)
	mgr, err := ctrl.NewManager(w.countedConfig(), ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: health})
	require.NoError(t, err)
	require.NoError(t, controllers.SetupWithManager(mgr, controllers.Options{
		Driver: d, Namespace: w.namespace, Log: w.log, Metrics: prometheus.NewRegistry(),
		CallTimeout: time.Second, CallGrace: 100 * time.Millisecond,
	}))
	stop := w.background(func(ctx context.Context) { _ = mgr.Start(ctx) })
	healthStatus := func() int {
		resp, err := http.Get("http://" + health + "/healthz")
		if err != nil {
			return 0
		}
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	w.eventually("a successful health check", func() bool { return healthStatus() == http.StatusOK })
	w.class("stuck", "s")
	w.class("small", "s")
	w.deployment("stuck", "stuck", 130)
	w.eventually("a failing health check", func() bool { return healthStatus() == http.StatusInternalServerError })
	w.deployment("web", "small", 2)
	w.eventually("machines of another class", w.settled("web", 2))
	close(release)
	w.eventually("a successful health check again", func() bool { return healthStatus() == http.StatusOK })
	stop()
}
