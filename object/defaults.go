package object

import "reflect"

// WithDefaults returns the settings p with the default in place of each field that is zero: p itself if no
// such field has a default, and a copy of defaults if p is nil. The result shares their slices.
func WithDefaults[P any](p, defaults *P) *P {
	if p == nil {
		c := *defaults
		return &c
	}
	is, others := reflect.ValueOf(p).Elem(), reflect.ValueOf(defaults).Elem()
	var changed *P
	for i := range is.NumField() {
		if !is.Field(i).IsZero() || others.Field(i).IsZero() {
			continue
		}
		if changed == nil {
			changed = new(P)
			*changed = *p
		}
		reflect.ValueOf(changed).Elem().Field(i).Set(others.Field(i))
	}
	if changed == nil {
		return p
	}
	return changed
}
