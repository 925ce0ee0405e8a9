package convert_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/adapters/kubernetes/convert"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineclass"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/safety"
)

// keysInUse returns the keys in all policies, by the names in testdata/names.txt.
func keysInUse() map[string][]string {
	m, s, d, o := machine.DefaultPolicy().Keys, machineset.DefaultPolicy().Keys, deployment.DefaultPolicy().Keys, safety.DefaultPolicy().Keys
	return map[string][]string{
		"finalizer/machine":                         {machine.Finalizer},
		"finalizer/class":                           {machine.Finalizer},
		"finalizer/secret":                          {machine.SecretFinalizer},
		"finalizer/node":                            {machine.NodeFinalizer},
		"finalizer/set":                             {machineset.Finalizer},
		"label/machine/node":                        {keys.NodeLabel},
		"label/machine/force-drain":                 {m.ForceDrain},
		"label/machine/force-deletion":              {m.ForceDeletion},
		"label/machine/template-hash":               {d.TemplateHash},
		"label/node/machine":                        {m.NodeMachine, o.NodeMachine},
		"label/node/candidate":                      {m.CandidateForUpdate},
		"label/node/selected":                       {m.SelectedForUpdate},
		"label/node/result":                         {m.UpdateResult},
		"label/set/freeze":                          {o.Freeze},
		"label/set/scale-up-disabled":               {s.ScaleUpDisabled, d.ScaleUpDisabled},
		"annotation/machine/priority":               {s.Priority},
		"annotation/machine/preserve":               {m.Preserve, s.Preserve, d.Preserve, keys.Preserve},
		"annotation/machine/node-asked":             {keys.NodePreserve},
		"annotation/node/last-applied":              {keys.LastApplied},
		"annotation/node/last-capacity":             {keys.LastAppliedCapacity},
		"annotation/node/not-managed":               {o.NotManaged},
		"annotation/node/update-failed":             {m.UpdateFailedReason},
		"annotation/node/keep":                      {m.KeepNode},
		"annotation/node/kept-by-us":                {m.KeptByUs},
		"annotation/set/revision":                   {keys.Revision},
		"annotation/set/desired-replicas":           {d.DesiredReplicas},
		"annotation/set/max-replicas":               {d.MaxReplicas},
		"annotation/deployment/deletion-candidates": {d.DeletionCandidates},
		"annotation/deployment/scaled-at":           {d.ScaledAt},
		"annotation/deployment/unfreeze":            {o.Unfreeze},
		"taint/critical-components":                 {m.CriticalComponents},
		"taint/not-ready":                           {m.NotReadyTaint},
		"taint/preserved":                           {m.PreservedTaint},
		"taint/avoid":                               {m.AvoidTaint},
	}
}

// wordsInUse returns the values that other programs read or write, by the names in testdata/names.txt.
func wordsInUse() map[string]string {
	return map[string]string{
		"label/node/result/successful": machine.UpdateSuccessful, "label/node/result/failed": machine.UpdateFailed,
		"annotation/machine/preserve/now": machine.PreserveNow, "annotation/machine/preserve/when-failed": machine.PreserveWhenFailed,
		"annotation/machine/preserve/automatic": machine.PreserveAutomatically, "annotation/machine/preserve/never": machine.PreserveNever,
		"condition/node/terminating": machine.NodeTerminating, "condition/node/terminating/unhealthy": machine.ReasonUnhealthy,
		"condition/node/terminating/scale-down": machine.ReasonScaleDown, "condition/node/preserved": machine.NodePreserved,
		"condition/node/update": machine.NodeInPlaceUpdate, "condition/node/update/ready": machine.ReasonReadyForUpdate,
		"condition/node/update/candidate": machine.ReasonCandidateForUpdate, "condition/node/update/selected": machine.ReasonSelectedForUpdate,
		"condition/node/update/drained": machine.ReasonDrainSuccessful, "condition/node/update/successful": machine.ReasonUpdateSuccessful,
		"condition/node/update/failed": machine.ReasonNodeUpdateFailed,
		"condition/set/frozen":         machineset.ConditionFrozen, "condition/set/failure": machineset.ConditionReplicaFailure,
		"condition/deployment/available": deployment.ConditionAvailable, "condition/deployment/progressing": deployment.ConditionProgressing,
		"phase/pending": string(machine.PhasePending), "phase/available": string(machine.PhaseAvailable), "phase/running": string(machine.PhaseRunning),
		"phase/unknown": string(machine.PhaseUnknown), "phase/failed": string(machine.PhaseFailed), "phase/crash-loop": string(machine.PhaseCrashLoopBackOff),
		"phase/terminating": string(machine.PhaseTerminating), "phase/updating": string(machine.PhaseInPlaceUpdating),
		"phase/updated": string(machine.PhaseInPlaceUpdateSuccessful), "phase/update-failed": string(machine.PhaseInPlaceUpdateFailed),
		"operation/create": string(machine.OperationCreate), "operation/update": string(machine.OperationUpdate),
		"operation/in-place": string(machine.OperationInPlaceUpdate), "operation/drain": string(machine.OperationDrainNode),
		"operation/health": string(machine.OperationHealthCheck), "operation/delete": string(machine.OperationDelete),
		"state/processing": string(machine.StateProcessing), "state/failed": string(machine.StateFailed), "state/successful": string(machine.StateSuccessful),
		"strategy/rolling": string(deployment.RollingUpdate), "strategy/recreate": string(deployment.Recreate), "strategy/in-place": string(deployment.InPlaceUpdate),
	}
}

// stagesInUse returns the texts at the end of an operation's description that name its stage.
func stagesInUse() map[string]string {
	describe := func(kind machine.OperationKind, stage machine.Stage) string {
		return convert.FormatStage(&machine.Operation{Kind: kind, Stage: stage})
	}
	return map[string]string{
		"stage/get-vm":           describe(machine.OperationDelete, machine.StageGetVMStatus),
		"stage/initialize":       describe(machine.OperationCreate, machine.StageInstanceInitialization),
		"stage/drain":            describe(machine.OperationDelete, machine.StageInitiateDrain),
		"stage/ready-for-update": describe(machine.OperationInPlaceUpdate, machine.StageReady),
		"stage/detach":           describe(machine.OperationDelete, machine.StageDeleteVolumeAttachments),
		"stage/delete-vm":        describe(machine.OperationDelete, machine.StageInitiateVMDeletion),
		"stage/delete-node":      describe(machine.OperationDelete, machine.StageInitiateNodeDeletion),
		"stage/finalizer":        describe(machine.OperationDelete, machine.StageInitiateFinalizerRemoval),
	}
}

// Established names and values are those of testdata/names.txt, which other programs use.
func TestNamesAreTheEstablishedOnes(t *testing.T) {
	text, err := os.ReadFile("testdata/names.txt")
	require.NoError(t, err)
	have := keysInUse()
	for what, word := range wordsInUse() {
		have[what] = []string{word}
	}
	for what, word := range stagesInUse() {
		have[what] = []string{word}
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		what, name, _ := strings.Cut(line, " ")
		if plain, err := strconv.Unquote(name); err == nil {
			name = plain
		}
		if !assert.NotEmpty(t, have[what], what) {
			continue
		}
		for _, spelled := range have[what] {
			assert.Equal(t, name, spelled, what)
		}
		delete(have, what)
	}
	assert.Empty(t, have, "names that testdata/names.txt does not have")
}

// Names that only this library uses begin with its prefix.
func TestOwnNamesHaveThePrefix(t *testing.T) {
	m, s, d, o := machine.DefaultPolicy().Keys, machineset.DefaultPolicy().Keys, deployment.DefaultPolicy().Keys, safety.DefaultPolicy().Keys
	for _, key := range []string{
		m.Paused, m.Replace, s.Paused, s.Replace, d.Paused, d.Replace, d.InPlaceTarget, o.Slots, o.Paused, machineclass.MigratedFrom,
		keys.SpecChanges, keys.DeploymentChanges, keys.InPlace, keys.Marks,
		keys.SetRecord, keys.DeploymentRecord, keys.Reservation, keys.Handover, keys.DeletionCandidates, keys.MaxAge, keys.StopAfter, keys.PreviousClasses, keys.SurgeAllowance, keys.Applied, keys.Drain,
	} {
		assert.True(t, strings.HasPrefix(key, "millwright-go/"), key)
	}
	for _, key := range []string{m.PreDrainHook, m.PreTerminateHook} { // the names of hooks follow
		assert.True(t, strings.HasSuffix(key, ".millwright-go/"), key)
	}
}
