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

// The long tests live a life for each permission that is taken away, in the code that the short ones
// run under the race detector.
//
//make:long-tests-without-race

// server is the API server of all tests here. It requires permission to refer to an owner, as few
// servers do.
var server *lab.Lab

// logged is all that any library logged.
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

// memory keeps lines.
type memory struct {
	mu    sync.Mutex
	lines []string
}

// Write implements io.Writer. Quotes are as they were before they were logged.
func (m *memory) Write(line []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lines = append(m.lines, strings.ReplaceAll(string(line), `\`, ""))
	return len(line), nil
}

// with returns the lines that hold all of these texts.
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
