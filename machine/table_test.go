package machine_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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

func tables() []*machine.Table {
	return []*machine.Table{machine.PhaseTable(), machine.DeletionTable(), machine.UpdateTable()}
}

// P18: every state that is not final has an edge to leave it, and final ones have none.
// Invariants: P18
func TestP18EveryStateHasAWayOut(t *testing.T) {
	for _, table := range tables() {
		out := map[string]bool{}
		for _, e := range table.Transitions() {
			out[e.From] = true
		}
		for _, s := range table.States() {
			assert.Equal(t, !slices.Contains(table.Final, s), out[s], "%s: state %q", table.Name, s)
		}
	}
}

func TestNoEdgeIsWrittenTwice(t *testing.T) {
	for _, table := range tables() {
		seen := map[string]bool{}
		for _, e := range table.Transitions() {
			key := e.From + "\x00" + string(e.On)
			assert.False(t, seen[key], "%s: two edges from %q on %q", table.Name, e.From, e.On)
			seen[key] = true
			assert.NotEmpty(t, e.Why, "%s: %q on %q has no reason", table.Name, e.From, e.On)
		}
	}
}

// Every state can be reached from the initial one.
func TestEveryStateIsReached(t *testing.T) {
	for _, table := range tables() {
		reached := map[string]bool{table.Initial: true, machine.Unrecognized: true}
		for range table.States() {
			for _, e := range table.Transitions() {
				reached[e.To] = reached[e.To] || reached[e.From]
			}
		}
		for _, s := range table.States() {
			assert.True(t, reached[s], "%s: state %q", table.Name, s)
		}
	}
}

func TestNext(t *testing.T) {
	to, ok := machine.PhaseTable().Next("Running", machine.EventUnhealthy)
	assert.True(t, ok)
	assert.Equal(t, "Unknown", to)
	for _, from := range []string{"Failed", "Dancing"} {
		_, ok = machine.PhaseTable().Next(from, machine.EventUnhealthy)
		assert.False(t, ok)
	}
	assert.True(t, machine.PhaseTable().Knows(""))
	assert.False(t, machine.PhaseTable().Knows("Dancing"))
}

// Transitions returns a copy of the edges.
func TestTransitionsAreACopy(t *testing.T) {
	machine.PhaseTable().Transitions()[0].To = "blot"
	assert.NotEqual(t, "blot", machine.PhaseTable().Transitions()[0].To)
}

// source returns the syntax of the package's files, without tests.
func source(t *testing.T) map[string]*ast.File {
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	files, set := map[string]*ast.File{}, token.NewFileSet()
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			files[name], err = parser.ParseFile(set, name, nil, 0)
			require.NoError(t, err)
		}
	}
	return files
}

// constants returns the names and values of all constants of a type.
func constants(t *testing.T, typ string) map[string]string {
	found := map[string]string{}
	for _, file := range source(t) {
		for _, decl := range file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				value := spec.(*ast.ValueSpec)
				if of, ok := value.Type.(*ast.Ident); ok && of.Name == typ {
					text, err := strconv.Unquote(value.Values[0].(*ast.BasicLit).Value)
					require.NoError(t, err)
					found[value.Names[0].Name] = text
				}
			}
		}
	}
	require.NotEmpty(t, found)
	return found
}

func TestEveryPhaseIsInTheTable(t *testing.T) {
	for name, value := range constants(t, "Phase") {
		assert.True(t, machine.PhaseTable().Knows(value), name)
	}
	assert.Len(t, constants(t, "Phase"), len(machine.PhaseTable().States())-1, "all but Unrecognized")
}

// A stage belongs to a creation or to an update of the VM or its node, or is in the table of deletions or of
// in-place updates.
func TestEveryStageIsKnown(t *testing.T) {
	creation := []string{"StageNone", "StageCreateVM", "StageInstanceInitialization", "StageInitialized"}
	update := []string{string(machine.StageUpdateVM), string(machine.StageSyncNode)}
	for name, value := range constants(t, "Stage") {
		assert.True(t, machine.DeletionTable().Knows(value) || machine.UpdateTable().Knows(value) || slices.Contains(creation, name) || slices.Contains(update, value), name)
	}
}

// Every event is on an edge.
func TestEveryEventIsOnAnEdge(t *testing.T) {
	on := map[string]bool{}
	for _, table := range tables() {
		for _, e := range table.Transitions() {
			on[string(e.On)] = true
		}
	}
	for name, value := range constants(t, "Event") {
		assert.True(t, on[value], name)
	}
}

// P44: every edge of every table is taken, by a story or by the deletion of a machine in each phase.
// Invariants: P44
func TestP44EveryEdgeIsTaken(t *testing.T) {
	taken := map[machine.Move]bool{}
	collect := func(run func(*story)) {
		s := newStory(t)
		run(s)
		for _, move := range s.moves {
			taken[move] = true
		}
	}
	for _, stories := range allStories {
		for _, run := range stories {
			collect(run)
		}
	}
	for _, phase := range allPhases {
		collect(func(s *story) {
			s.toRunning()
			m := s.store.live().Clone()
			m.Status.Phase = phase
			s.store.force(m)
			s.requestDeletion()
			s.reconcile()
		})
	}
	for _, table := range tables() {
		for _, e := range table.Transitions() {
			assert.True(t, taken[machine.Move{Table: table.Name, From: e.From, On: e.On, To: e.To}], "%s: %q on %s", table.Name, e.From, e.On)
		}
	}
}

// P44: each event is named outside of the tables, too.
// Invariants: P44
func TestP44EveryEventIsFired(t *testing.T) {
	fired := map[string]bool{}
	for name, file := range source(t) {
		if name == "table.go" {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if ident, ok := n.(*ast.Ident); ok {
				fired[ident.Name] = true
			}
			return true
		})
	}
	for name := range constants(t, "Event") {
		assert.True(t, fired[name], name)
	}
}

// The loop in the package's documentation is that of the example, which is compiled and run.
func TestTheDocumentedPassIsTheExample(t *testing.T) {
	loop := func(file, prefix, begin, end string) []string {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		_, text, ok := strings.Cut(string(content), begin)
		require.True(t, ok, "%s has no loop", file)
		text, _, ok = strings.Cut(text, end)
		require.True(t, ok, "%s's loop has no end", file)
		var lines []string
		for line := range strings.Lines(text) {
			lines = append(lines, strings.TrimSpace(strings.TrimPrefix(line, prefix)))
		}
		return lines
	}
	assert.Equal(t,
		loop("example_test.go", "", "\tfor {\n", "\n\t}\n}\n"),
		loop("doc.go", "//", "//\tfor {\n", "\n//\t}\n"))
}

// guarded are edges that have guards, under the names that TestGuards uses.
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

// TestGuards: the expected edges have guards, and each guard allows what it should (open).
// Invariants: P44
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

// guardedObservation returns an arbitrary observation that is likely to lead to one of the guarded edges.
func guardedObservation(t *rapid.T) *machine.Observation {
	o := anyObservation(t)
	m := o.Machine
	m.Finalizers, m.Annotations = []string{machine.Finalizer}, nil
	m.Spec.Class.Name, m.Spec.Config = "small", machine.Configuration{}
	o.Class = &machine.Class{Meta: object.Meta{Key: object.Key{Namespace: m.Namespace, Name: "small"}}, Provider: "model"}
	o.ClassBackoff, o.Token, o.WatchedSince = nil, machine.TokenUnused, epoch.Add(-24*time.Hour)
	read := readAt(epoch)
	op := &m.Status.LastOperation
	switch rapid.IntRange(0, 3).Draw(t, "near") {
	case 0:
		m.Status.Phase, *op, m.CreatedAt = machine.PhaseNew, machine.Operation{}, epoch.Add(-time.Minute)
		o.VM, o.Created, o.Fresh = &machine.VM{Outcome: machine.Outcome{Code: codes.NotFound}}, nil, false
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

// TestP44DecisionsPassTheirGuards: if a decision moves along a guarded edge, the guard allows it. There are
// decisions for each of these edges.
// Invariants: P44
func TestP44DecisionsPassTheirGuards(t *testing.T) {
	policy := machine.DefaultPolicy()
	states, counts := states(t, policy), map[machine.Event]int{}
	rapid.Check(t, func(t *rapid.T) {
		o := guardedObservation(t)
		plan, err := machine.Decide(o, policy, epoch)
		require.NoError(t, err)
		require.NoError(t, checkMoves(states, o, &plan), "%s", plan.Why)
		for _, move := range plan.Moves {
			if guardOf(move) != nil {
				counts[move.On]++
			}
		}
	})
	for _, on := range []machine.Event{machine.EventCreate, machine.EventHealthTimeout, "vm deleted", "never created", machine.EventReleased} {
		require.NotZero(t, counts[on], "no decision has event %q", on)
	}
}

// TestMovesPrint: the text of a move names its step.
func TestMovesPrint(t *testing.T) {
	joined := machine.Move{Table: machine.PhaseTable().Name, From: "Pending", On: machine.EventJoined, To: "Running"}
	require.Equal(t, "Pending -> Running (joined)", joined.String())
	require.Equal(t, "Pending -> Running (joined)", fmt.Sprint(joined))
	require.Equal(t, "new -> Pending (create)", machine.Move{On: machine.EventCreate, To: "Pending"}.String())
}

// TestMoveWithoutAnEdgeIsAnError: Decide returns an error for a move that no table has, so that nobody stores
// its state.
// Invariants: P44
func TestMoveWithoutAnEdgeIsAnError(t *testing.T) {
	m := &machine.Machine{}
	m.Name, m.Finalizers, m.Status.Phase = "web-1", []string{machine.Finalizer}, machine.PhaseTerminating
	m.Spec.Class.Name = "small"
	o := &machine.Observation{Machine: m, NoCluster: true}
	plan, err := machine.Decide(o, nil, epoch)
	require.NoError(t, err)
	require.Equal(t, string(machine.PhaseFailed), plan.Moves[0].To)
	defer machine.WithoutEdges()()
	plan, err = machine.Decide(o, nil, epoch)
	require.ErrorContains(t, err, "no table has the edge: ")
	require.Zero(t, plan)
}
