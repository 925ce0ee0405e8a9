package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/test/fuzzing"
)

// form reads bytes as observations of machines. The corpus counts on the order of the words.
var form = fuzzing.Form{Now: epoch.Truncate(time.Second), Words: []string{
	"", ours, node, "small", "p://1", "v1", "a", "b", "true", "false", "other",
	string(machine.PhasePending), string(machine.PhaseAvailable), string(machine.PhaseRunning), string(machine.PhaseUnknown),
	string(machine.PhaseFailed), string(machine.PhaseCrashLoopBackOff), string(machine.PhaseTerminating),
	string(machine.PhaseInPlaceUpdating), string(machine.PhaseInPlaceUpdateSuccessful), string(machine.PhaseInPlaceUpdateFailed),
	string(machine.StageCreateVM), string(machine.StageInstanceInitialization), string(machine.StageInitialized),
	string(machine.StageGetVMStatus), string(machine.StageInitiateDrain), string(machine.StageDeleteVolumeAttachments),
	string(machine.StageInitiateVMDeletion), string(machine.StageInitiateNodeDeletion), string(machine.StageInitiateFinalizerRemoval),
	string(machine.StageGone), string(machine.StageCandidate), string(machine.StageSelected), string(machine.StageReady),
	string(machine.StageUpdateSuccessful), string(machine.StageUpdateFailed), string(machine.StageInService), string(machine.StageUpdateVM), string(machine.StageSyncNode),
	string(machine.OperationCreate), string(machine.OperationUpdate), string(machine.OperationInPlaceUpdate),
	string(machine.OperationHealthCheck), string(machine.OperationDrainNode), string(machine.OperationDelete),
	string(machine.StateProcessing), string(machine.StateFailed), string(machine.StateSuccessful),
	string(machine.InPlaceCandidate), string(machine.InPlaceWaiting), string(machine.InPlaceSelected),
	machine.Finalizer, machine.NodeFinalizer, machine.NodeReady, machine.NodeReadonlyFilesystem, machine.NodeTerminating,
	machine.NodeInPlaceUpdate, machine.NodePreserved, machine.ConditionSpecValid,
	string(object.True), string(object.False), string(object.Unknown), string(object.NoSchedule), string(object.NoExecute),
	"node.gardener.cloud/machine-name", "node.machine.sapcloud.io/instance-not-ready",
	"node.gardener.cloud/critical-components-not-ready", "node.machine.sapcloud.io/candidate-for-update",
	"node.machine.sapcloud.io/selected-for-update", "node.machine.sapcloud.io/update-result",
	"node.machine.sapcloud.io/update-failed-reason", "node.machine.sapcloud.io/preserve", "node.machine.sapcloud.io/preserved",
	"successful", "failed", "now", "when-failed", "auto-preserved", "force-deletion", `{"size":"s"}`, `{"size":"m","tags":{"a":"1"}}`,
}}

// Invariants: P11 P27
func FuzzDecide(f *testing.F) {
	d := fuzzing.Decision[machine.Observation, *machine.Policy, machine.Plan]{
		Form: form, Policy: machine.DefaultPolicy, Decide: machine.Decide,
		Whole: func(o *machine.Observation) {
			if o.Machine == nil {
				o.Machine = &machine.Machine{}
			}
		},
		Check: func(t testing.TB, o *machine.Observation, plan machine.Plan) {
			require.NotEmpty(t, plan.Why.String())
			require.False(t, plan.Write != nil && plan.Effect != nil)
			require.True(t, plan.Effect == nil || o.Machine.HasFinalizer(machine.Finalizer), "P11: %T without finalizer", plan.Effect)
			require.True(t, plan.At.IsZero() || plan.At.After(form.Now), "a wait that is over: %v", plan.At)
		},
	}
	d.Fuzz(f, d.Drawn(40, func(t *rapid.T) (*machine.Observation, *machine.Policy) { return anyObservation(t), anyPolicy(t) })...)
}
