package fsm_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machine/fsm"
)

func TestMermaid(t *testing.T) {
	door := machine.NewTable("door", "", []string{"Sold"}, []machine.Edge{
		{From: "", On: "hang", To: "Closed"},
		{From: "Closed", On: "pull", To: "Wide open"},
		{From: "Wide open", On: "push", To: "Closed"},
		{From: "Wide open", On: "wind: strong", To: "Closed"},
		{From: "Closed", On: "knock", To: "Closed"},
		{From: "Closed", On: "sell", To: "Sold"},
	})
	assert.Equal(t, `stateDiagram-v2
    state "Wide open" as state_2
    [*] --> Closed : hang
    Closed --> state_2 : pull
    state_2 --> Closed : push, wind#58; strong
    Closed --> Closed : knock
    Closed --> Sold : sell
    Sold --> [*]
`, fsm.Mermaid(door))
}

// An empty state that can be reached again is a state like any other.
func TestMermaidNamesAnEmptyStateThatIsEntered(t *testing.T) {
	lamp := machine.NewTable("lamp", "", nil, []machine.Edge{
		{From: "", On: "on", To: "Lit"}, {From: "Lit", On: "off", To: ""},
	})
	assert.Equal(t, `stateDiagram-v2
    state "#34;#34;" as state_0
    [*] --> state_0
    state_0 --> Lit : on
    Lit --> state_0 : off
`, fsm.Mermaid(lamp))
}

func TestDOTRefusesWhatNewRefuses(t *testing.T) {
	_, err := fsm.DOT(machine.NewTable("x", "A", nil, []machine.Edge{
		{From: "A", On: "go", To: "B"}, {From: "A", On: "go", To: "C"},
	}))
	assert.EqualError(t, err, "table x: two edges from A on go")
}

// Drawings are compared with files, so equal tables must give equal texts. If
// the library iterated over a map, the texts would differ within a few tries.
func TestDrawingsAreDeterministic(t *testing.T) {
	for _, table := range tables() {
		first, err := fsm.DOT(table)
		require.NoError(t, err)
		mermaid := fsm.Mermaid(table)
		for range 20 {
			again, err := fsm.DOT(table)
			require.NoError(t, err)
			require.Equal(t, first, again)
			require.Equal(t, mermaid, fsm.Mermaid(table))
		}
	}
}

// Every edge is on both drawings.
func TestDrawingsAreComplete(t *testing.T) {
	for _, table := range tables() {
		dot, err := fsm.DOT(table)
		require.NoError(t, err)
		mermaid := fsm.Mermaid(table)
		for _, e := range table.Transitions() {
			from, dotFrom := e.From, e.From
			if from == "" {
				from, dotFrom = "[*]", `"(none)"`
			}
			assert.True(t, hasLine(mermaid, "    "+from+" --> "+e.To+" : ", string(e.On)), "mermaid: %+v", e)
			assert.True(t, hasLine(dot, "\t"+dotFrom+" -> "+e.To+" [", ">"+string(e.On)+"<"), "dot: %+v", e)
		}
	}
}

// hasLine reports whether a line begins with start and has part further on.
func hasLine(text, start, part string) bool {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, start); ok && strings.Contains(rest, part) {
			return true
		}
	}
	return false
}

// A state of letters, digits and underscores is drawn under its own name: the names here have the
// first and the last character of each range.
func TestMermaidNamesPlainStatesByThemselves(t *testing.T) {
	for _, name := range []string{"a", "z", "A", "Z", "s0", "s9", "s_"} {
		table := machine.NewTable("one", "", nil, []machine.Edge{{From: "", On: "go", To: name}})
		assert.Equal(t, "stateDiagram-v2\n    [*] --> "+name+" : go\n", fsm.Mermaid(table))
	}
}
