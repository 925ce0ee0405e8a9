package convert

import (
	"encoding"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/millwright-go/millwright/deployment/rollout"
)

// encode returns the text of what a pointer points to: a plain text for strings, numbers, percentages,
// times and durations, else a line without fields that are zero. It returns "" for a zero value.
func encode(pointer any) (string, error) {
	v := reflect.ValueOf(pointer).Elem()
	if v.IsZero() {
		return "", nil
	}
	switch x := pointer.(type) {
	case *time.Duration:
		return x.String(), nil
	case *time.Time:
		return stamp(*x), nil
	case *rollout.IntOrPercent:
		text, err := x.MarshalText()
		return string(text), err
	}
	switch v.Kind() {
	case reflect.String:
		return v.String(), nil
	case reflect.Int32, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10), nil
	}
	value, present := compact(v)
	if !present {
		return "", nil
	}
	return lineOf("", value)
}

// decode is the reverse of encode. Fields that the text omits become zero. After an error the value is
// unchanged.
func decode(text string, pointer any) error {
	v := reflect.ValueOf(pointer).Elem()
	fresh := reflect.New(v.Type())
	if err := decodeInto(text, fresh); err != nil {
		return err
	}
	v.Set(fresh.Elem())
	return nil
}

func decodeInto(text string, fresh reflect.Value) error {
	switch x := fresh.Interface().(type) {
	case *time.Duration:
		d, err := time.ParseDuration(text)
		*x = d
		return err
	case *time.Time:
		at, err := time.Parse(time.RFC3339, text)
		*x = at.UTC()
		return err
	case *rollout.IntOrPercent:
		return x.UnmarshalText([]byte(text))
	}
	switch v := fresh.Elem(); v.Kind() {
	case reflect.String:
		v.SetString(text)
		return nil
	case reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		v.SetInt(n)
		return err
	}
	pairs, err := parseLine(text)
	if err != nil {
		return err
	}
	tree, err := treeOf(pairs)
	if err != nil {
		return err
	}
	return tree.into(fresh.Elem())
}

// stamp formats a time. Fractions of a second are cut off.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// compact turns a value into one for lineOf: structs become maps of their fields that are not zero. It
// returns false if there is nothing to write.
func compact(v reflect.Value) (any, bool) {
	switch x := v.Interface().(type) {
	case time.Time:
		return stamp(x), !x.IsZero()
	case encoding.TextMarshaler:
		if v.Kind() != reflect.Pointer {
			return x, !v.IsZero()
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil, false
		}
		value, _ := compact(v.Elem()) // a pointer to zero is written: it is not nil
		return value, true
	case reflect.Struct:
		object := map[string]any{}
		addFields(object, v)
		return object, len(object) > 0
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i], _ = compact(v.Index(i))
		}
		return list, len(list) > 0
	}
	return v.Interface(), !v.IsZero() && (v.Kind() != reflect.Map || v.Len() > 0)
}

func addFields(object map[string]any, v reflect.Value) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Anonymous && field.Type.Kind() == reflect.Struct {
			addFields(object, v.Field(i))
			continue
		}
		if value, present := compact(v.Field(i)); present {
			object[fieldName(field.Name)] = value
		}
	}
}

// fieldName returns the name of a Go field in a record: it begins with a small letter, and ID becomes
// id.
func fieldName(name string) string {
	if name == strings.ToUpper(name) {
		return strings.ToLower(name)
	}
	return strings.ToLower(name[:1]) + name[1:]
}
