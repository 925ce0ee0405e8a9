package convert_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// load reads the objects of a fleet of another manager from a file.
func load(t *testing.T, file string) (out struct {
	Deployment map[string]any
	Sets       []map[string]any
	Machines   []map[string]any
}) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	text, err = yaml.YAMLToJSON(text)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}

// When a fleet of another manager is taken over, nothing is created, resized or deleted. The set with
// the deployment's template is the new set, although the other manager computes hashes differently.
// Invariants: P4
func TestTakingOverAFleetRollsNothing(t *testing.T) {
	fleet := load(t, "testdata/fleet.yaml")
	d, problems := deployments.Read(deployments.typed(t, fleet.Deployment))
	require.Empty(t, problems)
	o := &deployment.Observation{Deployment: d}
	for _, doc := range fleet.Sets {
		s, problems := sets.Read(sets.typed(t, doc))
		require.Empty(t, problems)
		children := deployment.Children{Set: s}
		for _, doc := range fleet.Machines {
			m, problems := machines.Read(machines.typed(t, doc))
			require.Empty(t, problems)
			if m.OwnedBy(s.UID) {
				children.Machines = append(children.Machines, m)
			}
		}
		require.Len(t, children.Machines, int(s.Spec.Replicas))
		o.Sets = append(o.Sets, children)
	}
	require.Len(t, o.Sets, 2)
	pass(t, o, fleet.Deployment, fleet.Sets)
	assert.EqualValues(t, 7, o.Deployment.Revision)
	assert.EqualValues(t, 3, o.Deployment.Status.Updated)
	assert.EqualValues(t, 3, o.Deployment.Status.Available)
	// The other manager would still read the same revision.
	annotations := fleet.Deployment["metadata"].(map[string]any)["annotations"].(map[string]any)
	assert.Equal(t, "7", annotations["deployment.kubernetes.io/revision"])
}

// pass decides and writes to the stored documents until there is nothing more to write. The plans must
// not create, scale, delete or adopt sets.
func pass(t *testing.T, o *deployment.Observation, stored map[string]any, docs []map[string]any) {
	t.Helper()
	for range 20 {
		plan, err := deployment.Decide(o, deployment.DefaultPolicy(), begin.Add(time.Hour))
		require.NoError(t, err)
		assert.Empty(t, plan.Create, "%s", plan.Why)
		assert.Empty(t, plan.Scale, "%s", plan.Why)
		assert.Empty(t, plan.Delete, "%s", plan.Why)
		assert.Empty(t, plan.Adopt, "%s", plan.Why)
		switch write := plan.Write.(type) {
		case *deployment.Update:
			stored = deployments.store(t, stored, write.Deployment)
		case *deployment.UpdateStatus:
			d := o.Deployment.Clone()
			d.Status = write.Status
			stored = deployments.store(t, stored, d)
		case nil:
			if plan.ReadLive {
				o.Read = decision.Freshness{Began: begin}
				continue
			}
			if len(plan.Push) == 0 {
				return
			}
			for _, order := range plan.Push {
				require.True(t, push(t, o, docs, order.Set))
			}
			continue
		}
		o.Deployment, _ = deployments.Read(deployments.typed(t, stored))
	}
	t.Fatal("after 20 writes there is still something to write")
}

// push updates the stored document of a set.
func push(t *testing.T, o *deployment.Observation, docs []map[string]any, changed *machineset.Set) bool {
	for i := range o.Sets {
		if o.Sets[i].Set.UID == changed.UID {
			docs[i] = sets.store(t, docs[i], changed)
			o.Sets[i].Set, _ = sets.Read(sets.typed(t, docs[i]))
			return true
		}
	}
	return false
}

// terminating returns a machine in the middle of its deletion by another manager.
func terminating(description string) map[string]any {
	return map[string]any{
		"metadata": map[string]any{
			"name": "m", "namespace": "fleet", "uid": "u", "finalizers": []any{"machine.sapcloud.io/machine-controller-manager"},
			"creationTimestamp": "2026-03-01T10:00:00Z", "deletionTimestamp": "2026-03-01T12:00:00Z",
			"labels": map[string]any{"node": "n"},
		},
		"spec": map[string]any{"providerID": "vm", "class": map[string]any{"kind": "MachineClass", "name": "c"}},
		"status": map[string]any{
			"currentStatus": map[string]any{"phase": "Terminating", "lastUpdateTime": "2026-03-01T12:00:00Z"},
			"lastOperation": map[string]any{
				"type": "Delete", "state": "Processing", "description": description, "lastUpdateTime": "2026-03-01T12:00:01Z",
			},
		},
	}
}

// A deletion is continued from the stage that another manager has reached.
// Invariants: P26
func TestTakingOverADeletion(t *testing.T) {
	class := &machine.Class{}
	class.Namespace, class.Name = "fleet", "c"
	for description, want := range map[string]any{
		"Set machine status to termination. Now, getting VM Status": machine.FindNode{},
		"Drain successful. Initiate VM deletion":                    machine.DeleteVM{},
		"no stage at all":                                           &machine.UpdateStatus{}, // begins with the first stage
	} {
		m, problems := machines.Read(machines.typed(t, terminating(description)))
		require.Empty(t, problems)
		o := &machine.Observation{Machine: m, Class: class}
		if want == any(machine.DeleteVM{}) {
			o.Node = &machine.NodeAnswer{Name: "n", Read: decision.Freshness{Began: begin, Ended: begin}} // there is none any more
		}
		plan, err := machine.Decide(o, machine.DefaultPolicy(), begin.Add(time.Minute))
		require.NoError(t, err)
		if plan.Write != nil {
			assert.IsType(t, want, plan.Write, "%s: %s", description, plan.Why)
			continue
		}
		assert.IsType(t, want, plan.Effect, "%s: %s", description, plan.Why)
	}
}

// The record of an operation is void once another manager has written a later operation.
func TestRecordsOfAnEarlierOperationAreVoid(t *testing.T) {
	m := &machine.Machine{}
	m.Status.LastOperation = machine.Operation{
		Kind: machine.OperationDelete, State: machine.StateFailed, Stage: machine.StageInitiateDrain, Message: "Initiate VM deletion",
		Time: begin, Forced: true, Against: machine.Inputs{Machine: 3, Secret: "7"},
	}
	doc := machines.store(t, map[string]any{}, m)
	op := doc["status"].(map[string]any)["lastOperation"].(map[string]any)

	op["description"] = "Drain successful. Initiate VM deletion"
	read, problems := machines.Read(machines.typed(t, doc))
	require.Empty(t, problems)
	assert.Equal(t, machine.StageInitiateVMDeletion, read.Status.LastOperation.Stage)
	assert.False(t, read.Status.LastOperation.Forced)

	op["lastUpdateTime"] = "2026-03-01T12:00:01Z"
	read, _ = machines.Read(machines.typed(t, doc))
	assert.Equal(t, machine.Inputs{}, read.Status.LastOperation.Against)
}

// If another manager has moved a machine to the set that it was to be updated for, the request for the
// update is void. A later request counts.
func TestRequestsOfMovedMachinesAreVoid(t *testing.T) {
	target := deployment.DefaultPolicy().Keys.InPlaceTarget
	for owner, want := range map[string]machine.InPlaceRequest{"old": machine.InPlaceSelected, "new": machine.InPlaceNone} {
		doc := map[string]any{"metadata": map[string]any{
			"name":        "m",
			"annotations": map[string]any{"millwright-go/in-place": "Selected", target: "new"},
			"ownerReferences": []any{map[string]any{
				"apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "MachineSet", "name": owner, "uid": "u", "controller": true,
			}},
		}}
		m, problems := machines.Read(machines.typed(t, doc))
		require.Empty(t, problems)
		assert.Equal(t, want, m.Spec.InPlace, owner)
		m.Spec.InPlace, m.Annotations[target] = machine.InPlaceSelected, "newer"
		m, _ = machines.Read(machines.typed(t, machines.store(t, doc, m)))
		assert.Equal(t, machine.InPlaceSelected, m.Spec.InPlace, owner)
	}
}

// NeverCreated is void once another manager has tried to create a VM: otherwise that VM would be
// forgotten.
// Invariants: P16
func TestNeverCreatedIsVoidAfterAnotherManager(t *testing.T) {
	m := &machine.Machine{}
	m.Status.Phase, m.Status.NeverCreated = machine.PhaseCrashLoopBackOff, true
	m.Status.LastOperation = machine.Operation{Kind: machine.OperationCreate, State: machine.StateFailed, Message: "class c does not exist", Time: begin}
	doc := machines.store(t, map[string]any{}, m)
	read, problems := machines.Read(machines.typed(t, doc))
	require.Empty(t, problems)
	require.True(t, read.Status.NeverCreated)

	// Later writes of ours keep NeverCreated, and can reset it.
	read.Status.LastOperation.Time = begin.Add(time.Minute)
	doc = machines.store(t, doc, read)
	read, _ = machines.Read(machines.typed(t, doc))
	require.True(t, read.Status.NeverCreated)
	read.Status.NeverCreated = false
	doc = machines.store(t, doc, read)
	read, _ = machines.Read(machines.typed(t, doc))
	require.False(t, read.Status.NeverCreated)

	read.Status.NeverCreated = true
	doc = machines.store(t, doc, read)
	op := doc["status"].(map[string]any)["lastOperation"].(map[string]any)
	op["lastUpdateTime"], op["description"] = "2026-03-01T12:02:00Z", "Creating machine on cloud provider"
	read, _ = machines.Read(machines.typed(t, doc))
	assert.False(t, read.Status.NeverCreated)
}

// A preservation that another manager began continues until its end. If the stored expiry time is
// changed or removed, so is the end.
func TestPreservationIsTheStoredTime(t *testing.T) {
	doc := map[string]any{
		"metadata": map[string]any{"name": "m", "annotations": map[string]any{"node.machine.sapcloud.io/preserve": "when-failed"}},
		"status": map[string]any{"currentStatus": map[string]any{
			"phase": "Failed", "lastUpdateTime": "2026-03-01T11:00:00Z", "preserveExpiryTime": "2026-03-02T11:00:00Z",
		}},
	}
	m, _ := machines.Read(machines.typed(t, doc))
	p := &m.Status.Preservation
	assert.Equal(t, machine.Preservation{Request: "when-failed", Since: begin.Add(-time.Hour), Until: begin.Add(23 * time.Hour), TakenOver: true}, *p)
	assert.True(t, m.Preserved(begin))
	p.Drained = true
	doc = machines.store(t, doc, m)

	current := doc["status"].(map[string]any)["currentStatus"].(map[string]any)
	current["preserveExpiryTime"] = "2026-03-01T13:00:00Z"
	m, _ = machines.Read(machines.typed(t, doc))
	assert.Equal(t, machine.Preservation{Request: "when-failed", Since: begin.Add(-time.Hour), Until: begin.Add(time.Hour), Drained: true, TakenOver: true}, m.Status.Preservation)

	delete(current, "preserveExpiryTime")
	m, _ = machines.Read(machines.typed(t, doc))
	assert.Equal(t, machine.Preservation{Request: "when-failed", TakenOver: true}, m.Status.Preservation)
}

// If another manager's preservation has no phase with a time, it begins at the creation of the machine.
func TestPreservationWithoutAPhase(t *testing.T) {
	m, _ := machines.Read(machines.typed(t, map[string]any{
		"metadata": map[string]any{"creationTimestamp": "2026-03-01T12:00:00Z"},
		"status":   map[string]any{"currentStatus": map[string]any{"preserveExpiryTime": "2026-03-02T12:00:00Z"}},
	}))
	assert.Equal(t, begin, m.Status.Preservation.Since)
}

// Every odd value is reported, and stays as it is when other values are written.
func TestOddValuesAreNamedAndStay(t *testing.T) {
	doc := map[string]any{
		"metadata": map[string]any{"namespace": "fleet", "name": "d", "annotations": map[string]any{
			keys.Revision: "seven", keys.MaxAge: "long", keys.StopAfter: "some", keys.DeploymentChanges: "x",
			keys.DeploymentRecord: "expired=x",
		}},
		"spec": map[string]any{"strategy": map[string]any{
			"type": "Odd", "rollingUpdate": map[string]any{"maxSurge": "many", "maxUnavailable": "9%"},
		}},
		"status": map[string]any{
			"failedMachines": []any{map[string]any{"name": "m", "lastOperation": map[string]any{"errorCode": "Odd"}}},
		},
	}
	d, problems := deployments.Read(deployments.typed(t, doc))
	var texts []string
	for _, p := range problems {
		texts = append(texts, p.Error())
	}
	assert.ElementsMatch(t, []string{
		"deployment fleet/d: metadata.annotations[deployment.kubernetes.io/revision] can't be read",
		"deployment fleet/d: metadata.annotations[millwright-go/max-age] can't be read",
		"deployment fleet/d: metadata.annotations[millwright-go/stop-after] can't be read",
		"deployment fleet/d: spec.strategy.maxSurge is neither a whole number nor a whole percentage",
		"deployment fleet/d: metadata.annotations[millwright-go/deployment-record].expired can't be read",
		"deployment fleet/d: status.failedMachines.lastOperation.errorCode is unknown: Odd",
	}, texts)
	assert.Equal(t, deployment.StrategyKind("Odd"), d.Spec.Strategy.Kind)
	assert.Equal(t, rollout.Unreadable, d.Spec.Strategy.MaxSurge)
	assert.Error(t, d.Validate(deployment.DefaultPolicy().Keys))
	d.Spec.Replicas, d.Status.Ready, d.Status.Outdated = 4, 2, 3
	d.Spec.Strategy.MaxUnavailable.Value = 8
	patch, err := deployments.Update(deployments.typed(t, doc), d)
	require.NoError(t, err)
	assert.JSONEq(t, `{"spec":{"replicas":4,"strategy":{"rollingUpdate":{"maxUnavailable":"8%"}}}}`, string(patch))
	patch, err = deployments.UpdateStatus(deployments.typed(t, doc), d)
	require.NoError(t, err)
	assert.JSONEq(t, `{"status":{"readyReplicas":2}}`, string(patch))
	patch, err = deployments.UpdateNotes(deployments.typed(t, doc), d)
	require.NoError(t, err)
	assert.JSONEq(t, `{"metadata":{"annotations":{"millwright-go/deployment-record":"expired=x outdated=3"}}}`, string(patch))
}

// If the last known field of a status is removed, unknown fields stay: the patch must not set the whole
// status to null.
func TestAStatusWithoutKnownFieldsKeepsTheOthers(t *testing.T) {
	stored := deployments.typed(t, map[string]any{"status": map[string]any{"readyReplicas": 2, "later": true}})
	patch, err := deployments.UpdateStatus(stored, &deployment.Deployment{})
	require.NoError(t, err)
	assert.JSONEq(t, `{"status":{"readyReplicas":null}}`, string(patch))
}

// Changes of the spec that are in annotations raise the generation, and the observed generation can
// follow, although the API server does not count them.
func TestGenerationsCountAnnotationsToo(t *testing.T) {
	doc := map[string]any{"metadata": map[string]any{"name": "s", "generation": json.Number("3"), "resourceVersion": "8"}}
	s, _ := sets.Read(sets.typed(t, doc))
	require.EqualValues(t, 3, s.Generation)
	s.Status.ObservedGeneration = 3
	doc = sets.store(t, doc, s)
	assert.Equal(t, "3", fmt.Sprint(doc["status"].(map[string]any)["observedGeneration"]))

	s.Instructions.Marks.Avoid = true
	doc = sets.store(t, doc, s)
	s, _ = sets.Read(sets.typed(t, doc))
	assert.EqualValues(t, 4, s.Generation)
	assert.EqualValues(t, 3, s.Status.ObservedGeneration)

	s.Status.ObservedGeneration = 4
	doc = sets.store(t, doc, s)
	assert.Equal(t, "3", fmt.Sprint(doc["status"].(map[string]any)["observedGeneration"]), "must not exceed the server's generation, with which other programs compare it")

	s.Instructions.Marks.Avoid, s.Spec.Replicas = false, 2 // the server counts this change
	doc = sets.store(t, doc, s)
	doc["metadata"].(map[string]any)["generation"] = json.Number("4")
	s, _ = sets.Read(sets.typed(t, doc))
	assert.EqualValues(t, 5, s.Generation)
	assert.EqualValues(t, 4, s.Status.ObservedGeneration)

	s.Instructions.Reservation.Reserved = 9 // no part of the spec
	doc = sets.store(t, doc, s)
	s, _ = sets.Read(sets.typed(t, doc))
	assert.EqualValues(t, 5, s.Generation)
}

// A patch has the version that was read, and only the values that differ.
func TestPatchesAreSmallAndLocked(t *testing.T) {
	doc := terminating("Initiate node drain")
	doc["metadata"].(map[string]any)["resourceVersion"] = "41"
	w := machines.typed(t, doc)
	m, _ := machines.Read(w)
	m.Finalizers = nil
	m.Labels = map[string]string{"a": "b"}
	patch, err := machines.Update(w, m)
	require.NoError(t, err)
	assert.JSONEq(t, `{"metadata":{"resourceVersion":"41","finalizers":null,"labels":{"a":"b"}}}`, string(patch))
	assert.Equal(t, "n", w.Labels["node"], "the stored object is shared and must not change")
	m.Status.Phase = machine.PhaseFailed
	patch, err = machines.UpdateStatus(w, m)
	require.NoError(t, err)
	assert.JSONEq(t, `{"metadata":{"resourceVersion":"41"},"status":{"currentStatus":{"phase":"Failed"}}}`, string(patch))
	for phase, timed := range map[machine.Phase]bool{"Pending": true, "Unknown": true, "InPlaceUpdating": true, "Running": false} {
		m.Status.Phase = phase
		stored := machines.typed(t, machines.store(t, terminating(""), m))
		assert.Equal(t, timed, stored.Status.CurrentStatus.TimeoutActive, phase)
	}
}

// The owner is the controlling owner reference. Other owner references stay.
func TestOwners(t *testing.T) {
	doc := map[string]any{"metadata": map[string]any{"ownerReferences": []any{
		map[string]any{"apiVersion": "v1", "kind": "Secret", "name": "x", "uid": "1"},
		map[string]any{"apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "MachineSet", "name": "s", "uid": "2", "controller": true},
	}}}
	m, _ := machines.Read(machines.typed(t, doc))
	assert.Equal(t, &object.Owner{Kind: machineset.OwnerKind, Name: "s", UID: "2"}, m.Owner)
	m.Owner = &object.Owner{Kind: machineset.OwnerKind, Name: "t", UID: "3"}
	w := machines.typed(t, machines.store(t, doc, m))
	require.Len(t, w.OwnerReferences, 2)
	assert.Equal(t, "Secret", w.OwnerReferences[0].Kind)
	added := w.OwnerReferences[1]
	assert.Equal(t, "machine.sapcloud.io/v1alpha1 MachineSet t 3 true true",
		fmt.Sprint(added.APIVersion, " ", added.Kind, " ", added.Name, " ", added.UID, " ", *added.Controller, " ", *added.BlockOwnerDeletion))
	m.Owner = nil
	w = machines.typed(t, machines.store(t, doc, m))
	require.Len(t, w.OwnerReferences, 1)
}

// If an owner becomes the controlling one, its reference is replaced, so that there is still only one.
func TestOwnerBecomesController(t *testing.T) {
	doc := map[string]any{"metadata": map[string]any{"ownerReferences": []any{
		map[string]any{"apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "MachineSet", "name": "s", "uid": "2"},
	}}}
	m, _ := machines.Read(machines.typed(t, doc))
	require.Nil(t, m.Owner)
	m.Owner = &object.Owner{Kind: machineset.OwnerKind, Name: "s", UID: "2"}
	w := machines.typed(t, machines.store(t, doc, m))
	require.Len(t, w.OwnerReferences, 1)
	assert.True(t, *w.OwnerReferences[0].Controller)
}

// An odd code and description stay while the rest of the operation changes.
func TestOddOperationsStay(t *testing.T) {
	doc := terminating("Initiate VM deletion, once more")
	doc["status"].(map[string]any)["lastOperation"].(map[string]any)["errorCode"] = "Odd"
	m, problems := machines.Read(machines.typed(t, doc))
	require.Len(t, problems, 1)
	m.Status.LastOperation.State = machine.StateFailed
	patch, err := machines.UpdateStatus(machines.typed(t, doc), m)
	require.NoError(t, err)
	assert.JSONEq(t, `{"status":{"lastOperation":{"state":"Failed"}}}`, string(patch))
}

// A bound that is no number makes the deployment invalid.
func TestBoundsThatAreNoNumbers(t *testing.T) {
	doc := map[string]any{
		"metadata": map[string]any{"name": "d", "uid": "u"},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"a": "b"}},
			"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}, "spec": map[string]any{"class": map[string]any{"name": "c"}}},
			"strategy": map[string]any{"rollingUpdate": map[string]any{"maxSurge": "2"}},
		},
	}
	d, problems := deployments.Read(deployments.typed(t, doc))
	require.Empty(t, problems)
	require.NoError(t, d.Validate(deployment.DefaultPolicy().Keys))
	doc["spec"].(map[string]any)["strategy"] = map[string]any{"rollingUpdate": map[string]any{"maxSurge": "two"}}
	d, problems = deployments.Read(deployments.typed(t, doc))
	require.Len(t, problems, 1)
	assert.ErrorContains(t, d.Validate(deployment.DefaultPolicy().Keys), "maxSurge")
}

// A condition with the type of the record is not written: only this package writes records.
func TestRecordsAreNoConditionsOfTheLibrary(t *testing.T) {
	m := &machine.Machine{}
	m.Status.Conditions = []object.Condition{{Type: "MillwrightRecord", Message: "{}"}, {Type: "Ready", Status: object.True}}
	patch, err := machines.UpdateStatus(machines.empty(), m)
	require.NoError(t, err)
	conditions := parse(t, patch)["status"].(map[string]any)["conditions"].([]any)
	require.Len(t, conditions, 1)
	assert.Equal(t, "Ready", conditions[0].(map[string]any)["type"])
}

// A taint that is in the list twice stays as it is.
func TestTaintsThatComeTwice(t *testing.T) {
	doc := map[string]any{"spec": map[string]any{"taints": []any{
		map[string]any{"key": "a", "effect": "NoExecute", "timeAdded": "2026-03-01T12:00:00Z"},
		map[string]any{"key": "a", "effect": "NoExecute", "timeAdded": "2026-03-01T13:00:00Z"},
	}}}
	n, _ := nodes.Read(nodes.typed(t, doc))
	nodes.checkStored(t, doc, n)
}

// The record of an operation is void if the operation has another time, even if the description is the
// same.
func TestRecordsBelongToATime(t *testing.T) {
	m := &machine.Machine{}
	m.Status.LastOperation = machine.Operation{
		Kind: machine.OperationDelete, State: machine.StateFailed, Stage: machine.StageInitiateDrain, Code: codes.NotFound, Time: begin, Forced: true,
	}
	doc := machines.store(t, map[string]any{}, m)
	op := doc["status"].(map[string]any)["lastOperation"].(map[string]any)
	assert.Equal(t, "NotFound", op["errorCode"])
	op["lastUpdateTime"] = "2026-03-01T12:00:01.7Z"
	read, _ := machines.Read(machines.typed(t, doc))
	assert.False(t, read.Status.LastOperation.Forced)
	assert.Equal(t, begin.Add(time.Second), read.Status.LastOperation.Time, "times have whole seconds")

	m.Status.LastOperation.Code = codes.OK
	doc = machines.store(t, doc, m)
	assert.NotContains(t, doc["status"].(map[string]any)["lastOperation"], "errorCode")
}

// If another manager has changed the length of the list of failed machines, the records of its entries
// are void.
func TestRecordsOfSummariesBelongToTheList(t *testing.T) {
	s := &machineset.Set{}
	s.Status.Failed = []machineset.FailedMachine{{Name: "a", LastOperation: machine.Operation{Forced: true}}}
	doc := sets.store(t, map[string]any{}, s)
	status := doc["status"].(map[string]any)
	status["failedMachines"] = append(status["failedMachines"].([]any), map[string]any{"name": "b"})
	read, problems := sets.Read(sets.typed(t, doc))
	require.Empty(t, problems)
	require.Len(t, read.Status.Failed, 2)
	assert.False(t, read.Status.Failed[0].LastOperation.Forced)
}

// An object that was read shares no memory with the stored one. Labels and annotations that are fields
// of the library are neither read nor written as labels and annotations.
func TestReadingSharesNothing(t *testing.T) {
	w := machines.typed(t, terminating(""))
	w.Finalizers = []string{"a", machine.Finalizer}
	m, _ := machines.Read(w)
	m.RemoveFinalizer("a")
	assert.Equal(t, []string{"a", machine.Finalizer}, w.Finalizers)
	m, _ = machines.Read(w)
	assert.NotContains(t, m.Labels, "node")
	m.Labels = map[string]string{"node": "other"}
	m.Annotations = map[string]string{keys.InPlace: "x", "theirs": "y"}
	patch, err := machines.Update(w, m)
	require.NoError(t, err)
	assert.JSONEq(t, `{"metadata":{"annotations":{"theirs":"y"}}}`, string(patch))
}
