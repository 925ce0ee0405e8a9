package convert

import (
	"strings"

	"github.com/millwright-go/millwright/machine"
)

// marker is the text in the description of an operation that names its stage.
type marker struct {
	stage machine.Stage
	text  string
}

// The markers of deletion are in the order in which other managers look for them: if a description has
// several, the first in this list counts. The last one is only read: older managers write it.
var deletionMarkers = []marker{
	{machine.StageGetVMStatus, "Set machine status to termination. Now, getting VM Status"},
	{machine.StageInitiateDrain, "Initiate node drain"},
	{machine.StageDeleteVolumeAttachments, "Delete Volume Attachments"},
	{machine.StageInitiateVMDeletion, "Initiate VM deletion"},
	{machine.StageInitiateNodeDeletion, "Initiate node object deletion"},
	{machine.StageInitiateFinalizerRemoval, "Initiate machine object finalizer removal"},
	{machine.StageInitiateNodeDeletion, "Remove node finalizers"},
}

// Other managers know the first marker of a creation. For descriptions without a marker, see
// creationStage.
var creationMarkers = []marker{
	{machine.StageInstanceInitialization, "Initialize VM Instance"},
	{machine.StageInitialized, "The VM is initialized"},
}

// Other managers know the first marker of an update in place.
var updateMarkers = []marker{
	{machine.StageReady, "Node drain successful. Node is ready for update"},
	{machine.StageCandidate, "The machine is a candidate for an update"},
	{machine.StageSelected, "The machine is selected for an update"},
	{machine.StageUpdateSuccessful, "The update was successful"},
	{machine.StageUpdateFailed, "The update failed"},
	{machine.StageInService, "The machine is in service again"},
}

func stageMarkers(kind machine.OperationKind) []marker {
	switch kind {
	case machine.OperationDelete:
		return deletionMarkers
	case machine.OperationCreate:
		return creationMarkers
	case machine.OperationUpdate, machine.OperationInPlaceUpdate, machine.OperationDrainNode, machine.OperationHealthCheck:
		return updateMarkers
	}
	return nil
}

// creating is the description while a VM is being created, as other managers write it. Nothing else
// shows the creation, because phase and provider ID are still empty.
const creating = "Creating machine on cloud provider"

// formatStage returns the description of an operation: its message, and the marker of its stage. A
// marker within the message gets a small first letter, so that it is none.
func formatStage(op *machine.Operation) string {
	if op.Kind == machine.OperationCreate && op.State == machine.StateProcessing && op.Stage == machine.StageCreateVM && op.Message == "" {
		return creating
	}
	markers := stageMarkers(op.Kind)
	message := op.Message
	for _, m := range markers {
		message = strings.ReplaceAll(message, m.text, strings.ToLower(m.text[:1])+m.text[1:])
	}
	for _, m := range markers {
		if m.stage != op.Stage {
			continue
		}
		if message == "" {
			return m.text
		}
		return message + " " + m.text
	}
	return message
}

// parseStage returns the stage and the message of a description. It is the reverse of formatStage as
// far as possible: any program may have written the description.
func parseStage(kind machine.OperationKind, state machine.OperationState, description string) (machine.Stage, string) {
	for _, m := range stageMarkers(kind) {
		if !strings.Contains(description, m.text) {
			continue
		}
		if description == m.text {
			return m.stage, ""
		}
		return m.stage, strings.TrimSuffix(description, " "+m.text)
	}
	if kind == machine.OperationCreate {
		if state == machine.StateProcessing && description == creating {
			description = ""
		}
		return creationStage(state), description
	}
	return machine.StageNone, description
}

// creationStage returns the stage of a creation without a marker. If it was successful, the VM is
// initialized. Otherwise a create call may have been made, whose result has to be found out.
func creationStage(state machine.OperationState) machine.Stage {
	if state == machine.StateSuccessful {
		return machine.StageInitialized
	}
	return machine.StageCreateVM
}
