package convert_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/adapters/kubernetes/convert"
	"github.com/millwright-go/millwright/machine"
)

// stageForOthers returns the stage of a deletion that other managers find in a description: that of the
// first marker, in their order, that is anywhere in it.
func stageForOthers(description string) machine.Stage {
	stages, texts := convert.DeletionMarkers()
	for i, text := range texts {
		if strings.Contains(description, text) {
			return stages[i]
		}
	}
	return ""
}

// Stages and messages are read from the descriptions that other managers write.
func TestStagesOfOtherManagers(t *testing.T) {
	for _, c := range []struct {
		kind        machine.OperationKind
		state       machine.OperationState
		description string
		stage       machine.Stage
		message     string
	}{
		{"Delete", "Processing", "Set machine status to termination. Now, getting VM Status", "GetVMStatus", ""},
		{"Delete", "Failed", "Error occurred with decoding machine error status while getting VM status, aborting with retry. Set machine status to termination. Now, getting VM Status",
			"GetVMStatus", "Error occurred with decoding machine error status while getting VM status, aborting with retry."},
		{"Delete", "Processing", "Initiate node drain", "InitiateDrain", ""},
		{"Delete", "Failed", "Drain failed due to - timeout. Will retry in next sync. Initiate node drain", "InitiateDrain", "Drain failed due to - timeout. Will retry in next sync."},
		{"Delete", "Processing", "Force Drain successful. Delete Volume Attachments", "DeleteVolumeAttachments", "Force Drain successful."},
		{"Delete", "Processing", "Drain successful. Initiate VM deletion", "InitiateVMDeletion", "Drain successful."},
		{"Delete", "Processing", "VM deletion was successful. Initiate node object deletion", "InitiateNodeDeletion", "VM deletion was successful."},
		{"Delete", "Processing", "VM deletion was successful. Remove node finalizers", "InitiateNodeDeletion", "VM deletion was successful."},
		{"Delete", "Processing", "Label \"node\" absent. Initiate machine object finalizer removal", "InitiateFinalizerRemoval", "Label \"node\" absent."},
		{"Delete", "Processing", "Initiate node drain, as before", "InitiateDrain", "Initiate node drain, as before"},
		{"Delete", "Processing", "something else", "", "something else"},
		{"Create", "Processing", "Creating machine on cloud provider", "CreateVM", ""},
		{"Create", "Failed", "Provider error: x. Initialize VM Instance", "InstanceInitialization", "Provider error: x."},
		{"Create", "Successful", "Machine m successfully joined the cluster", "Initialized", "Machine m successfully joined the cluster"},
		{"HealthCheck", "Processing", "Initiate VM deletion", "", "Initiate VM deletion"},
		{"DrainNode", "Successful", "Node drain successful. Node is ready for update", "ReadyForUpdate", ""},
		{"Odd", "", "Initiate VM deletion", "", "Initiate VM deletion"},
	} {
		stage, message := convert.ParseStage(c.kind, c.state, c.description)
		assert.Equal(t, c.stage, stage, c.description)
		assert.Equal(t, c.message, message, c.description)
		if c.kind == machine.OperationDelete {
			assert.Equal(t, c.stage, stageForOthers(c.description))
		}
	}
}

// In the descriptions that this package writes, other managers and this package find the stage of a
// deletion, whatever the message is.
func TestOthersFindOurStages(t *testing.T) {
	stages, texts := convert.DeletionMarkers()
	words := append([]string{"", " ", "boom", "initiate", "Initiate VM deletion."}, texts...)
	rapid.Check(t, func(t *rapid.T) {
		op := &machine.Operation{
			Kind:    machine.OperationDelete,
			State:   machine.StateProcessing,
			Stage:   rapid.SampledFrom(stages).Draw(t, "stage"),
			Message: strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 4).Draw(t, "message"), " "),
		}
		description := convert.FormatStage(op)
		require.Equal(t, op.Stage, stageForOthers(description), description)
		stage, _ := convert.ParseStage(op.Kind, op.State, description)
		require.Equal(t, op.Stage, stage)
	})
}

// For a plain message, stage and message can be read from the description, so that no record is needed.
func TestDescriptionsTellStagesExactly(t *testing.T) {
	for kind, stages := range map[machine.OperationKind][]machine.Stage{
		machine.OperationDelete: {"GetVMStatus", "InitiateDrain", "DeleteVolumeAttachments", "InitiateVMDeletion", "InitiateNodeDeletion", "InitiateFinalizerRemoval"},
		machine.OperationCreate: {"CreateVM", "InstanceInitialization", "Initialized"},
		machine.OperationInPlaceUpdate: {
			"", "CandidateForUpdate", "SelectedForUpdate", "ReadyForUpdate", "UpdateSuccessful", "UpdateFailed", "InService",
		},
	} {
		for _, stage := range stages {
			m := &machine.Machine{}
			m.Status.LastOperation = machine.Operation{Kind: kind, State: machine.StateFailed, Stage: stage, Message: "it failed: quota", Time: begin}
			doc := machines.store(t, map[string]any{}, m)
			assert.NotContains(t, doc["status"], "conditions", "%s %s", kind, stage)
		}
	}
}

// While a VM is being created, the stored machine has no phase. Otherwise another manager that takes
// over would delete the VM as an orphan. The phase is stored once the provider ID is stored.
// Invariants: P12
func TestNoPhaseDuringACreate(t *testing.T) {
	m := &machine.Machine{}
	m.Name, m.Namespace = "web-1", "fleet"
	doc := machines.document(t, machines.typed(t, map[string]any{"metadata": map[string]any{"name": "web-1", "namespace": "fleet"}}))
	m.Status.Phase = machine.PhasePending
	m.Status.LastOperation = machine.Operation{
		Kind: machine.OperationCreate, State: machine.StateProcessing, Stage: machine.StageCreateVM, Message: "about to create the VM",
	}
	doc = machines.store(t, doc, m)
	stored := machines.typed(t, doc)
	assert.Empty(t, stored.Status.CurrentStatus.Phase)
	assert.False(t, stored.Status.CurrentStatus.TimeoutActive)

	stored.Spec.ProviderID = "cloud://vm-1"
	read, _ := machines.Read(stored)
	assert.Equal(t, machine.PhaseNew, read.Status.Phase, "the next pass writes phase Pending")
	read.Status.Phase = machine.PhasePending
	doc = machines.store(t, machines.document(t, stored), read)
	assert.EqualValues(t, "Pending", machines.typed(t, doc).Status.CurrentStatus.Phase)

	m.Status.Phase, m.Status.LastOperation.State = machine.PhaseCrashLoopBackOff, machine.StateFailed
	doc = machines.store(t, doc, m)
	assert.EqualValues(t, "CrashLoopBackOff", machines.typed(t, doc).Status.CurrentStatus.Phase)
}
