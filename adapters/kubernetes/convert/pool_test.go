package convert_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"

	poolsv1alpha1 "github.com/millwright-go/millwright/adapters/kubernetes/api/pools/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/convert"
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

// Pools are one of the kinds of kinds_test.go.
var pools = &tested[*poolsv1alpha1.MachinePool, *machinepool.Pool]{
	convert.Pools(keys),
	func() *machinepool.Pool { return &machinepool.Pool{} }, func() *poolsv1alpha1.MachinePool { return &poolsv1alpha1.MachinePool{} },
}

// Invariants: P11
func FuzzPool(f *testing.F) {
	fuzz(f, pools,
		`{"metadata":{"name":"p","generation":3,"ownerReferences":[{"kind":"Cluster","name":"c","uid":"u","controller":true}]},
		"spec":{"replicas":-3,"minReadySeconds":-2147483648,"failureDomains":["","a","a"],"providerIDs":["b","","a"],
		"template":{"class":{"kind":"Odd"},"bootstrap":{"dataSecret":""},"nodeTemplate":{"taints":[{"key":"","effect":"Odd"}]}}},
		"status":{"phase":"Odd","since":"2026-03-01T12:00:00.5+02:00","observedGeneration":-1,"replicas":-1,
		"conditions":[{"type":"A","status":"True"},{"type":"A","status":"Odd"},{"type":"MillwrightRecord","message":"{"}],
		"leaving":[{"exit":"Odd"},{}],"nodeRefs":[{}],"lastOperation":{"call":"Odd","errorCode":"Odd","against":{"pool":-1}}}}`,
		`{"spec":{"replicas":0,"template":{"bootstrap":{"config":"c"}}},"status":{"neverCreated":true,"applied":{"failureDomains":[]},
		"lastOperation":{"errorCode":"NotFound","lastUpdateTime":"2026-03-01T12:00:00Z"}}}`)
}

// The fields of a pool are stored for years. The golden file has a full object (-update).
func TestPoolsAreSpelledAsBefore(t *testing.T) {
	doc := pools.store(t, map[string]any{}, pools.full())
	text, err := json.MarshalIndent(map[string]any{"spec": doc["spec"], "status": doc["status"]}, "", "  ")
	require.NoError(t, err)
	testkit.Golden(t, "testdata/pool.golden", string(text)+"\n")
}

// A missing value and zero differ for replicas and for the bootstrap secret.
func TestPoolsTellAbsentFromZero(t *testing.T) {
	none, empty := int32(0), ""
	for _, p := range []*machinepool.Pool{
		{}, {Spec: machinepool.Spec{Replicas: &none}},
		{Spec: machinepool.Spec{Template: machinepool.Template{Bootstrap: machinepool.Bootstrap{DataSecret: &empty}}}},
		{Spec: machinepool.Spec{RollingUpdate: &machinepool.RollingUpdate{}}},
	} {
		w, err := pools.Create(p)
		require.NoError(t, err)
		read, problems := pools.Read(w)
		require.Empty(t, problems)
		require.Equal(t, p, read)
	}
}

// Bounds of a rolling update that can't be read are reported with their field, and make the pool
// invalid.
func TestPoolsWithUnreadableBounds(t *testing.T) {
	surge, unavailable := intstr.FromString("-1"), intstr.FromString("a few")
	w := &poolsv1alpha1.MachinePool{}
	w.Namespace, w.Name = "fleet", "p"
	w.Spec.RollingUpdate = &poolsv1alpha1.MachinePoolRollingUpdate{MaxSurge: &surge, MaxUnavailable: &unavailable}
	p, problems := pools.Read(w)
	require.Len(t, problems, 2)
	require.EqualError(t, problems[0], "pool fleet/p: spec.rollingUpdate.maxSurge is negative")
	require.EqualError(t, problems[1], "pool fleet/p: spec.rollingUpdate.maxUnavailable is neither a whole number nor a whole percentage")
	p.Spec.ClusterName = "blue"
	require.ErrorContains(t, p.Validate(), "spec.rollingUpdate.maxSurge must not be negative")
	p.Spec.RollingUpdate.MaxSurge.Value = 2
	require.ErrorContains(t, p.Validate(), "spec.rollingUpdate.maxUnavailable must be a whole number")
	patch, err := pools.Update(w, p)
	require.NoError(t, err)
	require.JSONEq(t, `{"spec":{"clusterName":"blue","rollingUpdate":{"maxSurge":2}}}`, string(patch))
	p.Spec.RollingUpdate = nil
	patch, err = pools.Update(w, p)
	require.NoError(t, err)
	require.JSONEq(t, `{"spec":{"clusterName":"blue","rollingUpdate":null}}`, string(patch))
}

// An unknown code is reported, and stays as it is stored until there is a new one.
func TestPoolsWithAnUnknownCode(t *testing.T) {
	w := &poolsv1alpha1.MachinePool{}
	w.Namespace, w.Name = "fleet", "p"
	w.Status.LastOperation.ErrorCode = "Odd"
	p, problems := pools.Read(w)
	require.Len(t, problems, 1)
	require.ErrorIs(t, problems[0], object.ErrInvalid)
	require.EqualError(t, problems[0], "pool fleet/p: status.lastOperation.errorCode is unknown: Odd")
	require.Equal(t, codes.Unknown, p.Status.LastOperation.Code)
	p.Status.Phase = machinepool.PhaseFailed
	patch, err := pools.UpdateStatus(w, p)
	require.NoError(t, err)
	require.JSONEq(t, `{"status":{"phase":"Failed"}}`, string(patch))
}

// A list is written if any part of an entry differs, also if its length is the same.
func TestPoolListsAreCompared(t *testing.T) {
	full := pools.full()
	doc := pools.store(t, map[string]any{}, full)
	for name, change := range map[string]func(*machinepool.Status){
		"leaving since":   func(s *machinepool.Status) { s.Leaving[0].Since = begin.Add(time.Second) },
		"leaving exit":    func(s *machinepool.Status) { s.Leaving[0].Exit = machinepool.ExitReplace },
		"condition since": func(s *machinepool.Status) { s.Conditions[0].Since = begin.Add(time.Second) },
		"node":            func(s *machinepool.Status) { s.NodeRefs[0].UID = "other" },
		"node ready":      func(s *machinepool.Status) { s.NodeRefs[0].ReadySince = begin.Add(time.Hour) },
		"taint":           func(s *machinepool.Status) { s.Applied.Template.NodeTemplate.Taints[0].Effect = object.NoExecute },
	} {
		p := full.Clone()
		change(&p.Status)
		patch, err := pools.UpdateStatus(pools.typed(t, doc), p)
		require.NoError(t, err)
		require.NotEmpty(t, patch, name)
	}
}

// A pool that was read can be changed without a change of the stored object.
func TestPoolsShareNothing(t *testing.T) {
	doc := pools.store(t, map[string]any{}, pools.full())
	w := pools.typed(t, doc)
	before := w.DeepCopy()
	p, _ := pools.Read(w)
	p.Spec.ProviderIDs[0], p.Spec.FailureDomains[0], *p.Spec.Replicas, *p.Spec.Template.Bootstrap.DataSecret = "x", "x", 99, "x"
	p.Spec.Template.NodeTemplate.Labels["x"], p.Spec.Template.NodeTemplate.Annotations["x"] = "x", "x"
	p.Status.Applied.FailureDomains[0], p.Status.Applied.Template.NodeTemplate.Labels["x"] = "x", "x"
	require.Equal(t, before, w)
}
