package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	poolsv1alpha1 "github.com/millwright-go/millwright/adapters/kubernetes/api/pools/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/apistore"
	"github.com/millwright-go/millwright/adapters/kubernetes/convert"
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

// pools returns a store of pools, which runs until the test ends.
func (w *world) pools() *apistore.Collection[*machinepool.Pool, *poolsv1alpha1.MachinePool] {
	w.Helper()
	types := runtime.NewScheme()
	require.NoError(w, poolsv1alpha1.AddToScheme(types))
	client, err := apistore.NewClient(server.Config, poolsv1alpha1.GroupVersion, types)
	require.NoError(w, err)
	return startStoreWith(w, client, "machinepools", convert.Pools(convert.DefaultKeys()),
		func() *poolsv1alpha1.MachinePool { return &poolsv1alpha1.MachinePool{} }, &poolsv1alpha1.MachinePoolList{})
}

// pool returns a pool in which every field is set.
func (w *world) pool(name string) *machinepool.Pool {
	three, secret := int32(3), "join"
	p := &machinepool.Pool{Meta: object.Meta{Key: w.key(name)}}
	p.Spec = machinepool.Spec{
		ClusterName: "blue", Replicas: &three, MinReady: 90 * 1e9, FailureDomains: []string{"b", "a"},
		RollingUpdate: &machinepool.RollingUpdate{MaxSurge: rollout.IntOrPercent{Value: 20, Percent: true}, MaxUnavailable: rollout.IntOrPercent{Value: 1}},
		ProviderIDs:   []string{"memory:///1", "memory:///2"},
		Template: machinepool.Template{
			Class: machine.ClassRef{Kind: "MachineClass", Name: "small"},
			NodeTemplate: machine.NodeTemplate{Labels: map[string]string{"example.com/pool": name}, Taints: []object.Taint{
				{Key: "example.com/only", Effect: object.NoSchedule},
			}},
			Bootstrap: machinepool.Bootstrap{Config: "maker", DataSecret: &secret},
		},
	}
	p.Status = machinepool.Status{
		Phase: machinepool.PhaseFailed, Since: since, ObservedGeneration: 1, Replicas: 2, Ready: 1, Available: 1, Unavailable: 2,
		BootstrapReady: true, InfrastructureReady: true, FailureReason: machinepool.FailureUpdate, FailureMessage: "no room",
		NodeRefs: []machinepool.NodeRef{{ProviderID: "memory:///1", Name: "n-1", UID: "u", ReadySince: since}}, GroupID: "group-1", LastKnown: "note",
		Conditions: []object.Condition{{Type: machinepool.ConditionSpecValid, Status: object.True, Since: since}},
		Applied:    machinepool.Applied{Template: p.Spec.Template.Clone(), FailureDomains: []string{"a"}, RollingUpdate: &machinepool.RollingUpdate{}, ClassUID: "c", ClassGeneration: 2},
		Leaving:    []machinepool.Leaving{{ProviderID: "memory:///2", Exit: machinepool.ExitScaleDown, Since: since}},
		LastOperation: machinepool.Operation{Call: machinepool.ScalePool, State: machine.StateFailed, Replicas: 3, Code: codes.ResourceExhausted,
			Message: "no room", Time: since, Against: machinepool.Inputs{Pool: 1, Class: 2, Secret: "v"}},
		NeverCreated: true,
	}
	return p
}

// TestPoolsAreStoredWhole: the definition has every field of a pool. The server raises the generation
// for changes of the spec only.
func TestPoolsAreStoredWhole(t *testing.T) {
	w := newWorld(t)
	pools, want := w.pools(), w.pool("p")
	create(w, pools, want)
	stored := get(w, pools, "p")
	want.Meta = stored.Meta
	require.Equal(t, want, stored)
	require.EqualValues(t, 1, stored.Generation)
	edit(w, pools, "p", func(p *machinepool.Pool) { p.Spec.ProviderIDs = nil })
	require.EqualValues(t, 2, get(w, pools, "p").Generation)
	edit(w, pools, "p", func(p *machinepool.Pool) { p.Status.Phase = machinepool.PhaseRunning })
	require.EqualValues(t, 2, get(w, pools, "p").Generation)
}

// TestPoolColumns: kubectl get prints the columns of pools, by all of their names. kubectl wait, scale
// and explain work, too.
func TestPoolColumns(t *testing.T) {
	w := newWorld(t)
	pools := w.pools()
	create(w, pools, w.pool("p"))
	for name := range strings.FieldsSeq("mwp machinepools.millwright-go.github.io machinepools.v1alpha1.millwright-go.github.io") {
		require.Equal(t, []string{"NAME PHASE DESIRED CURRENT READY FAILURE AGE", "p Failed 3 2 1 UpdateError -"}, table(w.kubectl("get", name)), name)
	}
	require.Equal(t, []string{"NAME PHASE DESIRED CURRENT READY FAILURE AGE CLASS GROUP MESSAGE", "p Failed 3 2 1 UpdateError - small group-1 no room"},
		table(w.kubectl("get", "mwp", "-o", "wide")))
	w.kubectl("wait", "mwp/p", "--for=condition=SpecValid", "--timeout=10s")
	w.kubectl("wait", "mwp/p", "--for=jsonpath={.status.phase}=Failed", "--timeout=10s")
	w.kubectl("scale", "mwp/p", "--current-replicas=3", "--replicas=0")
	require.EqualValues(t, 0, *get(w, pools, "p").Spec.Replicas)
	w.kubectl("scale", "mwp/p", "--current-replicas=0", "--replicas=4")
	require.Equal(t, "4 2", w.kubectl("get", "mwp/p", "--subresource=scale", "-o", "jsonpath={.spec.replicas} {.status.replicas}"))
	require.EqualValues(t, 4, *get(w, pools, "p").Spec.Replicas)
	require.Contains(t, w.kubectl("explain", "mwp.spec.template.bootstrap"), "dataSecret")
}

// TestPoolsAreChecked: an invalid pool is not stored, and a missing size is 1.
func TestPoolsAreChecked(t *testing.T) {
	w := newWorld(t)
	apply := func(spec string) string {
		return "{apiVersion: millwright-go.github.io/v1alpha1, kind: MachinePool, metadata: {name: p}, spec: " + spec + "}"
	}
	for spec, field := range map[string]string{
		`{}`:                                "spec.clusterName",
		`{clusterName: ""}`:                 "spec.clusterName",
		`{clusterName: blue, replicas: -1}`: "spec.replicas",
		`{clusterName: blue, minReadySeconds: -1}`:                                                        "spec.minReadySeconds",
		`{clusterName: blue, failureDomains: [a, ""]}`:                                                    "spec.failureDomains[1]",
		`{clusterName: blue, failureDomains: [a, b, a]}`:                                                  "spec.failureDomains[2]",
		`{clusterName: blue, template: {bootstrap: {dataSecret: " "}}}`:                                   "spec.template.bootstrap.dataSecret",
		`{clusterName: blue, template: {bootstrap: {dataSecret: Join}}}`:                                  "spec.template.bootstrap.dataSecret",
		`{clusterName: blue, template: {nodeTemplate: {taints: [{key: a, effect: Sometimes}]}}}`:          "spec.template.nodeTemplate.taints[0].effect",
		`{clusterName: blue, template: {nodeTemplate: {taints: [{key: "", effect: NoExecute}]}}}`:         "spec.template.nodeTemplate.taints[0].key",
		`{clusterName: blue, template: {nodeTemplate: {labels: {a: 5}}}}`:                                 "spec.template.nodeTemplate.labels.a",
		`{clusterName: blue, rollingUpdate: {maxSurge: some}}`:                                            "spec.rollingUpdate.maxSurge",
		`{clusterName: blue, rollingUpdate: {maxUnavailable: "-1"}}`:                                      "spec.rollingUpdate.maxUnavailable",
		`{clusterName: blue, rollingUpdate: {maxUnavailable: 1.5}}`:                                       "spec.rollingUpdate.maxUnavailable",
		`{clusterName: blue, replica: 3}`:                                                                 `unknown field "spec.replica"`,
		`{clusterName: blue, template: {bootstrap: {dataSecret: ` + strings.Repeat("a", 254) + `}}}`:      "spec.template.bootstrap.dataSecret",
		`{clusterName: blue, template: {class: {name: small}, nodeTemplate: {metadata: {labels: {}}}}}`:   `unknown field "spec.template.nodeTemplate.metadata"`,
		`{clusterName: blue, template: {class: {name: small}, bootstrap: {dataSecretName: join-secret}}}`: `unknown field "spec.template.bootstrap.dataSecretName"`,
	} {
		require.Contains(t, w.refused(apply(spec), "apply", "-f", "-"), field, spec)
	}
	pools := w.pools()
	_, err := server.Kubectl(t.Context(), apply(`{clusterName: blue, template: {bootstrap: {dataSecret: ""}}}`), "--namespace="+w.namespace, "apply", "-f", "-")
	require.NoError(t, err)
	p := get(w, pools, "p")
	require.EqualValues(t, 1, *p.Spec.Replicas, "without a size, the scale subresource would fail")
	require.Empty(t, *p.Spec.Template.Bootstrap.DataSecret)
	require.NoError(t, p.Validate())
}
