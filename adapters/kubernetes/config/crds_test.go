package config_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/adapters/kubernetes/config"
	"github.com/millwright-go/millwright/store"
)

// TestCRDs: there is a definition of each kind. Changes of the result do not change later results.
func TestCRDs(t *testing.T) {
	var names []string
	for _, c := range config.CRDs() {
		names = append(names, c.Name)
		o, err := c.Object()
		require.NoError(t, err)
		require.Equal(t, c.Name, o.GetName())
		require.Equal(t, "CustomResourceDefinition", o.GetKind())
		clear(c.YAML)
	}
	require.Equal(t, []string{
		"machineclasses.machine.sapcloud.io", "machinedeployments.machine.sapcloud.io", "machines.machine.sapcloud.io", "machinesets.machine.sapcloud.io",
		"machinepools.millwright-go.github.io",
	}, names)
	for _, c := range config.CRDs() {
		require.NotZero(t, c.YAML[0])
	}
	_, err := config.CRD{YAML: []byte("{")}.Object()
	require.Error(t, err)
}

// TestInstall: a second call changes nothing. Install keeps labels of others, restores a changed spec,
// waits until a new kind is served, and ends with its context.
func TestInstall(t *testing.T) {
	w := newWorld(t)
	state := func() string {
		return w.kubectl("get", "crds", "-o", "jsonpath={range .items[*]}{.metadata.name} {.metadata.resourceVersion} {.metadata.labels}\n{end}")
	}
	w.kubectl("label", "--overwrite", "crd/machines.machine.sapcloud.io", "theirs=kept")
	before := state()
	require.NoError(t, config.Install(t.Context(), server.Config))
	require.Equal(t, before, state())
	require.Contains(t, before, `{"theirs":"kept"}`)

	w.kubectl("patch", "crd/machinesets.machine.sapcloud.io", "--type=merge", `--patch={"spec":{"names":{"shortNames":["ms"]}}}`)
	require.NoError(t, config.Install(t.Context(), server.Config))
	require.Equal(t, `["mcs"]`, w.kubectl("get", "crd/machinesets.machine.sapcloud.io", "-o", "jsonpath={.spec.names.shortNames}"))

	// A new kind is served when Install returns.
	w.kubectl("delete", "crd/machineclasses.machine.sapcloud.io")
	require.NoError(t, config.Install(t.Context(), server.Config))
	_, err := w.classes.Live().List(t.Context(), store.Query{})
	require.NoError(t, err)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, config.Install(ended, server.Config), context.Canceled)
}
