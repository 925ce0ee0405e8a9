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
)

// P11: total on any input, and nothing is done without our finalizer.
// Invariants: P11
func TestP11AnyObservationGetsAPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anyObservation(t)
		policy := anyPolicy(t)
		plan, err := machine.Decide(o, policy, epoch)
		require.NoError(t, err)
		require.NotEmpty(t, plan.Why.Reason)
		require.NotContains(t, plan.Why.String(), "{", "a sentence has a gap")
		require.False(t, plan.Write != nil && plan.Effect != nil)
		if plan.Effect != nil {
			require.True(t, o.Machine.HasFinalizer(machine.Finalizer), "%T without finalizer", plan.Effect)
		}
		require.True(t, plan.At.IsZero() || plan.At.After(epoch), "a wait that is over: %v", plan.At)
		require.NoError(t, explained(states(t, policy), o, &plan), "%s", plan.Why)
		if status, ok := plan.Write.(*machine.UpdateStatus); ok {
			require.True(t, machine.PhaseTable().Knows(string(status.Status.Phase)) || status.Status.Phase == o.Machine.Status.Phase)
		}
	})
}

// P11: without our finalizer no call is made, and a machine that is being
// deleted is not even written.
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

// P11: sentences may quote braces of others; none of ours may stay unfilled.
func TestP11SentencesQuoteBraces(t *testing.T) {
	why := decision.Why{Reason: machine.ReasonCreateFailed, Name: "{detail}", Detail: "{name}", Code: codes.Internal}
	assert.Equal(t, "creation failed in {detail}: INTERNAL: {name}", why.String())
}

func TestP11CallersMistakesAreErrors(t *testing.T) {
	p := machine.DefaultPolicy()
	_, err := machine.Decide(nil, p, epoch)
	assert.EqualError(t, err, "machine.Decide: the observation has no machine")
	_, err = machine.Decide(&machine.Observation{}, p, epoch)
	assert.EqualError(t, err, "machine.Decide: the observation has no machine")
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

// P17: a node that carries another machine's name, or another VM's ID, is never touched, for any
// observation; and an empty name or ID matches nothing.
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
		if other == "another VM's" { // though name and label say otherwise
			other, o.Machine.Name = "m-1", "m-1"
			o.Machine.Spec.ProviderID, o.Node.Node.ProviderID = "p://zone/1", "p://zone/2"
			o.Node.Of, p.ProviderIDsMatch = "fleet/m-2", false
			if rapid.Bool().Draw(t, "declared") {
				o.Node.Of, p.ProviderIDsMatch = "", true
			}
		} else if other == "" { // no machine's name, and no machine may match it by having none
			o.Machine.Name, o.Machine.Spec.ProviderID, o.Node.Node.ProviderID = "", "", ""
			o.Machine.CreatedAt, o.Node.Node.CreatedAt = epoch, epoch.Add(-time.Hour)
		}
		o.Node.Node.Labels = map[string]string{p.Keys.NodeMachine: other}
		o.Node.Name = o.Machine.Spec.NodeName // the answer to the question that is asked
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
			require.Fail(t, "a node of somebody else's", "%T: %s", plan.Effect, plan.Why)
		case machine.GetVM, machine.CreateVM, machine.InitializeVM, machine.DeleteVM, machine.FindNode, machine.AskGrant, machine.AskCreate,
			machine.EnsureToken, machine.RenewToken, machine.RemoveToken, nil:
		}
		_, deletes := plan.Write.(*machine.Delete)
		require.False(t, deletes, "deleted because of somebody else's node")
	})
}

// P25: frozen, nothing is created or judged; what is said of the spec is.
// Invariants: P25
func TestP25FrozenMachinesAreLeftAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anyObservation(t)
		o.Frozen, o.Machine.DeletedAt = true, time.Time{}
		plan, err := machine.Decide(o, anyPolicy(t), epoch)
		require.NoError(t, err)
		require.Nil(t, plan.Effect)
		require.Equal(t, machine.Move{}, plan.Moves[0], "a verdict: %s", plan.Why)
		if plan.Write == nil {
			return
		}
		status, ok := plan.Write.(*machine.UpdateStatus)
		require.True(t, ok, "%T", plan.Write)
		status.Status.Conditions = o.Machine.Status.Conditions
		require.Equal(t, o.Machine.Status, status.Status, "more than a condition was written")
	})
}

// P25: deletion goes on in a frozen fleet, exactly as in any other.
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

// P27: a plan is a function of its arguments, and changes none of them.
// Invariants: P27
func TestP27SameInputSamePlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, p := anyObservation(t), anyPolicy(t)
		kept, policy := cloned(o), *p
		first, err := machine.Decide(o, p, epoch)
		require.NoError(t, err)
		for range 4 {
			again, err := machine.Decide(o, p, epoch)
			require.NoError(t, err)
			require.True(t, reflect.DeepEqual(first, again), "%+v\n%+v", first, again)
		}
		scramble(first)
		require.True(t, reflect.DeepEqual(kept, o), "the observation was changed")
		require.True(t, reflect.DeepEqual(&policy, p), "the policy was changed")
	})
}

// P27: which of two mistakes is reported does not depend on the weather.
// Invariants: P27
func TestP27ClassMistakesAreReportedInOrder(t *testing.T) {
	c := &machine.Class{SecretRef: &object.Key{}, CredentialsRef: &object.Key{}}
	for range 50 {
		require.ErrorContains(t, c.Validate(), " secretRef.name must not be empty")
	}
}

// cloned is a copy of an observation that shares nothing with it.
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

// scramble changes everything in a plan that it should own.
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

// Waits of any length are waits: the longest does not overflow into the past.
func TestLongestTimeoutsAreNotOver(t *testing.T) {
	w := newWorld(t)
	w.policy.DrainTimeout, w.policy.Unresponsive = math.MaxInt64, math.MaxInt64
	w.give(func(m *machine.Machine) {
		m.Spec.Config.CreationTimeout, m.Spec.Config.HealthTimeout = math.MaxInt64, math.MaxInt64
	})
	s := &shell{w: w}
	plan := s.settle(bound)
	require.Equal(t, machine.PhaseRunning, w.store.live().Status.Phase, "%s", plan.Why)
	w.cluster.ready(node, object.False)
	for range 3 {
		_, _, err := s.reconcile()
		require.NoError(t, err)
		w.pass(time.Hour)
	}
	assert.Equal(t, machine.PhaseUnknown, w.store.live().Status.Phase)
	m := w.store.live()
	assert.True(t, (&machine.Machine{Status: machine.Status{Phase: machine.PhaseRunning, Since: m.Status.Since}}).
		AvailableAt(math.MaxInt64).After(w.now))
}

// scrambleNode spoils what else a node leads to.
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
