package object

import "reflect"

// WithDefaults returns the settings p with the default in place of each field that is zero. It returns p
// itself if no such field has a default, and a copy of defaults if p is nil. The result shares slices with
// both.
func WithDefaults[P any](p, defaults *P) *P {
	if p == nil {
		c := *defaults
		return &c
	}
	fields, defaultFields := reflect.ValueOf(p).Elem(), reflect.ValueOf(defaults).Elem()
	var changed *P
	for i := range fields.NumField() {
		if !fields.Field(i).IsZero() || defaultFields.Field(i).IsZero() {
			continue
		}
		if changed == nil {
			changed = new(P)
			*changed = *p
		}
		reflect.ValueOf(changed).Elem().Field(i).Set(defaultFields.Field(i))
	}
	if changed == nil {
		return p
	}
	return changed
}
