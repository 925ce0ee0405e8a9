package fuzzing

import (
	"encoding/binary"
	"math"
	"reflect"
	"time"
)

// reader decodes values.
type reader struct {
	Form
	data []byte
}

// take returns the next n bytes, with zeros for missing ones.
func (r *reader) take(n int) []byte {
	have := min(n, len(r.data))
	out := append(make([]byte, 0, n), r.data[:have]...)
	r.data = r.data[have:]
	return out[:n]
}

func (r *reader) tag() byte { return r.take(1)[0] }

func (r *reader) value(v reflect.Value) {
	switch v.Type() {
	case timeType:
		v.Set(reflect.ValueOf(r.time()))
		return
	case durationType:
		v.SetInt(r.number(math.MinInt64, math.MaxInt64, int64(time.Second)))
		return
	}
	switch {
	case v.Kind() == reflect.Bool:
		v.SetBool(r.tag()&1 == 1)
	case v.Kind() == reflect.Uint8:
		v.SetUint(uint64(r.tag()))
	case v.CanInt():
		least := int64(math.MinInt64) >> (64 - v.Type().Bits())
		v.SetInt(r.number(least, -(least + 1), 1))
	case v.CanUint():
		v.SetUint(uint64(r.number(0, math.MaxInt64, 1)))
	case v.Kind() == reflect.String:
		v.SetString(r.word())
	default:
		r.compound(v)
	}
}

// number reads a number from least to most. Small numbers are multiples of unit.
func (r *reader) number(least, most, unit int64) int64 {
	switch tag := r.tag(); {
	case tag < smallNumbers:
		return max((int64(tag)-smallest)*unit, least)
	case tag == mostTag:
		return most
	case tag == leastTag:
		return least
	}
	return min(max(int64(binary.LittleEndian.Uint64(r.take(8))), least), most)
}

func (r *reader) time() time.Time {
	switch r.tag() % 4 {
	case 1:
		return r.Now.Add(time.Duration(int16(binary.LittleEndian.Uint16(r.take(2)))) * time.Second)
	case 2:
		return r.Now.Add(time.Duration(int32(binary.LittleEndian.Uint32(r.take(4)))) * time.Second)
	case 3:
		seconds := int64(binary.LittleEndian.Uint64(r.take(8)))
		return time.Unix(seconds, int64(binary.LittleEndian.Uint32(r.take(4))%1e9)).UTC()
	}
	return time.Time{}
}

func (r *reader) word() string {
	switch tag := r.tag(); {
	case int(tag) < len(r.Words) && tag < wordTags:
		return r.Words[tag]
	case tag < wordTags:
		return ""
	case tag == longTag:
		return string(r.take(int(r.tag())))
	default:
		return string(r.take(int(tag - wordTags)))
	}
}

func (r *reader) compound(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				r.value(v.Field(i))
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			r.value(v.Index(i))
		}
	case reflect.Pointer:
		v.SetZero()
		if r.tag()&1 == 1 {
			v.Set(reflect.New(v.Type().Elem()))
			r.value(v.Elem())
		}
	case reflect.Slice:
		r.elements(v, reflect.MakeSlice(v.Type(), 0, 0), func() {
			v.Set(reflect.Append(v, r.element(v.Type().Elem())))
		})
	case reflect.Map:
		r.elements(v, reflect.MakeMap(v.Type()), func() {
			key := r.element(v.Type().Key())
			v.SetMapIndex(key, r.element(v.Type().Elem()))
		})
	}
}

// elements reads a slice or a map: first its count, which is 0 for nil and otherwise the length plus 1,
// and then its elements, until data ends.
func (r *reader) elements(v, empty reflect.Value, read func()) {
	v.SetZero()
	count := r.tag()
	if count > 0 {
		v.Set(empty)
	}
	for ; count > 1 && len(r.data) > 0; count-- {
		read()
	}
}

func (r *reader) element(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	r.value(v)
	return v
}
