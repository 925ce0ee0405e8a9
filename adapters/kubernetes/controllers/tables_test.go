package controllers_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/test/kubernetes/lab"
	"github.com/millwright-go/millwright/test/kubernetes/simulated"
)

// TestTables: what kubectl prints about four deployments: a healthy one, one that has reached its
// quota, one whose rollout waits for a drain that a budget blocks, and a frozen one.
func TestTables(t *testing.T) {
	if testing.Short() {
		t.Skip("a deployment mentions a drain only after it has waited for two minutes")
	}
	t.Parallel()
	w := newWorld(t, steady)
	w.manage()
	w.classWithCapacity("calm", "large", 0)
	w.classWithCapacity("short", "large", 2)
	w.classWithCapacity("old", w.namespace, 0)
	w.classWithCapacity("new", w.namespace, 0)
	w.deployment("calm", "calm", 2)
	quota := w.deployment("quota", "short", 2)
	frozen := w.deployment("frozen", "calm", 1)
	blocked := w.deploymentWith("blocked", "old", 1, `{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1,"maxUnavailable":0}}`)
	w.eventually("the healthy deployment", w.settled("calm", 2))
	w.eventually("the deployment with a quota", w.settled("quota", 2))
	w.eventually("the deployment that will freeze", w.settled("frozen", 1))
	w.budget("app", w.workload("app", 1), 1)
	w.roll(blocked, "new")
	w.addExtraMachines(frozen)
	w.scale(quota, 2, 3)

	says := func(name string, parts ...string) func() bool {
		return func() bool {
			for _, c := range w.get(name).Status.Conditions {
				if containsAll(string(c.Type)+string(c.Status)+": "+c.Message, parts) {
					return true
				}
			}
			return false
		}
	}
	w.eventually("the deployment's condition to name the quota", says("quota", "ProgressingTrue", "RESOURCE_EXHAUSTED"))
	w.eventually("the freeze", says("frozen", "FrozenTrue"))
	w.long("the deployment's condition to name the drain", says("blocked", "ProgressingTrue", "misconfigured"))

	const file = "testdata/tables.golden"
	if testkit.Update() {
		require.NoError(t, os.WriteFile(file, []byte(w.tables()), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	// The class without capacity is tried now and then. The texts are others meanwhile.
	if !lab.Await(patience, func() bool { return w.tables() == string(want) }) {
		require.Equal(t, string(want), w.tables())
	}

	for _, kind := range []string{"mcd", "mcs", "mc"} {
		text, err := server.Kubectl(t.Context(), "", "describe", "-n", w.namespace, kind)
		require.NoError(t, err)
		require.NotContains(t, text, `{"`, "JSON")
		t.Log(text)
	}
}

// tables returns what kubectl get prints about all kinds.
func (w *world) tables() string {
	w.Helper()
	var out strings.Builder
	for _, args := range []string{"mcd", "mcd -o wide", "mcs", "mcs -o wide", "mc", "mc -o wide", "mcc"} {
		text, err := server.Kubectl(w.Context(), "", append([]string{"get", "-n", w.namespace}, strings.Fields(args)...)...)
		require.NoError(w, err)
		fmt.Fprintf(&out, "$ kubectl get %s\n%s\n", args, w.plain(text))
	}
	return out.String()
}

// classWithCapacity stores a class with room for a number of VMs. 0 means any number.
func (w *world) classWithCapacity(name, size string, capacity int) {
	w.Helper()
	require.NoError(w, w.client.Create(w.Context(), &corev1.Secret{ObjectMeta: w.meta(name), Data: map[string][]byte{"userData": []byte("join")}}))
	spec, err := json.Marshal(simulated.Spec{Cluster: w.namespace + "-" + name, Size: size, Capacity: capacity})
	require.NoError(w, err)
	require.NoError(w, w.client.Create(w.Context(), &v1alpha1.MachineClass{
		ObjectMeta: w.meta(name), Provider: simulated.Name, ProviderSpec: runtime.RawExtension{Raw: spec},
		SecretRef:    &corev1.SecretReference{Namespace: w.namespace, Name: name},
		NodeTemplate: &v1alpha1.NodeTemplate{InstanceType: size, Zone: "z1", Region: "r", Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}},
	}))
}

// addExtraMachines pauses the sets of a deployment and adds more machines than their size, so that
// they are frozen.
func (w *world) addExtraMachines(d *v1alpha1.MachineDeployment) {
	w.Helper()
	for _, s := range w.sets() {
		if s.Spec.Template.Labels["pool"] != d.Name {
			continue
		}
		w.merge(&s, `{"metadata":{"annotations":{"millwright-go/paused":"true"}}}`)
		yes := true
		for i := range 6 {
			m := &v1alpha1.Machine{ObjectMeta: w.meta(fmt.Sprintf("%s-extra-%d", s.Name, i)), Spec: s.Spec.Template.Spec}
			m.Labels = s.Spec.Template.Labels
			m.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "MachineSet", Name: s.Name, UID: s.UID, Controller: &yes, BlockOwnerDeletion: &yes,
			}}
			require.NoError(w, w.client.Create(w.Context(), m))
		}
	}
}

var (
	ages  = regexp.MustCompile(` ([0-9]+[smh])+([ \n]|$)`)
	times = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]+Z`)
	gaps  = regexp.MustCompile(`  +`)
	parts = regexp.MustCompile(`-(calm|old|new|short)-[0-9a-z]{5}-([0-9]+)`)
	pods  = regexp.MustCompile(`/app-[0-9a-z]+-[0-9a-z]+`)
	ids   = regexp.MustCompile(`(simulated:///NAMESPACE-[a-z]+)/[0-9a-z]+`)
)

// plain replaces what differs from run to run, and sorts the rows. Columns are two spaces apart.
func (w *world) plain(text string) string {
	w.Helper()
	for _, s := range w.sets() {
		text = strings.ReplaceAll(text, s.Name, s.Spec.Template.Labels["pool"]+"-"+s.Spec.Template.Spec.Class.Name)
	}
	text = strings.ReplaceAll(text, w.namespace, "NAMESPACE")
	text = gaps.ReplaceAllString(text, "  ")
	text = ages.ReplaceAllString(text, " AGE$2")
	text = times.ReplaceAllString(text, "TIME")
	text = parts.ReplaceAllString(text, "-$1-HASH-$2")
	text = pods.ReplaceAllString(text, "/app-POD")
	text = ids.ReplaceAllString(text, "$1/ID")
	rows := strings.Split(strings.TrimRight(text, "\n"), "\n")
	slices.Sort(rows[1:])
	for i := range rows {
		rows[i] = strings.TrimRight(rows[i], " ") + "\n"
	}
	return strings.Join(rows, "")
}
