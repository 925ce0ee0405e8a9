package convert_test

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
)

// begin is the time of everything in these tests.
var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// leaf is a field without fields in it.
type leaf struct {
	path string
	set  func(root reflect.Value, value any)
	typ  reflect.Type
}

var (
	timeType = reflect.TypeFor[time.Time]()
	codeType = reflect.TypeFor[codes.Code]()
)

// leaves returns the leaves of a type. It follows pointers, and the first elements of lists. reach
// returns the value of that type from the root value.
func leaves(t reflect.Type, path string, reach func(reflect.Value) reflect.Value) []leaf {
	one := []leaf{{path, func(root reflect.Value, v any) { reach(root).Set(reflect.ValueOf(v).Convert(t)) }, t}}
	switch {
	case t == timeType, t == codeType:
		return one
	case t.Kind() == reflect.Pointer:
		return leaves(t.Elem(), path, func(root reflect.Value) reflect.Value {
			p := reach(root)
			if p.IsNil() {
				p.Set(reflect.New(t.Elem()))
			}
			return p.Elem()
		})
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return leaves(t.Elem(), path+"[]", func(root reflect.Value) reflect.Value {
			list := reach(root)
			if list.Len() == 0 {
				list.Set(reflect.MakeSlice(t, 1, 1))
			}
			return list.Index(0)
		})
	case t.Kind() == reflect.Struct:
		var all []leaf
		for i := range t.NumField() {
			all = append(all, leaves(t.Field(i).Type, strings.TrimPrefix(path+"."+t.Field(i).Name, "."),
				func(root reflect.Value) reflect.Value { return reach(root).Field(i) })...)
		}
		return all
	}
	return one
}

// isQuantity reports whether a map holds quantities.
func isQuantity(path string) bool { return strings.HasSuffix(path, "apacity") }

// sample returns a value for a leaf that is not zero.
func sample(l leaf) any {
	switch {
	case l.typ == timeType:
		return begin
	case l.typ == codeType:
		return codes.ResourceExhausted
	case l.typ == reflect.TypeFor[time.Duration]():
		return 90 * time.Second
	case l.typ.Kind() == reflect.Map && l.typ.Elem().Kind() == reflect.Slice:
		return map[string][]byte{"key": []byte("value")}
	case l.typ.Kind() == reflect.Map && isQuantity(l.path):
		return map[string]string{"cpu": "3"}
	case l.typ.Kind() == reflect.Map:
		return map[string]string{"key": "value"}
	case l.typ.Kind() == reflect.Slice:
		return []byte(`{"size":"large"}`)
	case l.typ.Kind() == reflect.String:
		return "word"
	case l.typ.Kind() == reflect.Bool:
		return true
	}
	return 7
}

// fill sets a value to random content. About a fourth of its parts stay zero.
func fill(t *rapid.T, v reflect.Value, path string) {
	if v.Kind() != reflect.Struct && rapid.IntRange(0, 3).Draw(t, path+" zero") == 0 {
		return
	}
	words := rapid.SampledFrom([]string{"", "word", "Running", "Initiate VM deletion", "a b", "false", "null", "\"x\"", "7", "ä{}"})
	switch {
	case v.Type() == timeType:
		v.Set(reflect.ValueOf(begin.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, path)) * time.Second)))
		return
	case v.Type() == codeType:
		v.SetUint(rapid.Uint64Range(0, 17).Draw(t, path))
		return
	case v.Type() == reflect.TypeFor[time.Duration]():
		v.SetInt(int64(rapid.IntRange(0, 1<<20).Draw(t, path)) * int64(time.Second))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), path)
	case reflect.Slice:
		fillSlice(t, v, path)
	case reflect.Map:
		fillMap(t, v, path, words)
	case reflect.String:
		v.SetString(words.Draw(t, path))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(rapid.Int32Range(0, 9).Draw(t, path)))
	default:
		panic(fmt.Sprintf("%s has a kind that this test does not know: %s", path, v.Kind()))
	}
}

func fillSlice(t *rapid.T, v reflect.Value, path string) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		v.SetBytes([]byte(rapid.SampledFrom([]string{`{}`, `{"list":[1,null],"size":"large"}`, `{"size":12345678901234567890}`}).Draw(t, path)))
		return
	}
	n := rapid.IntRange(1, 3).Draw(t, path+" length")
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := range n {
		if v.Type().Elem().Kind() == reflect.String {
			v.Index(i).SetString(fmt.Sprintf("name-%d", rapid.IntRange(0, 9).Draw(t, path)))
			continue
		}
		fill(t, v.Index(i), path+"[]")
	}
}

func fillMap(t *rapid.T, v reflect.Value, path string, words *rapid.Generator[string]) {
	v.Set(reflect.MakeMap(v.Type()))
	for range rapid.IntRange(1, 3).Draw(t, path+" entries") {
		key := reflect.ValueOf(rapid.SampledFrom([]string{"a", "b", "example.com/c"}).Draw(t, path+" key"))
		switch {
		case v.Type().Elem().Kind() == reflect.Slice:
			v.SetMapIndex(key, reflect.ValueOf([]byte(words.Draw(t, path))))
		case isQuantity(path):
			v.SetMapIndex(key, reflect.ValueOf(rapid.SampledFrom([]string{"1", "2Gi", "500m"}).Draw(t, path)))
		default:
			v.SetMapIndex(key, reflect.ValueOf(words.Draw(t, path)))
		}
	}
}
