package machine_test

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/test/fuzzing"
)

// P11: any observation has a plan, and no call is made without our finalizer.
// Invariants: P11
func TestP11AnyObservationGetsAPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anyObservation(t)
		policy := anyPolicy(t)
		plan, err := machine.Decide(o, policy, epoch)
		require.NoError(t, err)
		require.NotEmpty(t, plan.Why.Reason)
		require.NotContains(t, plan.Why.String(), "{", "a placeholder is left in the sentence")
		require.False(t, plan.Write != nil && plan.Effect != nil)
		if plan.Effect != nil {
			require.True(t, o.Machine.HasFinalizer(machine.Finalizer), "%T without finalizer", plan.Effect)
		}
		require.True(t, plan.At.IsZero() || plan.At.After(epoch), "At is not in the future: %v", plan.At)
		require.NoError(t, checkMoves(states(t, policy), o, &plan), "%s", plan.Why)
		if status, ok := plan.Write.(*machine.UpdateStatus); ok {
			require.True(t, machine.PhaseTable().Knows(string(status.Status.Phase)) || status.Status.Phase == o.Machine.Status.Phase)
		}
	})
}

// P11: without our finalizer no call is made, and a machine that is being deleted is not even written.
func TestP11NothingIsDoneWithoutOurFinalizer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anyObservation(t)
		o.Machine.Finalizers = []string{"other"}
		if rapid.Bool().Draw(t, "terminating") {
			o.Machine.Status.Phase, o.Machine.Status.LastOperation.Kind = machine.PhaseTerminating, machine.OperationDelete
		}
		plan, err := machine.Decide(o, anyPolicy(t), epoch)
		require.NoError(t, err)
		require.Nil(t, plan.Effect)
		if o.Machine.Deleted() {
			require.Nil(t, plan.Write)
		}
	})
}

// P11: braces in quoted texts stay; all braces of the sentence itself are filled in.
func TestP11SentencesQuoteBraces(t *testing.T) {
	why := decision.Why{Reason: machine.ReasonCreateFailed, Name: "{detail}", Detail: "{name}", Code: codes.Internal}
	assert.Equal(t, "creation failed in {detail}: INTERNAL: {name}", why.String())
}

func TestP11CallersMistakesAreErrors(t *testing.T) {
	p := machine.DefaultPolicy()
	_, err := machine.Decide(nil, p, epoch)
	assert.ErrorIs(t, err, decision.ErrNoObservation)
	_, err = machine.Decide(&machine.Observation{}, p, epoch)
	assert.ErrorIs(t, err, decision.ErrNoObservation)
	o := &machine.Observation{Machine: &machine.Machine{}}
	_, err = machine.Decide(o, &machine.Policy{Grace: 1}, epoch)
	assert.ErrorIs(t, err, object.ErrInvalid)
	want, err := machine.Decide(o, p, epoch)
	require.NoError(t, err)
	for _, p := range []*machine.Policy{nil, {}} {
		plan, err := machine.Decide(o, p, epoch)
		require.NoError(t, err)
		assert.Equal(t, want, plan)
	}
}

// P17: for any observation, a node that has another machine's name or another VM's ID is never written or
// deleted. An empty name or ID matches nothing.
// Invariants: P17
func TestP17NodesOfOthersAreLeftAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, p := anyObservation(t), anyPolicy(t)
		p.Keys.NodeMachine = machine.DefaultPolicy().Keys.NodeMachine
		o.Machine.Finalizers = []string{machine.Finalizer}
		if o.Node == nil || o.Node.Node == nil {
			t.Skip("no node")
		}
		other := rapid.SampledFrom([]string{"m-2", "", "another VM's"}).Draw(t, "owner")
		if other == "another VM's" { // although name and label are the machine's
			other, o.Machine.Name = "m-1", "m-1"
			o.Machine.Spec.ProviderID, o.Node.Node.ProviderID = "p://zone/1", "p://zone/2"
			o.Node.ClaimedBy, p.ProviderIDsMatch = "fleet/m-2", false
			if rapid.Bool().Draw(t, "declared") {
				o.Node.ClaimedBy, p.ProviderIDsMatch = "", true
			}
		} else if other == "" { // the machine has no name either, and must not match
			o.Machine.Name, o.Machine.Spec.ProviderID, o.Node.Node.ProviderID = "", "", ""
			o.Machine.CreatedAt, o.Node.Node.CreatedAt = epoch, epoch.Add(-time.Hour)
		}
		o.Node.Node.Labels = map[string]string{p.Keys.NodeMachine: other}
		o.Node.Name = o.Machine.Spec.NodeName // as if this node was asked for
		switch rapid.IntRange(0, 4).Draw(t, "where nodes matter") {
		case 0:
			o.Machine.DeletedAt, o.Frozen, o.NoCluster, o.NodeSynced = time.Time{}, false, false, nil
			o.Machine.Status.Phase, o.Machine.Spec.Class.Name = machine.PhaseRunning, "small"
			o.Machine.Spec.Config = machine.Configuration{}
		case 1:
			o.Machine.DeletedAt, o.NoCluster, o.NodeDeleted = epoch, false, nil
			o.Machine.Status.Phase, o.Machine.Status.NeverCreated = machine.PhaseTerminating, false
			o.Machine.Status.LastOperation = machine.Operation{Kind: machine.OperationDelete, Stage: machine.StageInitiateVMDeletion}
			o.VMDeleted, o.Node.Gone, o.Node.Read = &machine.VM{}, true, readAt(epoch)
		case 2:
			o.Machine.DeletedAt, o.Frozen, o.NoCluster, o.Drain, o.Node.Read = time.Time{}, false, false, nil, readAt(epoch)
			o.Machine.Status.Phase = rapid.SampledFrom([]machine.Phase{
				machine.PhaseInPlaceUpdating, machine.PhaseInPlaceUpdateFailed, machine.PhaseInPlaceUpdateSuccessful,
			}).Draw(t, "updating")
			o.Machine.Status.LastOperation.Kind, o.Machine.Spec.Class.Name = machine.OperationInPlaceUpdate, "small"
		}
		plan, err := machine.Decide(o, p, epoch)
		require.NoError(t, err)
		switch plan.Effect.(type) {
		case *machine.SyncNode, *machine.MarkNode, machine.DeleteNode, *machine.DrainNode, *machine.DetachVolumes:
			require.Fail(t, "a call for somebody else's node", "%T: %s", plan.Effect, plan.Why)
		case machine.GetVM, machine.CreateVM, machine.InitializeVM, machine.DeleteVM, machine.FindNode, machine.AskGrant, machine.AskCreate,
			machine.EnsureToken, machine.RenewToken, machine.RemoveToken, nil:
		}
		_, deletes := plan.Write.(*machine.Delete)
		require.False(t, deletes, "deleted because of somebody else's node")
	})
}

// P25: in a frozen fleet nothing is created or marked Failed. Only conditions about the spec are written.
// Invariants: P25
func TestP25FrozenMachinesAreLeftAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anyObservation(t)
		o.Frozen, o.Machine.DeletedAt = true, time.Time{}
		plan, err := machine.Decide(o, anyPolicy(t), epoch)
		require.NoError(t, err)
		require.Nil(t, plan.Effect)
		require.Empty(t, plan.Moves, "the phase moves: %s", plan.Why)
		if plan.Write == nil {
			return
		}
		status, ok := plan.Write.(*machine.UpdateStatus)
		require.True(t, ok, "%T", plan.Write)
		status.Status.Conditions = o.Machine.Status.Conditions
		require.Equal(t, o.Machine.Status, status.Status, "more than a condition was written")
	})
}

// P25: in a frozen fleet deletions continue exactly as in any other.
// Invariants: P25
func TestP25DeletionIsNotFrozen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, p := anyObservation(t), anyPolicy(t)
		o.Machine.DeletedAt = epoch.Add(-time.Minute)
		o.Frozen = true
		frozen, err := machine.Decide(o, p, epoch)
		require.NoError(t, err)
		o.Frozen = false
		thawed, err := machine.Decide(o, p, epoch)
		require.NoError(t, err)
		require.Equal(t, thawed, frozen)
	})
}

// P27: the same arguments yield the same plan, and none of them is changed.
// Invariants: P27
func TestP27SameInputSamePlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, p := anyObservation(t), anyPolicy(t)
		before, policy := cloned(o), *p
		first, err := machine.Decide(o, p, epoch)
		require.NoError(t, err)
		for range 4 {
			again, err := machine.Decide(o, p, epoch)
			require.NoError(t, err)
			require.True(t, reflect.DeepEqual(first, again), "%+v\n%+v", first, again)
		}
		scramble(first)
		require.True(t, reflect.DeepEqual(before, o), "the observation was changed")
		require.True(t, reflect.DeepEqual(&policy, p), "the policy was changed")
	})
}

// P27: of two mistakes, always the same is reported.
// Invariants: P27
func TestP27ClassMistakesAreReportedInOrder(t *testing.T) {
	c := &machine.Class{SecretRef: &object.Key{}, CredentialsRef: &object.Key{}}
	for range 50 {
		require.ErrorContains(t, c.Validate(), " secretRef.name must not be empty")
	}
}

// cloned returns a copy of an observation that shares nothing with it.
func cloned(o *machine.Observation) *machine.Observation {
	c := *o
	c.Machine = o.Machine.Clone()
	if o.Class != nil {
		c.Class = o.Class.Clone()
	}
	if o.Node != nil {
		answer := *o.Node
		if answer.Node != nil {
			answer.Node = answer.Node.Clone()
		}
		c.Node = &answer
	}
	for _, vm := range []**machine.VM{&c.VM, &c.Created, &c.Initialized, &c.VMDeleted} {
		if *vm != nil {
			copied := **vm
			copied.Addresses = append([]machine.Address(nil), copied.Addresses...)
			if (*vm).Addresses != nil && copied.Addresses == nil {
				copied.Addresses = []machine.Address{}
			}
			*vm = &copied
		}
	}
	for _, outcome := range []**machine.Outcome{&c.NodeSynced, &c.NodeMarked, &c.NodeDeleted, &c.TokenEnsured, &c.TokenRemoved} {
		if *outcome != nil {
			copied := **outcome
			*outcome = &copied
		}
	}
	for _, drained := range []**machine.DrainAnswer{&c.Drain, &c.Detach} {
		if *drained != nil {
			copied := **drained
			*drained = &copied
		}
	}
	return &c
}

// scramble changes everything in a plan that the plan must not share with the observation.
func scramble(plan machine.Plan) {
	blot := func(m map[string]string) {
		for k := range m {
			m[k] = "blot"
		}
	}
	status := func(s *machine.Status) {
		for i := range s.Conditions {
			s.Conditions[i].Type = "blot"
		}
		for i := range s.Addresses {
			s.Addresses[i].Type = "blot"
		}
	}
	switch write := plan.Write.(type) {
	case *machine.Update:
		blot(write.Machine.Labels)
		blot(write.Machine.Spec.NodeTemplate.Labels)
		status(&write.Machine.Status)
	case *machine.UpdateStatus:
		status(&write.Status)
	case *machine.Delete:
	}
	if sync, ok := plan.Effect.(*machine.SyncNode); ok {
		blot(sync.Node.Labels)
		blot(sync.Node.Applied.Labels)
		blot(sync.Node.Applied.VirtualCapacity)
		blot(sync.Node.Capacity)
		for i := range sync.Node.Taints {
			sync.Node.Taints[i].Key = "blot"
		}
		scrambleNode(sync.Node)
	}
}

// The longest possible timeout does not overflow, so it has not passed.
func TestLongestTimeoutsAreNotOver(t *testing.T) {
	w := newWorld(t)
	w.policy.DrainTimeout, w.policy.Unresponsive = math.MaxInt64, math.MaxInt64
	w.createMachine(func(m *machine.Machine) {
		m.Spec.Config.CreationTimeout, m.Spec.Config.HealthTimeout = math.MaxInt64, math.MaxInt64
	})
	s := &shell{w: w}
	plan := s.settle(bound)
	require.Equal(t, machine.PhaseRunning, w.store.live().Status.Phase, "%s", plan.Why)
	w.cluster.setReady(node, object.False)
	for range 3 {
		_, _, err := s.reconcile()
		require.NoError(t, err)
		w.advance(time.Hour)
	}
	assert.Equal(t, machine.PhaseUnknown, w.store.live().Status.Phase)
	m := w.store.live()
	assert.True(t, (&machine.Machine{Status: machine.Status{Phase: machine.PhaseRunning, Since: m.Status.Since}}).
		AvailableAt(math.MaxInt64).After(w.now))
}

// scrambleNode changes the rest of a node, see scramble.
func scrambleNode(n *machine.Node) {
	for _, m := range []map[string]string{n.Annotations, n.Applied.Annotations} {
		for k := range m {
			m[k] = "blot"
		}
	}
	for i := range n.Conditions {
		n.Conditions[i].Type = "blot"
	}
	for i := range n.Addresses {
		n.Addresses[i].Type = "blot"
	}
	for i := range n.Finalizers {
		n.Finalizers[i] = "blot"
	}
	for i := range n.Applied.Taints {
		n.Applied.Taints[i].Key = "blot"
	}
	if n.Owner != nil {
		n.Owner.Name = "blot"
	}
	if n.Drain != nil {
		n.Drain.Fenced = !n.Drain.Fenced
	}
}

// What storage, providers and clusters may hold: valid and invalid values in every
// field that a decision reads.

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
			return machine.UpdateTurn{Allowed: rapid.Bool().Draw(t, "permit"), At: anyTime.Draw(t, "turn at")}
		}),
		Machine: anyMachine(t), Class: maybe(t, "class", anyClass), Secret: rapid.SampledFrom([]string{"", "v1"}).Draw(t, "secret"),
		Marks: maybe(t, "marks", func(t *rapid.T) machine.RolloutMarks {
			return machine.RolloutMarks{Avoid: rapid.Bool().Draw(t, "avoid"), Keep: rapid.Bool().Draw(t, "keep")}
		}),
		Frozen: rapid.Bool().Draw(t, "frozen"), NoCluster: rapid.Bool().Draw(t, "no cluster"),
		NoInitialize: rapid.Bool().Draw(t, "no initialize"), Fresh: rapid.Bool().Draw(t, "fresh"),
		Failures: rapid.IntRange(-1, 100).Draw(t, "failures"), Paced: rapid.Bool().Draw(t, "paced"),
		Node: maybe(t, "node", func(t *rapid.T) machine.NodeAnswer {
			return machine.NodeAnswer{
				Name: rapid.SampledFrom([]string{"", node, "other"}).Draw(t, "asked"), Node: maybe(t, "found", anyNode), ClaimedBy: rapid.SampledFrom([]string{"", "", "fleet/m-2"}).Draw(t, "of"),
				Read: readAt(anyTime.Draw(t, "read")), // zero: from a cache
			}
		}),
		VM: maybe(t, "vm", anyVM), Created: maybe(t, "created", anyVM),
		Initialized: maybe(t, "initialized", anyVM), VMDeleted: maybe(t, "vm deleted", anyVM),
		NodeSynced: maybe(t, "synced", anyOutcome), NodeMarked: maybe(t, "marked", anyOutcome),
		NodeDeleted: maybe(t, "node deleted", anyOutcome), NoDrain: rapid.Bool().Draw(t, "no drain"),
		Drain: maybe(t, "drain", anyDrain), Detach: maybe(t, "detach", anyDrain),
		Budgeted: rapid.Bool().Draw(t, "budgeted"), WatchedSince: anyTime.Draw(t, "watched since"), LedSince: anyTime.Draw(t, "led since"),
		Token: machine.TokenUse(rapid.IntRange(0, 3).Draw(t, "token")), TokenEnsured: maybe(t, "token ensured", anyOutcome),
		VMUnhealthy: rapid.Bool().Draw(t, "vm unhealthy"),
		Missing: maybe(t, "missing", func(t *rapid.T) machine.MissingVM {
			return machine.MissingVM{Since: anyTime.Draw(t, "missing since"), NotFound: rapid.Bool().Draw(t, "not found")}
		}),
		TokenRemoved: maybe(t, "token removed", anyOutcome),
		ClassBackoff: maybe(t, "class backoff", anyClassBackoff), CreatePermit: maybe(t, "permit", anyCreatePermit),
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
		p.Keys = machine.Keys{KeptByUs: "kept"} // has no effect without KeepNode
	}
	return p
}

// anySpec is a provider spec, valid or not.
var anySpec = rapid.SampledFrom([]string{
	"", "null", "{", `{}`, `{"size":"s"}`, `{"size":"s","tags":{"a":"1"}}`, `{"size":"s","tags":{"a":"2","b":"1"}}`,
	`{"size":"m","tags":{"a":"1"}}`, `{"tags":1,"tags":2}`, `{"nics":[{"tags":{"a":"1"}}],"size":"s"}`, "\xff", "[[[",
})

// anyVMSpec returns a record of a VM's spec: a split spec, or arbitrary values.
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

// form makes observations of machines from bytes. The stored corpus depends on the order of the words.
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
			require.True(t, plan.At.IsZero() || plan.At.After(form.Now), "At is not in the future: %v", plan.At)
		},
	}
	d.Fuzz(f, d.Drawn(40, func(t *rapid.T) (*machine.Observation, *machine.Policy) { return anyObservation(t), anyPolicy(t) })...)
}
