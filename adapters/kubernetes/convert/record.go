package convert

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/millwright-go/millwright/object"
)

// RecordType is the condition in a status that holds what the established kinds
// have no field for. The library never sees it among the conditions.
const RecordType = "MillwrightRecord"

// record is a part of an object that is stored under a name of its own: an
// annotation, or an entry of the condition RecordType. A new one needs a line
// in the table of its kind.
type record[C any] struct {
	name string
	at   func(C) any // a pointer to the part
}

// notes are the entries of the condition RecordType. Unknown ones are kept, and the text stays
// exactly the same as long as no entry changes.
type notes struct {
	stored  string
	entries map[string]json.RawMessage
	changed bool
}

func parseNotes(p *problems, text string) *notes {
	n := &notes{stored: text}
	if text != "" && json.Unmarshal([]byte(text), &n.entries) != nil {
		p.add("status.conditions["+RecordType+"]", "can't be read")
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
		p.add("status.conditions["+RecordType+"]."+name, "can't be read")
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

// text returns the message of the condition. If it is empty, there should be no condition.
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
