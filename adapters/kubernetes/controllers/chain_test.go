package controllers

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/manager"
)

// TestChain: each hook of the chain calls those of its parts, in order. A hook that no part sets stays
// nil.
func TestChain(t *testing.T) {
	var called []string
	recording := func(name string) (h manager.Hooks) {
		v := reflect.ValueOf(&h).Elem()
		for f := range v.NumField() {
			v.Field(f).Set(reflect.MakeFunc(v.Field(f).Type(), func([]reflect.Value) []reflect.Value {
				called = append(called, name+" "+v.Type().Field(f).Name)
				return nil
			}))
		}
		return h
	}
	none := reflect.ValueOf(chain(manager.Hooks{}, manager.Hooks{}))
	both := reflect.ValueOf(chain(recording("first"), manager.Hooks{}, recording("second")))
	for f := range both.NumField() {
		called = nil
		field := both.Type().Field(f)
		require.True(t, none.Field(f).IsNil(), field.Name)
		args := make([]reflect.Value, field.Type.NumIn())
		for i := range args {
			args[i] = reflect.Zero(field.Type.In(i))
		}
		both.Field(f).Call(args)
		require.Equal(t, []string{"first " + field.Name, "second " + field.Name}, called)
	}
}
