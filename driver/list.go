package driver

import (
	"maps"
	"strings"
)

// List is the part of a response that maps each ID to its owner. Validation needs it to move
// entries that can't be acted upon to Dropped, in copies of both maps.
type List[V any] struct {
	ID, Owner        string // as messages name them: "a provider ID", "a machine's name"
	Entries, Dropped *map[string]V
	// Name returns the text of an owner that must not be blank.
	Name func(owner V) string
	// Texts passes each text of an owner to the function each, and returns the owner with the results.
	Texts func(owner V, each func(text string) string) V
}

// Bounds returns the bounds of IDs and owners. An entry beyond them moves to Dropped, shortened.
func (l List[V]) Bounds() []Bound {
	longestID, longestText := 0, 0
	measure := func(text string) string { longestText = max(longestText, len(text)); return text }
	for of, v := range *l.Entries {
		longestID = max(longestID, len(of))
		l.Texts(v, measure)
	}
	return []Bound{
		{Name: l.ID, Size: longestID, Most: MaxID, Drop: l.dropLong},
		{Name: l.Owner, Size: longestText, Most: MaxName, Drop: l.dropLong},
	}
}

func (l List[V]) dropLong() {
	l.divide(func(id string, owner V) bool {
		long := len(id) > MaxID
		l.Texts(owner, func(text string) string { long = long || len(text) > MaxName; return text })
		return long
	})
}

// DropBlank drops entries without an ID or an owner's name, and reports whether
// there were any.
func (l List[V]) DropBlank() bool {
	return l.divide(func(id string, owner V) bool { return blank(id) || blank(l.Name(owner)) })
}

// divide drops the bad entries, and reports whether there were any.
func (l List[V]) divide(bad func(id string, owner V) bool) bool {
	good, dropped := maps.Clone(*l.Entries), maps.Clone(*l.Dropped)
	if dropped == nil {
		dropped = make(map[string]V)
	}
	for id, owner := range *l.Entries {
		if bad(id, owner) {
			delete(good, id)
			dropped[shortened(id, MaxID)] = l.Texts(owner, func(text string) string { return shortened(text, MaxName) })
		}
	}
	if len(good) == len(*l.Entries) {
		return false
	}
	*l.Entries, *l.Dropped = good, dropped
	return true
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// shortened returns a text of at most limit bytes, with a mark where it was cut, so that it is no real
// name.
func shortened(text string, limit int) string {
	const mark = " … (cut)"
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(mark)], "") + mark
}
