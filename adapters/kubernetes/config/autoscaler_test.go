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

// withAutoscaler writes a kustomization of a folder of Manifests and the component
// gardener-autoscaler, in the world's namespace, and returns its folder.
func (w *world) withAutoscaler(folder string) string {
	w.Helper()
	dir := w.TempDir()
	require.NoError(w, os.CopyFS(dir, config.Manifests()))
	text := fmt.Sprintf("resources: [../%s]\ncomponents: [../gardener-autoscaler]\nnamespace: %s\n", folder, w.namespace)
	mine := filepath.Join(dir, "mine")
	require.NoError(w, os.Mkdir(mine, 0o700))
	require.NoError(w, os.WriteFile(filepath.Join(mine, "kustomization.yaml"), []byte(text), 0o600))
	return mine
}

// Gardener's cluster-autoscaler looks for the Deployment machine-controller-manager. With the component
// gardener-autoscaler the manager's Deployment has this name, in every folder with a manager.
func TestAutoscalerFindsItsDeployment(t *testing.T) {
	w := newWorld(t)
	for _, folder := range []string{"manager", "one-cluster", "two-clusters/control", "simulated"} {
		var names []string
		for _, o := range strings.Split(w.kubectl("kustomize", w.withAutoscaler(folder)), "\n---\n") {
			if strings.Contains(o, "\nkind: Deployment\n") {
				_, name, _ := strings.Cut(o, "\n  name: ")
				name, _, _ = strings.Cut(name, "\n")
				names = append(names, name)
			}
		}
		require.Equal(t, []string{"machine-controller-manager"}, names, folder)
	}

	w.kubectl("apply", "-k", w.withAutoscaler("manager"))
	const columns = "custom-columns=NAME:.metadata.name,ACCOUNT:.spec.template.spec.serviceAccountName,IMAGE:.spec.template.spec.containers[*].image"
	require.Equal(t, []string{"machine-controller-manager millwright-manager millwright-manager"},
		table(w.kubectl("get", "deployments", "--no-headers", "-o", columns)))
}

// The Deployment of machine-controller-manager must be deleted before ours gets its name. To scale it
// to zero is not enough, because the selector of a Deployment is immutable.
func TestAutoscalerDeploymentReplacesADeletedOne(t *testing.T) {
	w := newWorld(t)
	w.kubectl("create", "deployment", "machine-controller-manager", "--image=mcm", "--replicas=0")
	dir := w.withAutoscaler("manager")
	require.Contains(t, w.refused("", "apply", "-k", dir), "field is immutable")
	w.kubectl("delete", "deployment", "machine-controller-manager")
	w.kubectl("apply", "-k", dir)
}
