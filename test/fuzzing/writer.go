package fuzzing

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"
)

// writer encodes values.
type writer struct {
	Form
	out []byte
}

func (w *writer) put(b ...byte) { w.out = append(w.out, b...) }

func (w *writer) flag(yes bool) {
	if yes {
		w.put(1)
		return
	}
	w.put(0)
}

func (w *writer) value(v reflect.Value) {
	switch v.Type() {
	case timeType:
		w.time(v.Interface().(time.Time))
		return
	case durationType:
		w.number(v.Int(), int64(time.Second))
		return
	}
	switch {
	case v.Kind() == reflect.Bool:
		w.flag(v.Bool())
	case v.Kind() == reflect.Uint8:
		w.put(byte(v.Uint()))
	case v.CanInt():
		w.number(v.Int(), 1)
	case v.CanUint():
		w.number(int64(v.Uint()), 1)
	case v.Kind() == reflect.String:
		w.word(v.String())
	default:
		w.compound(v)
	}
}

func (w *writer) number(n, unit int64) {
	if n%unit == 0 && n/unit >= -smallest && n/unit < smallNumbers-smallest {
		w.put(byte(n/unit + smallest))
		return
	}
	w.put(longTag)
	w.out = binary.LittleEndian.AppendUint64(w.out, uint64(n))
}

func (w *writer) time(t time.Time) {
	if t.IsZero() {
		w.put(0)
		return
	}
	apart := t.Sub(w.Now)
	seconds := int64(apart / time.Second)
	switch {
	case apart%time.Second == 0 && seconds == int64(int16(seconds)):
		w.put(1)
		w.out = binary.LittleEndian.AppendUint16(w.out, uint16(seconds))
	case apart%time.Second == 0 && seconds == int64(int32(seconds)):
		w.put(2)
		w.out = binary.LittleEndian.AppendUint32(w.out, uint32(seconds))
	default:
		w.put(3)
		w.out = binary.LittleEndian.AppendUint64(w.out, uint64(t.Unix()))
		w.out = binary.LittleEndian.AppendUint32(w.out, uint32(t.Nanosecond()))
	}
}

func (w *writer) word(s string) {
	if i := slices.Index(w.Words, s); i >= 0 && i < wordTags {
		w.put(byte(i))
		return
	}
	s = s[:min(len(s), math.MaxUint8)]
	if len(s) < longTag-wordTags {
		w.put(byte(wordTags + len(s)))
	} else {
		w.put(longTag, byte(len(s)))
	}
	w.put([]byte(s)...)
}

func (w *writer) compound(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				w.value(v.Field(i))
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			w.value(v.Index(i))
		}
	case reflect.Pointer:
		w.flag(!v.IsNil())
		if !v.IsNil() {
			w.value(v.Elem())
		}
	case reflect.Slice:
		for i := range w.count(v) {
			w.value(v.Index(i))
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int {
			return cmp.Compare(fmt.Sprint(a.Interface()), fmt.Sprint(b.Interface()))
		})
		for _, key := range keys[:w.count(v)] {
			w.value(key)
			w.value(v.MapIndex(key))
		}
	}
}

// count writes the count of a slice or a map (see reader.elements), and returns how many elements follow.
func (w *writer) count(v reflect.Value) int {
	if v.IsNil() {
		w.put(0)
		return 0
	}
	n := min(v.Len(), math.MaxUint8-1)
	w.put(byte(n + 1))
	return n
}
