package convert

import (
	"bytes"
	"encoding/json"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-go/millwright/object"
)

// RecordType is the condition in the status of a machine that holds what the
// established kind has no field for. Earlier versions kept those of sets and
// deployments there too. The library never sees it among the conditions.
const RecordType = "MillwrightRecord"

const recordInStatus = "status.conditions[" + RecordType + "]"

// record is a part of an object that is stored under a name of its own: an
// annotation, or an entry of the notes. A new one needs a line
// in the table of its kind.
type record[C any] struct {
	name string
	at   func(C) any // a pointer to the part
}

// notes are the parts of a status without a field, by name. Unknown ones are kept, and the text stays
// exactly the same as long as no entry changes.
type notes struct {
	field   string // where they are
	stored  string
	entries map[string]json.RawMessage
	changed bool
}

// notes returns those of a set or deployment: the annotation, or before there was one the condition.
func (r *reader) notes(w metav1.Object, annotation, condition string) *notes {
	if text, ok := w.GetAnnotations()[annotation]; ok {
		return parseNotes(r.problems, "metadata.annotations["+annotation+"]", text)
	}
	return parseNotes(r.problems, recordInStatus, condition)
}

func parseNotes(p *problems, field, text string) *notes {
	n := &notes{field: field, stored: text}
	if text != "" && json.Unmarshal([]byte(text), &n.entries) != nil {
		p.add(field, "can't be read")
		n.entries = nil
	}
	if n.entries == nil {
		n.entries = map[string]json.RawMessage{}
	}
	return n
}

// read sets what the pointer points to, if there is an entry.
func (n *notes) read(p *problems, name string, pointer any) {
	raw, ok := n.entries[name]
	if !ok {
		return
	}
	v := reflect.ValueOf(pointer).Elem()
	fresh := reflect.New(v.Type())
	if err := json.Unmarshal(raw, fresh.Interface()); err != nil {
		p.add(n.field+"."+name, "can't be read")
		return
	}
	v.Set(fresh.Elem())
}

// write replaces the entry if the value has changed.
func (n *notes) write(x *writer, name string, was, now any) {
	if !bytes.Equal(x.entry(name, was), x.entry(name, now)) {
		n.set(x, name, now)
	}
}

// set replaces the entry. There is none for zero.
func (n *notes) set(x *writer, name string, now any) {
	text, old := x.entry(name, now), n.entries[name]
	if bytes.Equal(text, old) {
		return
	}
	n.changed = true
	if n.entries[name] = text; text == nil {
		delete(n.entries, name)
	}
}

// entry returns what a pointer points to as compact JSON, or nil if it is zero.
func (x *writer) entry(name string, pointer any) json.RawMessage {
	value, present := compact(reflect.ValueOf(pointer).Elem())
	if !present {
		return nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		x.fail(object.Invalid("status."+name, "can't be stored"))
	}
	return text
}

// text returns what is to be stored. If it is empty, nothing is.
func (n *notes) text(x *writer) string {
	switch {
	case !n.changed:
		return n.stored
	case len(n.entries) == 0:
		return ""
	}
	text, err := json.Marshal(n.entries)
	x.fail(err)
	return string(text)
}
