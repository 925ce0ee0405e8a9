package bolt

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"reflect"
	"time"
	"unicode/utf8"

	"go.etcd.io/bbolt"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// A record is the stored form of an object: a byte with the format, four bytes of checksum, and the
// object as JSON with the names of its Go fields. An unknown field makes the record damaged
// (DamageContent), because the next write would lose the field.
const (
	formatJSON = 1
	headLength = 5
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// codec turns the objects of one kind into records and back.
type codec[T object.Object[T]] struct {
	kind string
	elem reflect.Type        // the type that T points to
	utc  func(reflect.Value) // converts all times in an elem to UTC; nil if it has none
}

func newCodec[T object.Object[T]](kind string) codec[T] {
	elem := reflect.TypeFor[T]().Elem()
	return codec[T]{kind: kind, elem: elem, utc: times(elem)}
}

// encode returns the raw key and the record of o, and the object that decode will return for it: o
// itself, unless some of its text is not UTF-8. It converts the times of o to UTC. If o can't be written,
// the error is store.ErrInvalid.
func (c *codec[T]) encode(o T) (key, record []byte, same T, err error) {
	if key, err = rawKey(o.ObjectMeta().Key); err != nil {
		return nil, nil, same, err
	}
	if c.utc != nil {
		c.utc(reflect.ValueOf(o).Elem())
	}
	content, err := json.Marshal(o)
	if err != nil {
		return nil, nil, same, fmt.Errorf("%w: %s", store.ErrInvalid, unwritable(err))
	}
	record = newRecord(key, content)
	// json.Marshal replaces invalid UTF-8 by an escaped U+FFFD. It never escapes a U+FFFD of the text.
	if !bytes.Contains(content, []byte(`\ufffd`)) {
		return key, record, o, nil
	}
	same, damage := c.content(content)
	if damage != DamageNone {
		return nil, nil, same, fmt.Errorf("%w: its text is not UTF-8", store.ErrInvalid)
	}
	return key, record, same, nil
}

// unwritable returns the text of an error of encoding/json without the value, which may be secret.
func unwritable(err error) string {
	var marshaler *json.MarshalerError
	if errors.As(err, &marshaler) {
		return "it holds a " + marshaler.Type.String() + " that can't be written"
	}
	return "it can't be written"
}

// decode returns the object of a record, or what is wrong with it.
func (c *codec[T]) decode(key, record []byte) (T, *DamagedError) {
	var none T
	damaged := &DamagedError{Kind: c.kind, raw: bytes.Clone(key)}
	var ok bool
	if damaged.Key, ok = keyOf(key); !ok {
		damaged.Damage = DamageKey
		return none, damaged
	}
	var o T
	switch {
	case len(record) < headLength || record[0] != formatJSON:
		damaged.Damage = DamageFormat
	case binary.BigEndian.Uint32(record[1:]) != checksum(key, record[headLength:]):
		damaged.Damage = DamageChecksum
	default:
		o, damaged.Damage = c.content(record[headLength:])
	}
	if damaged.Damage != DamageNone {
		return none, damaged
	}
	if meta := o.ObjectMeta(); meta.Key != damaged.Key || meta.UID == "" || meta.Version == "" {
		damaged.Damage = DamageIdentity
		return none, damaged
	}
	return o, nil
}

// content decodes the JSON of a record.
func (c *codec[T]) content(text []byte) (T, Damage) {
	var none T
	o, _ := reflect.New(c.elem).Interface().(T) // always ok, because T is *elem
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(o); err != nil {
		return none, DamageContent
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return none, DamageContent
	}
	if c.utc != nil {
		c.utc(reflect.ValueOf(o).Elem())
	}
	return o, DamageNone
}

// newRecord returns a record with this content.
func newRecord(key, content []byte) []byte {
	record := make([]byte, headLength, headLength+len(content))
	record[0] = formatJSON
	binary.BigEndian.PutUint32(record[1:], checksum(key, content))
	return append(record, content...)
}

// checksum covers the key, too, so that a record is not valid under another key.
func checksum(key, content []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, content)
}

// rawKey returns the key of an object in its bucket: the length of the namespace, the namespace, and
// the name.
func rawKey(k object.Key) ([]byte, error) {
	if !utf8.ValidString(k.Namespace) || !utf8.ValidString(k.Name) {
		return nil, fmt.Errorf("%w: its name is not UTF-8", store.ErrInvalid)
	}
	raw := binary.AppendUvarint(make([]byte, 0, 1+len(k.Namespace)+len(k.Name)), uint64(len(k.Namespace)))
	raw = append(append(raw, k.Namespace...), k.Name...)
	if len(raw) > bbolt.MaxKeySize {
		return nil, fmt.Errorf("%w: its name is longer than %d bytes", store.ErrInvalid, bbolt.MaxKeySize)
	}
	return raw, nil
}

// keyOf returns the object key of a raw key, and false if it is none.
func keyOf(raw []byte) (object.Key, bool) {
	length, n := binary.Uvarint(raw)
	if n <= 0 || length > uint64(len(raw)-n) {
		return object.Key{}, false
	}
	rest := string(raw[n:])
	k := object.Key{Namespace: rest[:length], Name: rest[length:]}
	again, err := rawKey(k)
	return k, err == nil && k.Name != "" && bytes.Equal(again, raw)
}

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
