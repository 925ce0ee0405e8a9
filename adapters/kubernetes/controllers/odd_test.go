package controllers_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
)

// fromYAML returns an object in the test's namespace, with the fields in body.
func (w *world) fromYAML(kind, name, body string) *unstructured.Unstructured {
	w.Helper()
	o := &unstructured.Unstructured{}
	require.NoError(w, yaml.Unmarshal([]byte(body), &o.Object))
	o.SetAPIVersion(v1alpha1.GroupVersion.String())
	o.SetKind(kind)
	o.SetNamespace(w.namespace)
	o.SetName(name)
	return o
}

// plainSpec is the spec of a valid deployment or set.
const (
	plainSpec = `{replicas: 1, selector: {matchLabels: {pool: NAME}}, template: {metadata: {labels: {pool: NAME}}, spec: {class: {kind: MachineClass, name: small}}}}`
)

// variant returns a valid deployment or set to which change, in YAML, was applied.
func (w *world) variant(kind, name, change string) *unstructured.Unstructured {
	w.Helper()
	o := w.fromYAML(kind, name, "spec: "+strings.ReplaceAll(plainSpec, "NAME", name))
	patch := map[string]any{}
	require.NoError(w, yaml.Unmarshal([]byte(change), &patch))
	overlay(o.Object, patch)
	return o
}

// overlay applies a merge patch to a document.
func overlay(doc, patch map[string]any) {
	for k, v := range patch {
		inner, ok := v.(map[string]any)
		have, both := doc[k].(map[string]any)
		switch {
		case v == nil:
			delete(doc, k)
		case ok && both:
			overlay(have, inner)
		default:
			doc[k] = v
		}
	}
}

// specValid returns the message of the condition SpecValid if it is False, else nothing.
func (w *world) specValid(o *unstructured.Unstructured) string {
	w.Helper()
	require.NoError(w, w.client.Get(w.Context(), client.ObjectKeyFromObject(o), o))
	field := "conditions"
	if o.GetKind() == "MachineSet" {
		field = "machineSetCondition"
	}
	list, _, err := unstructured.NestedSlice(o.Object, "status", field)
	require.NoError(w, err)
	for _, c := range list {
		if c := c.(map[string]any); c["type"] == "SpecValid" && c["status"] == "False" {
			return c["message"].(string)
		}
	}
	return ""
}

// TestOddSpecs: each invalid object has a condition and an event that name the invalid field. Other
// objects are still reconciled, and an object is reconciled once its field is corrected.
// Invariants: P11
func TestOddSpecs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.manage()
	w.class("small", "s")
	odd := map[*unstructured.Unstructured]string{}
	for name, c := range map[string]struct{ change, field string }{
		"strategy":    {`{spec: {strategy: {type: Odd}}}`, `spec.strategy.kind "Odd" is unknown`},
		"orchestrate": {`{spec: {strategy: {type: InPlaceUpdate, inPlaceUpdate: {orchestrationType: Sometimes}}}}`, `spec.strategy.orchestration "Sometimes" is unknown`},
		"surge":       {`{spec: {strategy: {rollingUpdate: {maxSurge: -3}}}}`, "spec.strategy.maxSurge must not be negative"},
		"surge-word":  {`{spec: {strategy: {rollingUpdate: {maxSurge: "12.5%"}}}}`, "spec.strategy.maxSurge must be a whole number"},
		"unavailable": {`{spec: {strategy: {rollingUpdate: {maxUnavailable: "-5%"}}}}`, "spec.strategy.maxUnavailable must not be negative"},
		"ready":       {`{spec: {minReadySeconds: -1}}`, "spec.minReady must not be negative"},
		"deadline":    {`{spec: {progressDeadlineSeconds: -1}}`, "spec.progressDeadline must not be negative"},
		"history":     {`{spec: {revisionHistoryLimit: -1}}`, "spec.revisionHistoryLimit must not be negative"},
		"all":         {`{spec: {selector: null}}`, "spec.selector must not be empty"},
		"operator":    {`{spec: {selector: {matchExpressions: [{key: pool, operator: Near, values: [a]}]}}}`, "spec.selector"},
		"labels":      {`{spec: {template: {metadata: {labels: {pool: other}}}}}`, "spec.template.labels must match spec.selector"},
		"classless":   {`{spec: {template: {spec: {class: {name: ""}}}}}`, "spec.template.spec.class.name must not be empty"},
		"timeout":     {`{spec: {template: {spec: {creationTimeout: -5m}}}}`, "spec.template.spec.config.creationTimeout must not be negative"},
	} {
		odd[w.variant("MachineDeployment", name, c.change)] = c.field
	}
	odd[w.variant("MachineSet", "set-all", `{spec: {selector: null}}`)] = "spec.selector must not be empty"
	odd[w.variant("MachineSet", "set-numbers", `{metadata: {annotations: {millwright-go/reservation: settled=9 reserved=3}}}`)] = "reservation holds numbers"
	odd[w.fromYAML("Machine", "classless-machine", `{spec: {}}`)] = "spec.class.name must not be empty"
	for o := range odd {
		require.NoError(t, w.client.Create(t.Context(), o), "%s", o.GetName())
	}
	w.deployment("web", "small", 2)
	w.eventually("the valid deployment", w.settled("web", 2))
	for o, field := range odd {
		w.eventually(o.GetName()+": "+field, func() bool { return strings.Contains(w.specValid(o), field) })
		w.eventually("an event about "+o.GetName(), w.hasEvent(o.GetName(), strings.Fields(field)[0]))
	}
	require.Len(t, w.machines(), 3, "an invalid deployment or set has machines")

	for o := range odd {
		if o.GetName() == "history" {
			w.merge(o, `{"spec":{"revisionHistoryLimit":1}}`)
			w.eventually("the corrected deployment", w.settled("history", 1))
			assert.Empty(t, w.specValid(o))
		}
	}
}

// TestToleratedSpecs: specs that are odd but valid are reconciled, with an event.
func TestToleratedSpecs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.manage()
	w.class("small", "s")
	w.class("large", "l")
	for name, c := range map[string]struct{ change, says string }{
		"huge":    {`{spec: {replicas: 2, strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 2147483647, maxUnavailable: 0}}}}`, ""},
		"percent": {`{spec: {replicas: 2, strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: "214748364700%"}}}}`, ""},
		"over":    {`{spec: {replicas: 2, strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: "300%"}}}}`, "more than 100% (300%)"},
		"zero":    {`{spec: {replicas: 2, strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 0}}}}`, "maxSurge and maxUnavailable are both 0"},
	} {
		o := w.variant("MachineDeployment", name, c.change)
		require.NoError(t, w.client.Create(t.Context(), o), name)
		if name == "percent" {
			w.eventually("a percentage that is no number", func() bool { return strings.Contains(w.specValid(o), "maxSurge") })
			continue
		}
		w.eventually(name, w.settled(name, 2))
		seen := w.census(len(w.machines()))
		w.merge(o, `{"spec":{"template":{"spec":{"class":{"name":"large"}}}}}`)
		w.eventually("the rollout of "+name, w.settled(name, 2))
		_, total := seen.spans()
		assert.LessOrEqual(t, total.most-total.least, 4, name)
		if c.says != "" {
			w.eventually("an event", w.hasEvent(name, c.says))
		}
		require.NoError(t, w.client.Delete(t.Context(), o))
		w.eventually("its machines to be gone", func() bool { return len(w.machines()) == 0 })
	}
}

// TestMissingClass: a machine without its class reports that, and can be deleted. As soon as the class
// exists, machines are created.
func TestMissingClass(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.manage()
	w.deployment("web", "nowhere", 1)
	w.eventually("a machine that reports the missing class", func() bool {
		list := w.machines()
		return len(list) == 1 && strings.Contains(list[0].Status.LastOperation.Description, "class nowhere does not exist")
	})
	name := w.names()[0]
	w.eventually("an event", w.hasEvent(name, "class nowhere does not exist"))
	require.NoError(t, w.client.Delete(t.Context(), &v1alpha1.Machine{ObjectMeta: w.meta(name)}))
	w.eventually("the machine to be gone, since it never had a VM", func() bool { return !strings.Contains(strings.Join(w.names(), " ")+" ", name+" ") })
	w.class("nowhere", "s")
	w.eventually("another machine to run", w.settled("web", 1))
}

// TestUnreadableRecords: records with invalid text are reported. Only the contents of these records
// are lost.
// Invariants: P11
func TestUnreadableRecords(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.class("small", "s")
	stop := w.manage()
	d := w.deployment("web", "small", 2)
	w.eventually("two machines", w.settled("web", 2))
	names := w.names()
	stop()
	for _, s := range w.sets() {
		w.merge(&s, `{"metadata":{"annotations":{"millwright-go/reservation":"{","millwright-go/handover":"[1]","millwright-go/deletion-candidates":"x","deployment.kubernetes.io/revision":"one"}}}`)
	}
	for _, m := range w.machines() {
		w.merge(&m, `{"metadata":{"annotations":{"millwright-go/in-place":"{"}}}`)
		require.NoError(t, w.client.SubResource("status").Patch(t.Context(), &m, client.RawPatch("application/merge-patch+json",
			[]byte(`{"status":{"conditions":[{"type":"MillwrightRecord","status":"True","message":"no record"}]}}`))))
		node := w.node(m.Name)
		w.merge(node, `{"metadata":{"annotations":{"millwright-go/applied":"}","millwright-go/drain":"}","node.machine.sapcloud.io/last-applied-anno-labels-taints":"}"}}}`)
	}
	w.merge(d, `{"metadata":{"annotations":{"millwright-go/max-age":"long","deployment.kubernetes.io/revision":"x"}}}`)
	w.manage()
	w.eventually("an event about the deployment", w.hasEvent("web", "metadata.annotations[millwright-go/max-age]"))
	w.eventually("an event about the set", w.hasEvent(w.sets()[0].Name, "metadata.annotations[millwright-go/reservation]"))
	w.eventually("an event about the machine's in-place annotation", w.hasEvent(names[0], "spec.inPlace is unknown"))
	for _, m := range w.machines() {
		w.merge(&m, `{"metadata":{"annotations":{"millwright-go/in-place":null}}}`)
	}
	w.eventually("an event about a machine's status", w.hasEvent(names[1], "status.conditions[MillwrightRecord]"))
	w.scale(d, 2, 3)
	w.eventually("three machines", w.settled("web", 3))
	assert.Subset(t, w.names(), names)
	require.Len(t, w.sets(), 1)
	require.NoError(t, w.client.Delete(t.Context(), d))
	w.eventually("all to be gone", func() bool { return len(w.machines()) == 0 && len(w.vms()) == 0 })
}

// TestValuesOfAnotherType: the API server refuses some values of a wrong type. Those that it accepts
// are reported, and other objects are still reconciled.
func TestValuesOfAnotherType(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.class("small", "s")
	for name, o := range map[string]*unstructured.Unstructured{
		"a quantity":     w.fromYAML("MachineClass", "odd", `{providerSpec: {}, nodeTemplate: {instanceType: a, region: b, zone: c, capacity: {cpu: plenty}}}`),
		"a number":       w.variant("MachineDeployment", "odd", `{spec: {replicas: three}}`),
		"a big number":   w.variant("MachineDeployment", "odd", `{spec: {replicas: 3000000000}}`),
		"a bound":        w.variant("MachineDeployment", "odd", `{spec: {strategy: {rollingUpdate: {maxSurge: 1.5}}}}`),
		"a selector":     w.variant("MachineDeployment", "odd", `{spec: {selector: {matchLabels: {pool: 5}}}}`),
		"no provider":    w.fromYAML("MachineClass", "odd", `{provider: simulated}`),
		"a taint":        w.variant("MachineDeployment", "odd", `{spec: {template: {spec: {nodeTemplate: {spec: {taints: [{key: 1}]}}}}}}`),
		"less than none": w.variant("MachineDeployment", "odd", `{spec: {replicas: -1}}`),
		"a set of less":  w.variant("MachineSet", "odd", `{spec: {replicas: -1}}`),
		"no deployment":  w.fromYAML("MachineDeployment", "odd", `{spec: {replicas: 1}}`),
	} {
		err := w.client.Create(t.Context(), o)
		require.True(t, apierrors.IsInvalid(err) || apierrors.IsBadRequest(err), "%s: %v", name, err)
	}
	odd := map[*unstructured.Unstructured]string{
		w.variant("MachineDeployment", "duration", `{spec: {template: {spec: {creationTimeout: soon}}}}`):                           "spec.template.spec.creationTimeout",
		w.variant("MachineDeployment", "node-label", `{spec: {template: {spec: {nodeTemplate: {metadata: {labels: {zone: 5}}}}}}}`): "spec.template.spec.nodeTemplate.metadata.labels.zone",
		w.variant("MachineSet", "annotation", `{spec: {template: {metadata: {annotations: {version: 5}}}}}`):                        "spec.template.metadata.annotations.version",
		w.fromYAML("Machine", "drain", `{metadata: {labels: {pool: x}}, spec: {class: {name: small}, drainTimeout: a while}}`):      "spec.drainTimeout",
	}
	for o := range odd {
		require.NoError(t, w.client.Create(t.Context(), o), "%s", o.GetName())
	}
	w.manage()
	w.deployment("web", "small", 2)
	w.eventually("the valid deployment", w.settled("web", 2))
	for o, field := range odd {
		w.eventually("an event about "+o.GetName(), w.hasEvent(o.GetName(), field))
	}
	w.eventually("the odd machine to run", func() bool {
		m := w.fromYAML("Machine", "drain", "{}")
		require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(m), m))
		phase, _, _ := unstructured.NestedString(m.Object, "status", "currentStatus", "phase")
		timeout, _, _ := unstructured.NestedString(m.Object, "spec", "drainTimeout")
		return phase == "Running" && timeout == "a while"
	})
}

// node returns the node of that name.
func (w *world) node(name string) client.Object {
	w.Helper()
	n := &unstructured.Unstructured{}
	n.SetAPIVersion("v1")
	n.SetKind("Node")
	require.NoError(w, w.client.Get(w.Context(), client.ObjectKey{Name: name}, n))
	return n
}
