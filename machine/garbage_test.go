package machine_test

import (
	"math"
	"time"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// What storage, providers and clusters may hold: sense and nonsense, in every
// field of everything that a decision looks at.

var (
	anyPhase = rapid.SampledFrom([]machine.Phase{
		machine.PhaseNew, machine.PhasePending, machine.PhaseAvailable, machine.PhaseRunning, machine.PhaseUnknown,
		machine.PhaseFailed, machine.PhaseCrashLoopBackOff, machine.PhaseTerminating, machine.PhaseInPlaceUpdating,
		machine.PhaseInPlaceUpdateSuccessful, machine.PhaseInPlaceUpdateFailed, "Dancing", "\x00",
	})
	anyStage = rapid.SampledFrom([]machine.Stage{
		machine.StageNone, machine.StageCreateVM, machine.StageInstanceInitialization, machine.StageInitialized,
		machine.StageGetVMStatus, machine.StageInitiateDrain, machine.StageDeleteVolumeAttachments,
		machine.StageInitiateVMDeletion, machine.StageInitiateNodeDeletion, machine.StageInitiateFinalizerRemoval,
		machine.StageGone, "Meditating",
		machine.StageCandidate, machine.StageSelected, machine.StageReady, machine.StageUpdateSuccessful,
		machine.StageUpdateFailed, machine.StageInService, machine.StageUpdateVM, machine.StageSyncNode,
	})
	anyKind = rapid.SampledFrom([]machine.OperationKind{
		"", machine.OperationCreate, machine.OperationUpdate, machine.OperationInPlaceUpdate,
		machine.OperationHealthCheck, machine.OperationDrainNode, machine.OperationDelete, "Sing",
	})
	anyState = rapid.SampledFrom([]machine.OperationState{
		"", machine.StateProcessing, machine.StateFailed, machine.StateSuccessful, "Odd",
	})
	anyCode = rapid.Map(rapid.IntRange(0, 20), func(n int) codes.Code { return codes.Code(n) })
	anyWait = rapid.SampledFrom([]time.Duration{
		0, time.Nanosecond, time.Second, 10 * time.Minute, math.MaxInt64, -time.Second, math.MinInt64,
	})
	anyTime = rapid.SampledFrom([]time.Time{
		{}, epoch, epoch.Truncate(time.Second), epoch.Add(-time.Hour), epoch.Add(-24 * time.Hour), epoch.Add(time.Hour),
		time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), time.Unix(0, 0),
		epoch.In(time.FixedZone("elsewhere", 3600)),
	})
	anyWord = rapid.SampledFrom([]string{"", "a", "true", "False", "successful", "failed", "node-m-1", "m-1", "m-2", "p://1", "now", "when-failed", "auto-preserved", "false"})
	anyKey  = rapid.SampledFrom([]string{
		"", "a", "b", "force-deletion", "node.gardener.cloud/machine-name",
		"node.machine.sapcloud.io/instance-not-ready", "node.gardener.cloud/critical-components-not-ready",
		"node.machine.sapcloud.io/candidate-for-update", "node.machine.sapcloud.io/selected-for-update",
		"node.machine.sapcloud.io/update-result", "node.machine.sapcloud.io/update-failed-reason",
		"node.machine.sapcloud.io/preserve", "node.machine.sapcloud.io/preserve", "node.machine.sapcloud.io/preserved",
		"cluster-autoscaler.kubernetes.io/scale-down-disabled",
	})
	anyMap       = rapid.OneOf(rapid.Just(map[string]string(nil)), rapid.MapOfN(anyKey, anyWord, 0, 4))
	anyFinalizer = rapid.SliceOfN(rapid.SampledFrom([]string{machine.Finalizer, machine.NodeFinalizer, "other", ""}), 0, 2)
	anyTaints    = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) object.Taint {
		return object.Taint{
			Key: anyKey.Draw(t, "key"), Value: anyWord.Draw(t, "value"),
			Effect: rapid.SampledFrom([]object.TaintEffect{object.NoSchedule, object.NoExecute, ""}).Draw(t, "effect"),
		}
	}), 0, 3)
	anyConditions = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) object.Condition {
		return object.Condition{
			Type: rapid.SampledFrom([]string{
				machine.NodeReady, machine.NodeReadonlyFilesystem, "DiskPressure", machine.NodeTerminating,
				machine.ConditionSpecValid, machine.NodeInPlaceUpdate, machine.NodePreserved, "",
			}).Draw(t, "type"),
			Status: rapid.SampledFrom([]object.ConditionStatus{object.True, object.False, object.Unknown, ""}).Draw(t, "status"),
			Reason: anyWord.Draw(t, "reason"), Since: anyTime.Draw(t, "since"),
		}
	}), 0, 4)
	anyAddresses = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) machine.Address {
		return machine.Address{Type: anyWord.Draw(t, "type"), Value: anyWord.Draw(t, "value")}
	}), 0, 2)
)

func maybe[T any](t *rapid.T, label string, draw func(*rapid.T) T) *T {
	if !rapid.Bool().Draw(t, label) {
		return nil
	}
	v := draw(t)
	return &v
}

func anyMeta(t *rapid.T, name string) object.Meta {
	m := object.Meta{
		Key: object.Key{Namespace: anyWord.Draw(t, "namespace"), Name: name}, UID: anyWord.Draw(t, "uid"),
		Version: anyWord.Draw(t, "version"), Generation: rapid.Int64Range(-1, 3).Draw(t, "generation"),
		CreatedAt: anyTime.Draw(t, "created"), Labels: anyMap.Draw(t, "labels"),
		Annotations: anyMap.Draw(t, "annotations"), Finalizers: anyFinalizer.Draw(t, "finalizers"),
	}
	if rapid.Bool().Draw(t, "deleted") {
		m.DeletedAt = anyTime.Draw(t, "deletedAt")
	}
	m.Owner = maybe(t, "owned", func(*rapid.T) object.Owner { return object.Owner{Kind: "Set"} })
	return m
}

func anyTemplate(t *rapid.T) machine.NodeTemplate {
	return machine.NodeTemplate{
		Labels: anyMap.Draw(t, "labels"), Annotations: anyMap.Draw(t, "annotations"), Taints: anyTaints.Draw(t, "taints"),
	}
}

func anyStatus(t *rapid.T) machine.Status {
	return machine.Status{
		Phase: anyPhase.Draw(t, "phase"), Since: anyTime.Draw(t, "since"), ClockFrom: anyTime.Draw(t, "clock"),
		LastOperation: machine.Operation{
			Kind: anyKind.Draw(t, "kind"), State: anyState.Draw(t, "state"), Stage: anyStage.Draw(t, "stage"),
			Code: anyCode.Draw(t, "code"), Message: anyWord.Draw(t, "message"), Time: anyTime.Draw(t, "time"),
			Against: machine.Inputs{
				Machine: rapid.Int64Range(0, 3).Draw(t, "machine"), Class: rapid.Int64Range(0, 1).Draw(t, "class"),
				Secret: rapid.SampledFrom([]string{"", "v1"}).Draw(t, "secret"),
			},
		},
		Conditions: anyConditions.Draw(t, "conditions"), Addresses: anyAddresses.Draw(t, "addresses"),
		LastKnown: anyWord.Draw(t, "known"), NeverCreated: rapid.Bool().Draw(t, "never"), OnlyRefused: rapid.Bool().Draw(t, "only refused"),
		DeletedFrom: anyPhase.Draw(t, "from"), JoinedAfter: anyWait.Draw(t, "joined"), Preservation: anyPreservation(t), VMSpec: anyVMSpec(t),
	}
}

func anyPreservation(t *rapid.T) machine.Preservation {
	if rapid.Bool().Draw(t, "never preserved") {
		return machine.Preservation{}
	}
	return machine.Preservation{
		Request: anyWord.Draw(t, "followed"), Since: anyTime.Draw(t, "preserved since"), Until: anyTime.Draw(t, "until"),
		Ended: anyTime.Draw(t, "ended"), NodeAsked: rapid.Bool().Draw(t, "node asked"), Drained: rapid.Bool().Draw(t, "drained"),
	}
}

func anyPreservedMarks(t *rapid.T) machine.PreservedMarks {
	return machine.PreservedMarks{
		Since: anyTime.Draw(t, "preserved"), Cordoned: rapid.Bool().Draw(t, "cordoned for it"),
		Tainted: rapid.Bool().Draw(t, "tainted for it"), Kept: rapid.Bool().Draw(t, "kept for it"),
	}
}

func anyMachine(t *rapid.T) *machine.Machine {
	return &machine.Machine{
		Meta: anyMeta(t, rapid.SampledFrom([]string{ours, ours, ours, ""}).Draw(t, "name")),
		Spec: machine.Spec{
			Class:      machine.ClassRef{Name: rapid.SampledFrom([]string{"small", "small", ""}).Draw(t, "class")},
			ProviderID: rapid.SampledFrom([]string{"", "p://1"}).Draw(t, "id"),
			NodeName:   rapid.SampledFrom([]string{"", node}).Draw(t, "node"), NodeTemplate: anyTemplate(t),
			Config: machine.Configuration{
				CreationTimeout: anyWait.Draw(t, "creation"), HealthTimeout: anyWait.Draw(t, "health"),
				DrainTimeout: anyWait.Draw(t, "drain"), InPlaceTimeout: anyWait.Draw(t, "in place"),
				PreserveTimeout: anyWait.Draw(t, "preserve"), DisableHealthTimeout: rapid.Bool().Draw(t, "disable"),
				NodeConditions: rapid.SliceOfN(anyWord, 0, 2).Draw(t, "types"),
			},
			InPlace: anyRequest.Draw(t, "request"),
		},
		Status: anyStatus(t),
	}
}

func anyNode(t *rapid.T) machine.Node {
	return machine.Node{
		Meta:       anyMeta(t, rapid.SampledFrom([]string{node, "node-m-2", ""}).Draw(t, "name")),
		ProviderID: anyWord.Draw(t, "id"), Taints: anyTaints.Draw(t, "taints"), Unschedulable: rapid.Bool().Draw(t, "cordoned"),
		Applied: machine.Applied{
			NodeTemplate: anyTemplate(t), VirtualCapacity: anyMap.Draw(t, "applied"),
			Generation: rapid.Int64Range(0, 2).Draw(t, "applied generation"), Update: anyMarks(t),
			Preserved: anyPreservedMarks(t),
			Critical: rapid.SampledFrom([]object.Taint{
				{}, {Key: "a"}, {Key: "node.gardener.cloud/critical-components-not-ready", Effect: object.NoSchedule},
			}).Draw(t, "critical"),
		},
		Conditions: anyConditions.Draw(t, "conditions"), Capacity: anyMap.Draw(t, "capacity"),
		Addresses: anyAddresses.Draw(t, "addresses"),
	}
}

func anyClass(t *rapid.T) machine.Class {
	return machine.Class{
		Meta: anyMeta(t, "small"), Provider: anyWord.Draw(t, "provider"), ProviderSpec: []byte(anySpec.Draw(t, "spec")),
		NodeTemplate: maybe(t, "shape", func(t *rapid.T) machine.NodeShape {
			return machine.NodeShape{Capacity: anyMap.Draw(t, "capacity"), VirtualCapacity: anyMap.Draw(t, "virtual")}
		}),
		SecretRef:      maybe(t, "secret", anyRef),
		CredentialsRef: maybe(t, "credentials", anyRef),
	}
}

func anyRef(t *rapid.T) object.Key { return object.Key{Name: anyWord.Draw(t, "ref")} }

func anyVM(t *rapid.T) machine.VM {
	return machine.VM{
		Outcome:    machine.Outcome{Code: anyCode.Draw(t, "code"), Message: anyWord.Draw(t, "message")},
		ProviderID: anyWord.Draw(t, "id"), NodeName: rapid.SampledFrom([]string{"", node}).Draw(t, "node"),
		LastKnown: anyWord.Draw(t, "known"), Addresses: anyAddresses.Draw(t, "addresses"),
		Unhealthy: rapid.SampledFrom([]string{"", "stopped"}).Draw(t, "unhealthy"),
	}
}

func anyOutcome(t *rapid.T) machine.Outcome { return machine.Outcome{Code: anyCode.Draw(t, "code")} }

func anyObservation(t *rapid.T) *machine.Observation {
	return &machine.Observation{
		VMSpec: maybe(t, "wanted", anyVMSpec), Updated: maybe(t, "updated", anyVM),
		UpdateTurn: maybe(t, "update turn", func(t *rapid.T) machine.UpdateTurn {
			return machine.UpdateTurn{Allowed: rapid.Bool().Draw(t, "turn"), At: anyTime.Draw(t, "turn at")}
		}),
		Machine: anyMachine(t), Class: maybe(t, "class", anyClass), Secret: rapid.SampledFrom([]string{"", "v1"}).Draw(t, "secret"),
		Frozen: rapid.Bool().Draw(t, "frozen"), NoCluster: rapid.Bool().Draw(t, "no cluster"),
		NoInitialize: rapid.Bool().Draw(t, "no initialize"), Fenced: rapid.Bool().Draw(t, "fenced"),
		Failures: rapid.IntRange(-1, 100).Draw(t, "failures"), Paced: rapid.Bool().Draw(t, "paced"),
		Node: maybe(t, "node", func(t *rapid.T) machine.NodeAnswer {
			return machine.NodeAnswer{
				Name: rapid.SampledFrom([]string{"", node, "other"}).Draw(t, "asked"), Node: maybe(t, "found", anyNode), Of: rapid.SampledFrom([]string{"", "", "fleet/m-2"}).Draw(t, "of"),
				Read: readAt(anyTime.Draw(t, "read")), // zero: from a cache
			}
		}),
		VM: maybe(t, "vm", anyVM), Created: maybe(t, "created", anyVM),
		Initialized: maybe(t, "initialized", anyVM), VMDeleted: maybe(t, "vm deleted", anyVM),
		NodeSynced: maybe(t, "synced", anyOutcome), NodeMarked: maybe(t, "marked", anyOutcome),
		NodeDeleted: maybe(t, "node deleted", anyOutcome), NoDrain: rapid.Bool().Draw(t, "no drain"),
		Drain: maybe(t, "drain", anyDrain), Detach: maybe(t, "detach", anyDrain),
		Budgeted: rapid.Bool().Draw(t, "budgeted"), WatchedSince: anyTime.Draw(t, "watched since"),
		Token: machine.TokenUse(rapid.IntRange(0, 3).Draw(t, "token")), TokenEnsured: maybe(t, "token ensured", anyOutcome),
		VMUnhealthy: rapid.Bool().Draw(t, "vm unhealthy"),
		Missing: maybe(t, "missing", func(t *rapid.T) machine.MissingVM {
			return machine.MissingVM{Since: anyTime.Draw(t, "missing since"), NotFound: rapid.Bool().Draw(t, "not found")}
		}),
		TokenRemoved: maybe(t, "token removed", anyOutcome),
		Hold:         maybe(t, "hold", anyHold), CreateTurn: maybe(t, "turn", anyCreateTurn),
		Grant: maybe(t, "grant", func(t *rapid.T) machine.Grant {
			return machine.Grant{
				Allowed: rapid.Bool().Draw(t, "allowed"), Detail: anyWord.Draw(t, "detail"),
				Until: rapid.SampledFrom([]time.Time{{}, epoch.Add(-time.Second), epoch.Add(time.Minute)}).Draw(t, "until"),
			}
		}),
	}
}

var anyRequest = rapid.SampledFrom([]machine.InPlaceRequest{
	"", "", machine.InPlaceCandidate, machine.InPlaceWaiting, machine.InPlaceSelected, machine.InPlaceSelected, "Perhaps",
})

func anyMarks(t *rapid.T) machine.UpdateMarks {
	return machine.UpdateMarks{
		Since: anyTime.Draw(t, "update"), Candidate: rapid.Bool().Draw(t, "candidate"),
		Selected: rapid.Bool().Draw(t, "selected"), Cordoned: rapid.Bool().Draw(t, "cordoned by us"),
	}
}

func anyDrain(t *rapid.T) machine.DrainAnswer {
	return machine.DrainAnswer{
		Outcome: machine.Outcome{Code: rapid.SampledFrom([]codes.Code{codes.OK, codes.OK, codes.Unavailable}).Draw(t, "code")},
		Done:    rapid.Bool().Draw(t, "done"), Forced: rapid.Bool().Draw(t, "forced"), At: anyTime.Draw(t, "at"),
		Why: anyWord.Draw(t, "why"), Blocked: rapid.Bool().Draw(t, "blocked"),
	}
}

func anyPolicy(t *rapid.T) *machine.Policy {
	p := machine.DefaultPolicy()
	p.ProviderIDsMatch = rapid.Bool().Draw(t, "ids match")
	p.QuotaRetry = rapid.SampledFrom([]time.Duration{0, time.Second, math.MaxInt64}).Draw(t, "quota")
	for _, wait := range []*time.Duration{&p.CreationTimeout, &p.HealthTimeout, &p.DrainTimeout, &p.Unresponsive, &p.DetachTimeout, &p.InPlaceTimeout, &p.PreserveTimeout} {
		*wait = rapid.SampledFrom([]time.Duration{*wait, *wait, time.Second, math.MaxInt64}).Draw(t, "wait")
	}
	if rapid.Bool().Draw(t, "no keys") {
		p.Keys = machine.Keys{KeptByUs: "kept"} // which does nothing alone
	}
	return p
}

// anySpec is a provider spec.
var anySpec = rapid.SampledFrom([]string{
	"", "null", "{", `{}`, `{"size":"s"}`, `{"size":"s","tags":{"a":"1"}}`, `{"size":"s","tags":{"a":"2","b":"1"}}`,
	`{"size":"m","tags":{"a":"1"}}`, `{"tags":1,"tags":2}`, `{"nics":[{"tags":{"a":"1"}}],"size":"s"}`, "\xff", "[[[",
})

// anyVMSpec is what may be recorded of a VM: splits of specs, and nonsense.
func anyVMSpec(t *rapid.T) machine.VMSpec {
	if rapid.IntRange(0, 3).Draw(t, "nonsense") == 0 {
		return machine.VMSpec{
			Declared: rapid.SampledFrom([]string{"", "tags", ".", "nics.tags,tags"}).Draw(t, "declared"), Fixed: anyWord.Draw(t, "fixed"),
			Updatable: anySpec.Draw(t, "updatable"), Begun: anySpec.Draw(t, "begun"),
		}
	}
	fields := rapid.SampledFrom([][]string{{"tags"}, {"tags"}, {"tags", "nics.tags"}, nil}).Draw(t, "fields")
	spec := machine.SplitSpec(&machine.Class{ProviderSpec: []byte(anySpec.Draw(t, "spec"))}, fields)
	spec.Begun = rapid.SampledFrom([]string{"", "", `{"tags":{"a":"3"}}`, "{"}).Draw(t, "begun")
	return spec
}
