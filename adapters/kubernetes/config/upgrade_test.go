package config_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/millwright-go/millwright/adapters/kubernetes/config"
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// documents reads the objects in a file of testdata.
func documents(t *testing.T, file string) (all []*unstructured.Unstructured) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	require.NoError(t, err)
	for _, part := range strings.Split(string(text), "\n---\n") {
		o := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(part), &o.Object))
		all = append(all, o)
	}
	return all
}

// ours returns the definitions of this package.
func ours(t *testing.T) (all []*unstructured.Unstructured) {
	t.Helper()
	for _, c := range config.CRDs() {
		o, err := c.Object()
		require.NoError(t, err)
		all = append(all, o)
	}
	return all
}

var plurals = map[string]string{"Machine": "machines", "MachineSet": "machinesets", "MachineDeployment": "machinedeployments"}

func resource(plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "machine.sapcloud.io", Version: "v1alpha1", Resource: plural}
}

// probes are objects with a field that our definitions have and the older ones do not.
var probes = []string{
	`{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"Machine","metadata":{"name":"probe"},"spec":{"disableHealthTimeout":true}}`,
	`{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"MachineSet","metadata":{"name":"probe"},"spec":{"autoPreserveFailedMachineMax":1}}`,
	`{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"MachineDeployment","metadata":{"name":"probe"},"spec":{"autoPreserveFailedMachineMax":1,"template":{}}}`,
}

// define installs definitions on the server, and waits until they are in force: until the server
// accepts all probes if known is true, else none.
func (w *world) define(definitions []*unstructured.Unstructured, known bool) {
	w.Helper()
	crds := w.dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for _, d := range definitions {
		eventually(w.T, "the definition to be stored", func() bool {
			have, err := crds.Get(w.Context(), d.GetName(), metav1.GetOptions{})
			require.NoError(w, err)
			have.Object["spec"] = d.Object["spec"]
			_, err = crds.Update(w.Context(), have, metav1.UpdateOptions{})
			return err == nil
		})
	}
	for _, text := range probes {
		o := &unstructured.Unstructured{}
		require.NoError(w, o.UnmarshalJSON([]byte(text)))
		kind := w.dynamic.Resource(resource(plurals[o.GetKind()])).Namespace(w.namespace)
		eventually(w.T, "the definition to be in force", func() bool {
			_, err := kind.Create(w.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: "Strict"})
			return (err == nil) == known
		})
	}
}

// leaves adds the values in an object to into, by their paths, and returns it. A list is one value.
func leaves(value any, path string, into map[string]any) map[string]any {
	fields, ok := value.(map[string]any)
	if !ok {
		into[path] = value
		return into
	}
	for name, field := range fields {
		leaves(field, strings.TrimPrefix(path+"/"+name, "/"), into)
	}
	return into
}

// stored returns the values of a stored object by their paths, without the server's own fields.
func (w *world) stored(kind, name string) map[string]any {
	w.Helper()
	o, err := w.dynamic.Resource(resource(plurals[kind])).Namespace(w.namespace).Get(w.Context(), name, metav1.GetOptions{})
	require.NoError(w, err)
	all := leaves(o.Object, "", map[string]any{})
	for _, own := range []string{"managedFields", "resourceVersion", "generation"} {
		delete(all, "metadata/"+own)
	}
	return all
}

// store creates objects with their statuses, as another program does.
func (w *world) store(all []*unstructured.Unstructured) {
	w.Helper()
	for _, o := range all {
		in := w.dynamic.Resource(resource(plurals[o.GetKind()])).Namespace(w.namespace)
		made, err := in.Create(w.Context(), o, metav1.CreateOptions{FieldValidation: "Strict"})
		require.NoError(w, err)
		made.Object["status"] = o.Object["status"]
		_, err = in.UpdateStatus(w.Context(), made, metav1.UpdateOptions{FieldValidation: "Strict"})
		require.NoError(w, err)
	}
}

// differing returns the paths of the values in before that have changed or are gone.
func differing(before, after map[string]any) (paths []string) {
	for path, value := range before {
		if !reflect.DeepEqual(value, after[path]) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// operate changes the objects as a manager does: fields that the older definitions have, fields that
// only ours have, and our own records.
func (w *world) operate() {
	w.Helper()
	at := time.Date(2026, 3, 3, 12, 0, 0, 0, time.UTC)
	edit(w, w.machines, "m", func(m *machine.Machine) {
		m.Spec.Config.DisableHealthTimeout = true
		m.Spec.InPlace = machine.InPlaceCandidate
		m.Status.Phase, m.Status.Since, m.Status.ResumedAt = machine.PhaseFailed, at, at
		m.Status.LastOperation = machine.Operation{Kind: machine.OperationHealthCheck, State: machine.StateFailed, Time: at, Message: "not ready", Code: codes.Internal}
		m.Status.Conditions = append(m.Status.Conditions, object.Condition{Type: "Odd", Status: object.True, Since: at})
		m.Status.Preservation = machine.Preservation{Request: machine.PreserveNow, Since: at, Until: at.Add(time.Hour)}
	})
	edit(w, w.sets, "s", func(s *machineset.Set) {
		s.Spec.Replicas, s.Spec.AutoPreserve, s.Instructions.SurgeAllowance.Surge = 4, 2, 1
		s.Status.Replicas, s.Status.Preserved = 4, 1
	})
	edit(w, w.deployments, "d", func(d *deployment.Deployment) {
		d.Spec.RollbackTo, d.Spec.AutoPreserve, d.Spec.MaxAge = nil, 2, 720*time.Hour
		d.Status.Updated, d.Status.ProgressedAt = 1, at
	})
}

// seen returns the objects as a manager sees them, without version and generation.
func (w *world) seen() []any {
	w.Helper()
	m, s, d := get(w, w.machines, "m").Clone(), get(w, w.sets, "s").Clone(), get(w, w.deployments, "d").Clone()
	for _, o := range []*object.Meta{m.ObjectMeta(), s.ObjectMeta(), d.ObjectMeta()} {
		o.Version, o.Generation = "", 0
	}
	return []any{m, s, d}
}

// TestUpgradeAndRollback: objects that were stored under older definitions are changed under ours.
// Then the older definitions are installed again. No field of the older definitions is lost.
func TestUpgradeAndRollback(t *testing.T) {
	w := newWorld(t)
	older := documents(t, "older.yaml")
	t.Cleanup(func() { w.restore() })
	w.define(older, false)
	w.store(documents(t, "objects.yaml"))
	before := map[string]map[string]any{"Machine": w.stored("Machine", "m"), "MachineSet": w.stored("MachineSet", "s"), "MachineDeployment": w.stored("MachineDeployment", "d")}
	for _, o := range documents(t, "objects.yaml") {
		require.Subset(t, slices.Collect(maps.Keys(before[o.GetKind()])), slices.Collect(maps.Keys(leaves(o.Object, "", map[string]any{}))), "the older definitions lack fields of the objects")
	}

	w.define(ours(t), true)
	for kind, name := range map[string]string{"Machine": "m", "MachineSet": "s", "MachineDeployment": "d"} {
		require.Equal(t, before[kind], w.stored(kind, name), "the new definitions alone have changed something")
	}
	w.operate()
	operated := w.seen()

	w.define(older, false)
	changed := map[string][]string{
		"Machine": {
			"status/conditions", "status/currentStatus/lastUpdateTime", "status/currentStatus/phase", "status/currentStatus/timeoutActive",
			"status/lastOperation/description", "status/lastOperation/lastUpdateTime", "status/lastOperation/state", "status/lastOperation/type",
		},
		"MachineSet":        {"spec/replicas", "status/replicas"},
		"MachineDeployment": {"spec/rollbackTo/revision", "status/updatedReplicas"},
	}
	for kind, name := range map[string]string{"Machine": "m", "MachineSet": "s", "MachineDeployment": "d"} {
		require.Equal(t, changed[kind], differing(before[kind], w.stored(kind, name)), kind)
	}
	conditions := w.stored("Machine", "m")["status/conditions"].([]any)
	require.Equal(t, "2026-03-02T12:00:00Z", conditions[0].(map[string]any)["lastHeartbeatTime"], "a field of a condition that the library does not know is lost")

	// As long as no manager writes, nothing is lost at all.
	w.define(ours(t), true)
	require.Equal(t, operated, w.seen())

	// If an older manager writes, fields that only later releases know are lost, and our own
	// records stay.
	w.define(older, false)
	w.kubectl("annotate", "machines/m", "machinesets/s", "machinedeployments/d", "older=was-here")
	w.define(ours(t), true)
	m, s, d := get(w, w.machines, "m"), get(w, w.sets, "s"), get(w, w.deployments, "d")
	require.False(t, m.Spec.Config.DisableHealthTimeout)
	require.Equal(t, machine.InPlaceCandidate, m.Spec.InPlace)
	require.Equal(t, operated[0].(*machine.Machine).Status.ResumedAt, m.Status.ResumedAt)
	require.Zero(t, s.Spec.AutoPreserve)
	require.EqualValues(t, 1, s.Instructions.SurgeAllowance.Surge)
	require.Equal(t, 720*time.Hour, d.Spec.MaxAge)
	require.Equal(t, operated[2].(*deployment.Deployment).Status.ProgressedAt, d.Status.ProgressedAt)
}

// restore installs our definitions for the tests that follow. It is a cleanup, so it can't use the
// test's context.
func (w *world) restore() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(w, config.Install(ctx, server.Config))
}

// TestFieldsOfLaterReleasesSurvive: under definitions that have more fields than ours, the writes of a
// manager keep the values of these fields.
func TestFieldsOfLaterReleasesSurvive(t *testing.T) {
	w := newWorld(t)
	t.Cleanup(func() { w.restore() })
	later := ours(t)
	added := 0
	for _, d := range later {
		versions, _, err := unstructured.NestedSlice(d.Object, "spec", "versions")
		require.NoError(t, err)
		properties := versions[0].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)["properties"].(map[string]any)
		added += extend(properties["spec"]) + extend(properties["status"])
		require.NoError(t, unstructured.SetNestedSlice(d.Object, versions, "spec", "versions"))
	}
	require.Greater(t, added, 20)
	w.define(later, true)
	objects := documents(t, "objects.yaml")
	for _, o := range objects {
		w.awaitLater(o.GetKind())
		fill(o.Object["spec"])
		fill(o.Object["status"])
	}
	w.store(objects)
	count := func(kind, name string) (n int) {
		for path := range w.stored(kind, name) {
			if strings.HasSuffix(path, "/later") {
				n++
			}
		}
		return n
	}
	names := map[string]string{"Machine": "m", "MachineSet": "s", "MachineDeployment": "d"}
	had := map[string]int{}
	for kind, name := range names {
		had[kind] = count(kind, name)
		require.Greater(t, had[kind], 3, kind)
	}
	w.operate()
	for kind, name := range names {
		lost := 0
		if kind == "MachineDeployment" {
			lost = 1 // the one in rollbackTo, which operate removes
		}
		require.Equal(t, had[kind]-lost, count(kind, name), kind)
	}
}

// extend adds a field "later" to the schema of an object and to all object schemas in it. It returns
// how many fields it has added.
func extend(value any) (n int) {
	s, ok := value.(map[string]any)
	properties, _ := s["properties"].(map[string]any)
	if !ok || properties == nil {
		return 0
	}
	for _, inner := range properties {
		n += extend(inner)
	}
	properties["later"] = map[string]any{"type": "string"}
	return n + 1
}

// fill sets the field that extend has added, in an object and in all objects in it.
func fill(value any) {
	fields, ok := value.(map[string]any)
	if !ok {
		return
	}
	for name, inner := range fields {
		if name != "metadata" && name != "matchLabels" {
			fill(inner)
		}
	}
	fields["later"] = "kept"
}

// awaitLater waits until the server knows the field "later" of a kind.
func (w *world) awaitLater(kind string) {
	w.Helper()
	text := fmt.Sprintf(`{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":%q,"metadata":{"name":"probe"},"spec":{"later":"yes","template":{}}}`, kind)
	if kind == "Machine" {
		text = strings.Replace(text, `,"template":{}`, "", 1)
	}
	o := &unstructured.Unstructured{}
	require.NoError(w, o.UnmarshalJSON([]byte(text)))
	eventually(w.T, "the later definition to be in force", func() bool {
		_, err := w.dynamic.Resource(resource(plurals[kind])).Namespace(w.namespace).Create(w.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: "Strict"})
		return err == nil
	})
}
