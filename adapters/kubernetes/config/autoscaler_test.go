package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/adapters/kubernetes/config"
)

// autoscaled writes a kustomization of a folder of Manifests with the component for
// Gardener's cluster-autoscaler, in the world's namespace, and returns its folder.
func (w *world) autoscaled(folder string) string {
	w.Helper()
	dir := w.TempDir()
	require.NoError(w, os.CopyFS(dir, config.Manifests()))
	text := fmt.Sprintf("resources: [../%s]\ncomponents: [../gardener-autoscaler]\nnamespace: %s\n", folder, w.namespace)
	mine := filepath.Join(dir, "mine")
	require.NoError(w, os.Mkdir(mine, 0o700))
	require.NoError(w, os.WriteFile(filepath.Join(mine, "kustomization.yaml"), []byte(text), 0o600))
	return mine
}

// Gardener's cluster-autoscaler asks whether the Deployment of this name has available replicas.
// The component works with every folder that has a manager.
func TestAutoscalerFindsItsDeployment(t *testing.T) {
	w := newWorld(t)
	for _, folder := range []string{"manager", "one-cluster", "two-clusters/control", "simulated"} {
		var names []string
		for _, o := range strings.Split(w.kubectl("kustomize", w.autoscaled(folder)), "\n---\n") {
			if strings.Contains(o, "\nkind: Deployment\n") {
				_, name, _ := strings.Cut(o, "\n  name: ")
				name, _, _ = strings.Cut(name, "\n")
				names = append(names, name)
			}
		}
		require.Equal(t, []string{"machine-controller-manager"}, names, folder)
	}

	w.kubectl("apply", "-k", w.autoscaled("manager"))
	const columns = "custom-columns=NAME:.metadata.name,ACCOUNT:.spec.template.spec.serviceAccountName,IMAGE:.spec.template.spec.containers[*].image"
	require.Equal(t, []string{"machine-controller-manager millwright-manager millwright-manager"},
		table(w.kubectl("get", "deployments", "--no-headers", "-o", columns)))
}

// The selector of a Deployment is immutable, so MCM's has to be deleted, not scaled to zero, before
// ours takes its name.
func TestAutoscalerDeploymentReplacesADeletedOne(t *testing.T) {
	w := newWorld(t)
	w.kubectl("create", "deployment", "machine-controller-manager", "--image=mcm", "--replicas=0")
	dir := w.autoscaled("manager")
	require.Contains(t, w.refused("", "apply", "-k", dir), "field is immutable")
	w.kubectl("delete", "deployment", "machine-controller-manager")
	w.kubectl("apply", "-k", dir)
}
