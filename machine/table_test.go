package machine_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machine"
)

func tables() []*machine.Table {
	return []*machine.Table{machine.PhaseTable(), machine.DeletionTable(), machine.UpdateTable()}
}

// P18: every state that is not final has a way out, and final ones have none.
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

// Every state can be reached.
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

// The edges a table gives out are a copy.
func TestTransitionsAreACopy(t *testing.T) {
	machine.PhaseTable().Transitions()[0].To = "blot"
	assert.NotEqual(t, "blot", machine.PhaseTable().Transitions()[0].To)
}

// source is the package as text and as syntax, without its tests.
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

// constants are the names and values of all constants of a type.
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

// A stage belongs to a creation, is one of an update of the VM or its node, or belongs to the table of deletions or of updates.
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

// P44: every edge of every table is taken: by a story, or by the deletion of a machine in each phase.
func TestP44EveryEdgeIsTaken(t *testing.T) {
	taken := map[machine.Move]bool{}
	tell := func(run func(*story)) {
		s := newStory(t)
		run(s)
		for _, move := range s.moves {
			taken[move] = true
		}
	}
	for _, stories := range allStories {
		for _, run := range stories {
			tell(run)
		}
	}
	for _, phase := range allPhases {
		tell(func(s *story) {
			s.toRunning()
			m := s.store.live().Clone()
			m.Status.Phase = phase
			s.store.force(m)
			s.doomed()
			s.run()
		})
	}
	for _, table := range tables() {
		for _, e := range table.Transitions() {
			assert.True(t, taken[machine.Move{Table: table.Name, From: e.From, On: e.On, To: e.To}], "%s: %q on %s", table.Name, e.From, e.On)
		}
	}
}

// P44: no event is named by the tables alone.
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

// The loop in the package's documentation is the one that is compiled and run
// as an example.
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
