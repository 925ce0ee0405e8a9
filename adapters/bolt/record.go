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

// A record is what the file holds for an object: one byte that names the format, four bytes of
// checksum, and the object as JSON under the names of its Go fields. Fields that a program does not know are DamageContent to it, because its next write would lose them.
const (
	formatJSON = 1
	headLength = 5
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// codec turns the objects of one kind into records and back.
type codec[T object.Object[T]] struct {
	kind string
	elem reflect.Type // T points to it
	utc  func(reflect.Value)
}

func newCodec[T object.Object[T]](kind string) codec[T] {
	elem := reflect.TypeFor[T]().Elem()
	return codec[T]{kind: kind, elem: elem, utc: times(elem)}
}

// encode returns the key and the record of o, and o as decode will return it. It converts the times
// of o to UTC. An object that has no such form is store.ErrInvalid.
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
	// Text that is not UTF-8 is written as U+FFFD, which is escaped only then.
	if !bytes.Contains(content, []byte(`\ufffd`)) {
		return key, record, o, nil
	}
	same, damage := c.content(content)
	if damage != DamageNone {
		return nil, nil, same, fmt.Errorf("%w: its text is not UTF-8", store.ErrInvalid)
	}
	return key, record, same, nil
}

// unwritable returns what encoding/json rejects, without the value, which may be a secret's.
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

func (c *codec[T]) content(text []byte) (T, Damage) {
	var none T
	o, _ := reflect.New(c.elem).Interface().(T) // it is: elem is what T points to
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

// newRecord returns the record of a content.
func newRecord(key, content []byte) []byte {
	record := make([]byte, headLength, headLength+len(content))
	record[0] = formatJSON
	binary.BigEndian.PutUint32(record[1:], checksum(key, content))
	return append(record, content...)
}

// checksum covers the key, so that a record is not taken for another object's.
func checksum(key, content []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, content)
}

// rawKey returns the key of an object in its bucket: the length of the namespace, the namespace,
// then the name.
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

// times returns a function that converts all times within a value of type t to UTC, or nil if there
// are none. RFC 3339 has no seconds in its offsets, as old offsets do, so a time in another zone
// might not come back. The function does not write to times that are in UTC already, because they
// may be shared.
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
		of := times(t.Elem())
		if of == nil {
			return nil
		}
		return func(v reflect.Value) {
			if !v.IsNil() {
				of(v.Elem())
			}
		}
	}
	return nil
}

func timesOfFields(t reflect.Type) func(reflect.Value) {
	moves := make(map[int]func(reflect.Value))
	for i := range t.NumField() {
		if move := times(t.Field(i).Type); move != nil && t.Field(i).IsExported() {
			moves[i] = move
		}
	}
	if len(moves) == 0 {
		return nil
	}
	return func(v reflect.Value) {
		for i, move := range moves {
			move(v.Field(i))
		}
	}
}
