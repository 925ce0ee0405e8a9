package convert_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/convert"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// A taint or condition that stays keeps the fields that the library does not know.
func TestTaintsAndConditionsKeepWhatIsUnknown(t *testing.T) {
	added, beat := metav1.NewTime(begin), metav1.NewTime(begin.Add(time.Minute))
	w := &corev1.Node{}
	w.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoExecute, TimeAdded: &added}, {Key: "b"}}
	w.Status.Conditions = []corev1.NodeCondition{
		{Type: "Ready", Status: "True", LastHeartbeatTime: beat, LastTransitionTime: added},
		{Type: "Disk", Status: "False", LastHeartbeatTime: beat, LastTransitionTime: added},
	}
	n, problems := nodes.Read(w)
	require.Empty(t, problems)
	n.Taints = append(n.Taints[:1:1], object.Taint{Key: "c"})
	n.Conditions[1] = object.Condition{Type: "Disk", Status: object.True, Since: begin.Add(time.Hour)}
	text, err := json.Marshal(w)
	require.NoError(t, err)
	after := nodes.typed(t, nodes.store(t, parse(t, text), n))
	require.Len(t, after.Spec.Taints, 2)
	require.NotNil(t, after.Spec.Taints[0].TimeAdded)
	assert.Equal(t, begin, after.Spec.Taints[0].TimeAdded.UTC())
	assert.Nil(t, after.Spec.Taints[1].TimeAdded)
	require.Len(t, after.Status.Conditions, 2)
	assert.Equal(t, beat.UTC(), after.Status.Conditions[0].LastHeartbeatTime.UTC())
	assert.Equal(t, begin.Add(time.Hour), after.Status.Conditions[1].LastHeartbeatTime.UTC(), "a changed condition gets the time of its change")
}

// Quantities keep their stored notation. An invalid quantity is refused.
func TestQuantities(t *testing.T) {
	doc := map[string]any{"nodeTemplate": map[string]any{"capacity": map[string]any{"cpu": "1000m", "memory": "1024Mi"}}, "providerSpec": map[string]any{}}
	c, _ := classes.Read(classes.typed(t, doc))
	assert.Equal(t, map[string]string{"cpu": "1", "memory": "1Gi"}, c.NodeTemplate.Capacity)
	c.NodeTemplate.Capacity["cpu"] = "2"
	patch, err := classes.Update(classes.typed(t, doc), c)
	require.NoError(t, err)
	p := parse(t, patch)["nodeTemplate"].(map[string]any)
	assert.Equal(t, map[string]any{"cpu": "2"}, p["capacity"])
	c.NodeTemplate.VirtualCapacity = map[string]string{"x": "many"}
	c.Name = "small"
	patch, err = classes.Update(classes.typed(t, doc), c)
	assert.Nil(t, patch)
	assert.EqualError(t, err, "class small can't be written: nodeTemplate.virtualCapacity[x] is no quantity")
	assert.ErrorIs(t, err, object.ErrInvalid)
}

// A provider spec with a field that is null is refused, because a merge patch can't write it. Invalid
// JSON is refused, too.
func TestProviderSpecsThatCannotBeWritten(t *testing.T) {
	for spec, ok := range map[string]bool{
		`{"a":{"b":null}}`: false, `{"a":[null]}`: true, `{"a":`: false, `{}`: true, "": true,
	} {
		c := &machine.Class{ProviderSpec: []byte(spec)}
		_, err := classes.Create(c)
		assert.Equal(t, ok, err == nil, "%s: %v", spec, err)
	}
}

// A new object has all fields but its status and what the server sets.
func TestCreate(t *testing.T) {
	m := &machine.Machine{}
	m.Namespace, m.Name, m.UID, m.Version, m.Generation = "fleet", "m", "mine", "7", 9
	m.Spec.NodeName = "n"
	m.Status.Phase = machine.PhaseRunning
	m.AddFinalizer(machine.Finalizer)
	w, err := machines.Create(m)
	require.NoError(t, err)
	want := &v1alpha1.Machine{}
	want.Namespace, want.Name, want.Finalizers = "fleet", "m", []string{machine.Finalizer}
	want.Labels = map[string]string{"node": "n"}
	assert.Equal(t, want, w)
}

// Bounds that are not set have the defaults of the established kinds.
func TestBoundsThatAreNotSet(t *testing.T) {
	one := rollout.IntOrPercent{Value: 1}
	for kind, want := range map[string]rollout.IntOrPercent{"": one, "RollingUpdate": one, "InPlaceUpdate": {}} {
		w := &v1alpha1.MachineDeployment{}
		w.Spec.Strategy.Type = v1alpha1.MachineDeploymentStrategyType(kind)
		d, _ := deployments.Read(w)
		assert.Equal(t, want, d.Spec.Strategy.MaxSurge, kind)
		assert.Equal(t, want, d.Spec.Strategy.MaxUnavailable, kind)
		assert.Equal(t, deployment.Automatic, d.Spec.Strategy.Orchestration)
	}
}

// Two bounds of 0 are not the same as no strategy: one machine may be unavailable.
func TestBoundsOfZero(t *testing.T) {
	doc := map[string]any{"spec": map[string]any{"strategy": map[string]any{"rollingUpdate": map[string]any{"maxSurge": 0, "maxUnavailable": 0}}}}
	d, _ := deployments.Read(deployments.typed(t, doc))
	assert.Equal(t, rollout.Bounds{Unavailable: 1}, d.Spec.Strategy.Bounds(10))
	patch, err := deployments.Update(deployments.typed(t, doc), d)
	require.NoError(t, err)
	assert.Empty(t, string(patch))
}

// When the kind of a strategy changes, the bounds are written to the field of the new kind.
func TestBoundsFollowTheStrategy(t *testing.T) {
	doc := map[string]any{"spec": map[string]any{"strategy": map[string]any{
		"type": "InPlaceUpdate", "inPlaceUpdate": map[string]any{"maxSurge": "20%", "orchestrationType": "Auto"}, "rollingUpdate": map[string]any{"maxSurge": 3},
	}}}
	d, _ := deployments.Read(deployments.typed(t, doc))
	assert.Equal(t, deployment.Strategy{Kind: deployment.InPlaceUpdate, MaxSurge: rollout.IntOrPercent{Value: 20, Percent: true}}, d.Spec.Strategy)
	d.Spec.Strategy.Kind = deployment.RollingUpdate
	patch, err := deployments.Update(deployments.typed(t, doc), d)
	require.NoError(t, err)
	assert.JSONEq(t, `{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"20%","maxUnavailable":0}}}}`, string(patch))
}

// An empty list of node conditions is not the same as none: it does not mean the defaults.
func TestNodeConditionsOfAMachine(t *testing.T) {
	for text, want := range map[string][]string{"": {}, " , ": {}, "A, B,": {"A", "B"}} {
		w := &v1alpha1.Machine{}
		w.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{NodeConditions: &text}
		m, _ := machines.Read(w)
		assert.Equal(t, want, m.Spec.Config.NodeConditions)
		assert.NotNil(t, m.Spec.Config.NodeConditions)
		m.Spec.Config.NodeConditions = nil
		patch, err := machines.Update(w, m)
		require.NoError(t, err)
		assert.JSONEq(t, `{"spec":{"nodeConditions":null}}`, string(patch))
	}
}

// No error or text shows the data of a secret.
func TestErrorsShowNoSecret(t *testing.T) {
	s := &machine.Secret{Data: map[string][]byte{"password": []byte("hunter2")}}
	s.Name = "s"
	w, err := secrets.Create(s)
	require.NoError(t, err)
	read, problems := secrets.Read(w)
	assert.Equal(t, s.Data, read.Data)
	assert.NotContains(t, fmt.Sprint(problems, err, read), "hunter2")
	read.Data["password"][0] = 'b'
	assert.Equal(t, "hunter2", string(w.Data["password"]), "the object that was read shares memory with the stored one")
}

// The texts of records are stored for a long time. If a field is renamed in the library, it must still
// be read by its old name.
func TestSpellingOfRecords(t *testing.T) {
	for want, value := range map[string]any{
		"":                     new(time.Duration),
		"720h0m0s":             pointer(720 * time.Hour),
		"Selected":             pointer(machine.InPlaceSelected),
		"7":                    pointer(int64(7)),
		"2026-03-01T12:00:00Z": pointer(begin.Add(time.Millisecond)),
		"code=NotFound message=\"it's gone, or \\\"never was\\\"\" time=2026-03-01T12:00:00Z": &machine.Operation{Code: 5, Time: begin, Message: `it's gone, or "never was"`},
		`a,"b c"`:           &[]string{"a", "b c"},
		"0.name=a 1.name=b": &[]machineset.DeletionCandidate{{Name: "a"}, {Name: "b"}},
		"0={} 1.name=b":     &[]machineset.DeletionCandidate{{}, {Name: "b"}},
		"{}":                pointer(&machine.DrainRecord{}),
		`since=2026-03-01T12:00:00Z turn.pod.name=p turn.uid=u turn.volumes=v,""`: &machine.DrainRecord{
			Since: begin, Turn: machine.DrainTurn{Pod: object.Key{Name: "p"}, UID: "u", Volumes: []string{"v", ""}},
		},
	} {
		text, err := convert.Encode(value)
		require.NoError(t, err)
		assert.Equal(t, want, text)
	}
	for text, value := range map[string]any{
		"x": new(time.Duration), "y": new(time.Time), "z": new(int64), "99999999999": new(int32), "[": &machine.Operation{},
		"word": &machine.Operation{}, "message": &machine.Operation{}, "message=": &machine.Operation{}, "message=a,b": &machine.Operation{},
		"message=\"a": &machine.Operation{}, "message=a=b": &machine.Operation{}, "message.x=a": &machine.Operation{}, "message=a message=b": &machine.Operation{},
		"against.class=1 against=2": &machine.Operation{}, "against=2 against.class=1": &machine.Operation{}, "forced=maybe": &machine.Operation{},
		"against..class=1": &machine.Operation{}, "forced=true,": &machine.Operation{}, "1.name=b": &[]machineset.DeletionCandidate{},
		"name=b": &[]machineset.DeletionCandidate{}, `{"a b":1}`: &machine.Operation{}, "time=now": &machine.Operation{}, `message="a"b`: &machine.Operation{},
	} {
		assert.Error(t, convert.Decode(text, value), text)
		encoded, err := convert.Encode(value)
		require.NoError(t, err)
		assert.Empty(t, encoded, "a text that can't be read has changed the value")
	}
}

func pointer[T any](v T) *T { return &v }

// No two keys are the same: otherwise two values would be stored in one place.
func TestKeysAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, key := range []string{
		keys.NodeLabel, keys.Revision, keys.Preserve, keys.LastApplied, keys.LastAppliedCapacity, keys.SpecChanges, keys.InPlace, keys.Marks,
		keys.NodePreserve, keys.DeploymentChanges, keys.SetRecord, keys.DeploymentRecord,
		keys.Reservation, keys.Handover, keys.DeletionCandidates, keys.MaxAge, keys.StopAfter, keys.PreviousClasses, keys.SurgeAllowance, keys.Applied, keys.Drain,
		keys.KeepNode, keys.KeptByUs, keys.AvoidTaint,
	} {
		assert.NotEmpty(t, key)
		assert.False(t, seen[key], key)
		seen[key] = true
	}
}

// If there are more seconds than a field can hold, it gets the largest value that it can hold.
func TestSecondsAreBounded(t *testing.T) {
	s := &machineset.Set{}
	for d, want := range map[time.Duration]int32{1 << 62: 2147483647, -1 << 62: -2147483648, 90 * time.Second: 90, 1500 * time.Millisecond: 1} {
		s.Spec.MinReady = d
		w, err := sets.Create(s)
		require.NoError(t, err)
		assert.Equal(t, want, w.Spec.MinReadySeconds)
	}
}

// A size of zero is written: without it, the scale subresource of an object fails.
func TestZeroReplicasAreWritten(t *testing.T) {
	stored := sets.typed(t, map[string]any{"spec": map[string]any{"replicas": 3, "minReadySeconds": 5}})
	s, _ := sets.Read(stored)
	s.Spec.Replicas = 0
	patch, err := sets.Update(stored, s)
	require.NoError(t, err)
	assert.JSONEq(t, `{"spec":{"replicas":0}}`, string(patch))
	d, err := deployments.Create(&deployment.Deployment{})
	require.NoError(t, err)
	text, err := json.Marshal(d.Spec)
	require.NoError(t, err)
	assert.Contains(t, string(text), `"replicas":0`)
	patch, err = sets.Update(&v1alpha1.MachineSet{}, &machineset.Set{})
	require.NoError(t, err)
	assert.Nil(t, patch, "a size that is not set must not be written without a change")
}
