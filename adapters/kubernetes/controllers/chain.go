package controllers

import (
	"reflect"

	"github.com/millwright-go/millwright/manager"
)

// chain merges several Hooks into one, which calls theirs in order. The user's hooks belong at
// the end: a panic in one of them then does not prevent the calls of the library's own.
func chain(parts ...manager.Hooks) manager.Hooks {
	var h manager.Hooks
	fields := reflect.ValueOf(&h).Elem()
	for f := range fields.NumField() {
		var set []reflect.Value
		for i := range parts {
			if hook := reflect.ValueOf(parts[i]).Field(f); !hook.IsNil() {
				set = append(set, hook)
			}
		}
		if len(set) == 0 {
			continue
		}
		fields.Field(f).Set(reflect.MakeFunc(fields.Field(f).Type(), func(args []reflect.Value) []reflect.Value {
			for _, hook := range set {
				hook.Call(args)
			}
			return nil
		}))
	}
	return h
}
