package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"unicode/utf8"

	"go.etcd.io/bbolt"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/record"
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
	json record.Codec[T]
	seal record.Sealer // nil: records are not sealed
}

func newCodec[T object.Object[T]](kind string, seal record.Sealer) codec[T] {
	return codec[T]{kind: kind, json: record.NewCodec[T](), seal: seal}
}

// encode returns the raw key and the record of o, and the object that decode will return for it: o
// itself, unless some of its text is not UTF-8. It converts the times of o to UTC. If o can't be written,
// the error is store.ErrInvalid.
func (c *codec[T]) encode(o T) (key, stored []byte, same T, err error) {
	if key, err = rawKey(o.ObjectMeta().Key); err != nil {
		return nil, nil, same, err
	}
	content, same, err := c.json.Encode(o)
	if err == nil {
		content, err = record.Seal(c.seal, content)
	}
	if err != nil {
		return nil, nil, same, err
	}
	return key, newRecord(key, content), same, nil
}

// decode returns the object of a record, or what is wrong with it.
func (c *codec[T]) decode(key, stored []byte) (T, *DamagedError) {
	var none T
	damaged := &DamagedError{Kind: c.kind, raw: bytes.Clone(key)}
	var ok bool
	if damaged.Key, ok = keyOf(key); !ok {
		damaged.Damage = DamageKey
		return none, damaged
	}
	var o T
	switch {
	case len(stored) < headLength || stored[0] != formatJSON:
		damaged.Damage = DamageFormat
	case binary.BigEndian.Uint32(stored[1:]) != checksum(key, stored[headLength:]):
		damaged.Damage = DamageChecksum
	default:
		content, err := record.Open(c.seal, stored[headLength:])
		if err == nil {
			o, err = c.json.Decode(content)
		}
		switch {
		case errors.Is(err, record.ErrSealed):
			damaged.Damage = DamageSealed
		case err != nil:
			damaged.Damage = DamageContent
		}
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
