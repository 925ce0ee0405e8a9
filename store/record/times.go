package record

import (
	"reflect"
	"time"
)

var timeType = reflect.TypeFor[time.Time]()

// times returns a function that converts all times in a value of type t to UTC, or nil if there are
// none. Times in other zones might not be read back as they were written, because offsets in RFC 3339
// have no seconds. The function does not write to times in UTC, because other objects may share them.
func times(t reflect.Type) func(reflect.Value) {
	switch {
	case t == timeType:
		return func(v reflect.Value) {
			if at, _ := v.Interface().(time.Time); at.Location() != time.UTC {
				v.Set(reflect.ValueOf(at.UTC()))
			}
		}
	case t.Kind() == reflect.Struct:
		return timesOfFields(t)
	case t.Kind() == reflect.Slice:
		each := times(t.Elem())
		if each == nil {
			return nil
		}
		return func(v reflect.Value) {
			for i := range v.Len() {
				each(v.Index(i))
			}
		}
	case t.Kind() == reflect.Pointer:
		convert := times(t.Elem())
		if convert == nil {
			return nil
		}
		return func(v reflect.Value) {
			if !v.IsNil() {
				convert(v.Elem())
			}
		}
	}
	return nil
}

// timesOfFields is times for a struct.
func timesOfFields(t reflect.Type) func(reflect.Value) {
	converts := make(map[int]func(reflect.Value))
	for i := range t.NumField() {
		if convert := times(t.Field(i).Type); convert != nil && t.Field(i).IsExported() {
			converts[i] = convert
		}
	}
	if len(converts) == 0 {
		return nil
	}
	return func(v reflect.Value) {
		for i, convert := range converts {
			convert(v.Field(i))
		}
	}
}
