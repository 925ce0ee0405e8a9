package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// guarded are edges that have guards, by what they are called here.
var guarded = map[string]machine.Move{
	"create":  {Table: "phase", From: "", On: machine.EventCreate, To: "Pending"},
	"verdict": {Table: "phase", From: "Unknown", On: machine.EventHealthTimeout, To: "Failed"},
	"loss":    {Table: "phase", From: "Available", On: machine.EventLost, To: "Failed"},
	"vm":      {Table: "deletion", From: "InitiateVMDeletion", On: "vm deleted", To: "InitiateNodeDeletion"},
	"no vm":   {Table: "deletion", From: "InitiateVMDeletion", On: "never created", To: "InitiateNodeDeletion"},
	"release": {Table: "deletion", From: "InitiateFinalizerRemoval", On: machine.EventReleased, To: "Gone"},
}

func guardOf(move machine.Move) machine.Guard {
	return machine.GuardOf(move.Table, machine.Edge{From: move.From, On: move.On, To: move.To})
}

// TestGuards: which edges have guards, and what each lets through.
func TestGuards(t *testing.T) {
	known := map[machine.Move]bool{}
	for _, move := range guarded {
		known[move] = true
	}
	for _, table := range tables() {
		for _, e := range table.Transitions() {
			move := machine.Move{Table: table.Name, From: e.From, On: e.On, To: e.To}
			switch e.On {
			case machine.EventCreate, machine.EventHealthTimeout, machine.EventLost: // from several phases
				require.NotNil(t, guardOf(move), move)
			default:
				require.Equal(t, known[move], guardOf(move) != nil, move)
			}
		}
	}
	vm := func(code codes.Code) *machine.VM { return &machine.VM{Outcome: machine.Outcome{Code: code}} }
	never := func(o *machine.Observation) { o.Machine.Status.NeverCreated = true }
	own := &machine.Node{Meta: object.Meta{Key: object.Key{Name: node}, CreatedAt: epoch.Add(time.Minute)}}
	other := own.Clone()
	other.Labels = map[string]string{machine.DefaultPolicy().Keys.NodeMachine: "m-2"}
	for name, c := range map[string]struct {
		move string
		set  func(*machine.Observation)
		open bool
	}{
		"create":                        {"create", nil, true},
		"frozen":                        {"create", func(o *machine.Observation) { o.Frozen = true }, false},
		"being deleted":                 {"create", func(o *machine.Observation) { o.Machine.DeletedAt = epoch }, false},
		"has a VM":                      {"create", func(o *machine.Observation) { o.Machine.Spec.ProviderID = "p://1" }, false},
		"without a budget":              {"verdict", nil, true},
		"frozen verdict":                {"verdict", func(o *machine.Observation) { o.Frozen = true }, false},
		"not asked":                     {"verdict", func(o *machine.Observation) { o.Budgeted = true }, false},
		"not granted":                   {"loss", func(o *machine.Observation) { o.Budgeted, o.Grant = true, &machine.Grant{} }, false},
		"granted":                       {"loss", func(o *machine.Observation) { o.Budgeted, o.Grant = true, &machine.Grant{Allowed: true} }, true},
		"DeleteMachine not called":      {"vm", nil, false},
		"DeleteMachine refused":         {"vm", func(o *machine.Observation) { o.VMDeleted = vm(codes.Internal) }, false},
		"DeleteMachine says OK":         {"vm", func(o *machine.Observation) { o.VMDeleted = vm(codes.OK) }, true},
		"DeleteMachine says NOT_FOUND":  {"vm", func(o *machine.Observation) { o.VMDeleted = vm(codes.NotFound) }, true},
		"a create may have been issued": {"no vm", nil, false},
		"never created":                 {"no vm", never, true},
		"never created, and has a VM": {"no vm", func(o *machine.Observation) {
			never(o)
			o.Machine.Spec.ProviderID = "p://1"
		}, false},
		"no cluster":            {"release", func(o *machine.Observation) { o.NoCluster = true }, true},
		"node not looked for":   {"release", nil, false},
		"node deleted":          {"release", func(o *machine.Observation) { o.NodeDeleted = &machine.Outcome{} }, true},
		"node not deleted":      {"release", func(o *machine.Observation) { o.NodeDeleted = &machine.Outcome{Code: codes.Internal} }, false},
		"no node":               {"release", func(o *machine.Observation) { o.Node = &machine.NodeAnswer{Read: readAt(epoch)} }, true},
		"no node in a cache":    {"release", func(o *machine.Observation) { o.Node = &machine.NodeAnswer{} }, false},
		"node that is not read": {"release", func(o *machine.Observation) { o.Node = &machine.NodeAnswer{Read: readAt(epoch), Failure: "down"} }, false},
		"its node":              {"release", func(o *machine.Observation) { o.Node = &machine.NodeAnswer{Node: own, Read: readAt(epoch)} }, false},
		"another's node":        {"release", func(o *machine.Observation) { o.Node = &machine.NodeAnswer{Node: other, Read: readAt(epoch)} }, true},
	} {
		o := &machine.Observation{Machine: &machine.Machine{Meta: object.Meta{Key: object.Key{Name: ours}, CreatedAt: epoch}}}
		if c.set != nil {
			c.set(o)
		}
		why := guardOf(guarded[c.move])(o, nil)
		require.Equal(t, c.open, why == decision.Why{}, "%s: %s", name, why)
	}
}

// guardedObservation is anything, where a decision is near one of the guarded edges.
func guardedObservation(t *rapid.T) *machine.Observation {
	o := anyObservation(t)
	m := o.Machine
	m.Finalizers, m.Annotations = []string{machine.Finalizer}, nil
	m.Spec.Class.Name, m.Spec.Config = "small", machine.Configuration{}
	o.Class = &machine.Class{Meta: object.Meta{Key: object.Key{Namespace: m.Namespace, Name: "small"}}, Provider: "model"}
	o.Hold, o.Token, o.WatchedSince = nil, machine.TokenUnused, epoch.Add(-24*time.Hour)
	read := readAt(epoch)
	op := &m.Status.LastOperation
	switch rapid.IntRange(0, 3).Draw(t, "near") {
	case 0:
		m.Status.Phase, *op, m.CreatedAt = machine.PhaseNew, machine.Operation{}, epoch.Add(-time.Minute)
		o.VM, o.Created, o.Fenced = &machine.VM{Outcome: machine.Outcome{Code: codes.NotFound}}, nil, false
		m.Spec.ProviderID = rapid.SampledFrom([]string{"", "", "p://1"}).Draw(t, "provider ID")
	case 1:
		m.DeletedAt, m.Status.Phase, m.Status.Since = time.Time{}, machine.PhaseUnknown, epoch.Add(-24*time.Hour)
		m.Status.ClockFrom, m.Status.ResumedAt, m.Status.Preservation = time.Time{}, time.Time{}, machine.Preservation{}
		o.NoCluster, o.Node = false, &machine.NodeAnswer{Name: m.Spec.NodeName, Read: read}
		o.Budgeted = rapid.Bool().Draw(t, "budgeted")
		o.Grant = rapid.SampledFrom([]*machine.Grant{nil, {Allowed: true}, {Detail: "no"}}).Draw(t, "grant")
	case 2:
		m.DeletedAt, m.Status.Phase = epoch.Add(-time.Hour), machine.PhaseTerminating
		*op = machine.Operation{Kind: machine.OperationDelete, State: machine.StateProcessing, Stage: machine.StageInitiateVMDeletion, Time: epoch.Add(-time.Hour)}
		o.VMDeleted = rapid.SampledFrom([]*machine.VM{nil, {}, {Outcome: machine.Outcome{Code: codes.Internal}}}).Draw(t, "deleted")
	case 3:
		m.DeletedAt, m.Status.Phase = epoch.Add(-time.Hour), machine.PhaseTerminating
		*op = machine.Operation{Kind: machine.OperationDelete, State: machine.StateProcessing, Stage: machine.StageInitiateFinalizerRemoval, Time: epoch.Add(-time.Hour)}
		if o.Node != nil {
			o.Node.Name, o.Node.Read, o.Node.Gone = m.Spec.NodeName, read, true
		}
	}
	return o
}

// TestP44DecisionsPassTheirGuards: what decisions move along a guarded edge, its guard lets through.
// Decisions come to each of them.
func TestP44DecisionsPassTheirGuards(t *testing.T) {
	policy := machine.DefaultPolicy()
	states, came := states(t, policy), map[machine.Event]int{}
	rapid.Check(t, func(t *rapid.T) {
		o := guardedObservation(t)
		plan, err := machine.Decide(o, policy, epoch)
		require.NoError(t, err)
		require.NoError(t, explained(states, o, &plan), "%s", plan.Why)
		for _, move := range plan.Moves {
			if move != (machine.Move{}) && guardOf(move) != nil {
				came[move.On]++
			}
		}
	})
	for _, on := range []machine.Event{machine.EventCreate, machine.EventHealthTimeout, "vm deleted", "never created", machine.EventReleased} {
		require.NotZero(t, came[on], "no decision came to %q", on)
	}
}
