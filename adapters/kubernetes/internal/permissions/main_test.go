// Package permissions tests that the rules of package config are enough for a manager, and no more
// than it needs.
package permissions

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	poolsv1alpha1 "github.com/millwright-go/millwright/adapters/kubernetes/api/pools/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/config"
	"github.com/millwright-go/millwright/test/kubernetes/lab"
)

// The long tests run all steps once for each permission that is removed. The short tests run the same
// code under the race detector.
//
//make:long-tests-without-race

// server is the API server of all tests here. Unlike most servers, it requires a permission for owner
// references with blockOwnerDeletion.
var server *lab.Lab

// logged has all log lines of this process.
var logged = &memory{}

func TestMain(m *testing.M) {
	handler := slog.NewTextHandler(logged, nil)
	ctrl.SetLogger(logr.FromSlogHandler(handler))
	klog.SetSlogLogger(slog.New(handler))
	os.Exit(lab.Main(m, func(l *lab.Lab) error {
		server = l
		if err := errors.Join(v1alpha1.AddToScheme(scheme.Scheme), poolsv1alpha1.AddToScheme(scheme.Scheme)); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return config.Install(ctx, l.Config)
	}, "--controllers=gc,disruption,fakekubelet,scheduler,nodelifecycle,replicaset,deployment,namespace", "--pod-startup=200ms",
		"--", "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"))
}

// memory is a writer that keeps lines.
type memory struct {
	mu    sync.Mutex
	lines []string
}

// Write implements io.Writer. It removes the backslashes that the log handler puts before quotes.
func (m *memory) Write(line []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lines = append(m.lines, strings.ReplaceAll(string(line), `\`, ""))
	return len(line), nil
}

// with returns the lines that contain all of these texts.
func (m *memory) with(texts ...string) (found []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
lines:
	for _, line := range m.lines {
		for _, text := range texts {
			if !strings.Contains(line, text) {
				continue lines
			}
		}
		found = append(found, line)
	}
	return found
}

// patience limits any wait, also on a slow and busy machine.
const patience = 5 * time.Minute

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	require.True(t, lab.Await(patience, holds), "waited in vain for %s", what)
}
