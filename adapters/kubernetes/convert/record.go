package convert

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-go/millwright/object"
)

// RecordType is the type of the condition whose message has the parts of a machine's status that have
// no field in the established kind. The library does not see this condition.
const RecordType = "MillwrightRecord"

const recordInStatus = "status.conditions[" + RecordType + "]"

// record is a part of an object that is stored as an annotation or as an entry of the notes. A new one
// needs a line in the records of its Kind, or in its notes, such as setNotes.
type record[C any] struct {
	name string
	at   func(C) any // a pointer to the part
}

// notes are the parts of a status that have no field, by name. Unknown entries are kept, and the text
// stays exactly the same as long as no entry changes.
type notes struct {
	field   string // path of the field with the line, for errors
	stored  string // the line
	tree    *branch
	entries map[string]string // the pairs of each entry
	changed bool
}

// notes reads the notes of a set or deployment from an annotation.
func (p *problems) notes(w metav1.Object, annotation string) *notes {
	return parseNotes(p, "metadata.annotations["+annotation+"]", w.GetAnnotations()[annotation])
}

func parseNotes(p *problems, field, text string) *notes {
	n := &notes{field: field, stored: text, tree: &branch{}, entries: map[string]string{}}
	if n.parse(text) != nil {
		p.add(field, "can't be read")
		n.tree, n.entries = &branch{}, map[string]string{}
	}
	return n
}

func (n *notes) parse(line string) error {
	pairs, err := parseLine(line)
	if err != nil {
		return err
	}
	if n.tree, err = treeOf(pairs); err != nil {
		return err
	}
	for _, p := range pairs {
		if len(p.path) == 0 {
			return errLine
		}
		name := p.path[0]
		n.entries[name] = strings.TrimLeft(n.entries[name]+" "+p.text, " ")
	}
	return nil
}

// read sets what pointer points to from an entry, if there is one.
func (n *notes) read(p *problems, name string, pointer any) {
	entry := n.tree.below[name]
	if entry == nil {
		return
	}
	v := reflect.ValueOf(pointer).Elem()
	fresh := reflect.New(v.Type())
	if entry.into(fresh.Elem()) != nil {
		p.add(n.field+"."+name, "can't be read")
		return
	}
	v.Set(fresh.Elem())
}

// write replaces the entry if the value has changed.
func (n *notes) write(x *writer, name string, was, now any) {
	if x.entry(name, was) != x.entry(name, now) {
		n.set(x, name, now)
	}
}

// set replaces the entry, or removes it if the value is zero.
func (n *notes) set(x *writer, name string, now any) {
	text, old := x.entry(name, now), n.entries[name]
	if text == old {
		return
	}
	n.changed = true
	if n.entries[name] = text; text == "" {
		delete(n.entries, name)
	}
}

// entry returns what a pointer points to as pairs below a name, or nothing if it is zero.
func (x *writer) entry(name string, pointer any) string {
	value, present := compact(reflect.ValueOf(pointer).Elem())
	if !present {
		return ""
	}
	text, err := lineOf(name, value)
	if err != nil {
		x.fail(object.Invalid("status."+name, "can't be stored"))
	}
	return text
}

// text returns the line to store, or "" if there are no entries.
func (n *notes) text() string {
	if !n.changed {
		return n.stored
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(n.entries)) {
		all = append(all, n.entries[name])
	}
	return strings.Join(all, " ")
}
