package controllers

import (
	"reflect"

	"github.com/millwright-go/millwright/manager"
)

// chain returns hooks that call those of all, in order. The embedder's come last, so that a panic
// in one of them does not keep the library's from being called.
func chain(all ...manager.Hooks) manager.Hooks {
	var h manager.Hooks
	fields := reflect.ValueOf(&h).Elem()
	for f := range fields.NumField() {
		var set []reflect.Value
		for i := range all {
			if hook := reflect.ValueOf(all[i]).Field(f); !hook.IsNil() {
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
