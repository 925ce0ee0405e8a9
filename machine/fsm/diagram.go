package fsm

import (
	"fmt"
	"strings"

	"github.com/qmuntal/stateless"

	"github.com/millwright-go/millwright/machine"
)

// DOT draws a table for Graphviz. Equal tables give equal texts. The error is a *TableError: two edges with the
// same state and event.
//
// The drawing is made by stateless from its own machine, so it shows what moves are checked against. The empty
// state reads "(none)".
func DOT(t *machine.Table) (string, error) {
	name := func(s string) string {
		if s == "" {
			return "(none)" // stateless prints an empty name as nothing
		}
		return s
	}
	sm := stateless.NewStateMachine(name(t.Initial))
	if err := configure(sm, t, nil, name); err != nil {
		return "", err
	}
	return sm.ToGraph(), nil
}

// Mermaid draws a table as a Mermaid state diagram, in the order of its edges;
// events between the same two states share a line. An empty initial state that
// no edge leads back to is drawn as the diagram's start.
func Mermaid(t *machine.Table) string {
	d := mermaid{table: t, ids: make(map[string]string)}
	d.line("stateDiagram-v2")
	d.declare()
	for _, e := range t.Edges {
		d.edge(e)
	}
	for _, s := range t.Final {
		d.line("    " + d.ids[s] + " --> [*]")
	}
	return d.text.String()
}

type mermaid struct {
	table *machine.Table
	ids   map[string]string // by state
	text  strings.Builder
	drawn map[[2]string]bool
}

func (d *mermaid) line(s string) {
	d.text.WriteString(s)
	d.text.WriteByte('\n')
}

// declare gives every state an identifier, and a label if the state can't be its own identifier.
func (d *mermaid) declare() {
	for i, s := range append(d.table.States(), d.table.Final...) {
		switch _, known := d.ids[s]; {
		case known:
		case s == "" && s == d.table.Initial && !d.entered(s):
			d.ids[s] = "[*]"
		case plain(s):
			d.ids[s] = s
		default:
			d.ids[s] = fmt.Sprintf("state_%d", i)
			d.line(fmt.Sprintf("    state %q as %s", escape(display(s)), d.ids[s]))
		}
	}
	if id := d.ids[d.table.Initial]; id != "[*]" {
		d.line("    [*] --> " + id)
	}
}

func (d *mermaid) entered(state string) bool {
	for _, e := range d.table.Edges {
		if e.To == state {
			return true
		}
	}
	return false
}

// edge draws all edges between the two states of e, once.
func (d *mermaid) edge(e machine.Edge) {
	pair := [2]string{e.From, e.To}
	if d.drawn[pair] {
		return
	}
	if d.drawn == nil {
		d.drawn = make(map[[2]string]bool)
	}
	d.drawn[pair] = true
	var events []string
	for _, other := range d.table.Edges {
		if other.From == e.From && other.To == e.To {
			events = append(events, escape(string(other.On)))
		}
	}
	d.line("    " + d.ids[e.From] + " --> " + d.ids[e.To] + " : " + strings.Join(events, ", "))
}

// plain reports whether a state can be its own identifier.
func plain(s string) bool {
	for _, r := range s {
		if r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
			return false
		}
	}
	return s != "" && s != "state" && s != "end" && !strings.HasPrefix(s, "state_")
}

// escape replaces characters that have a meaning in Mermaid.
func escape(s string) string {
	return strings.NewReplacer(
		"#", "#35;", ":", "#58;", ";", "#59;", `"`, "#34;", "\n", " ", ",", "#44;",
	).Replace(s)
}
