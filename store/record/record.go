// Package record turns objects into JSON and back, for stores that keep them as records.
//
// The JSON has the names of the Go fields. All times are in UTC. A field that this program does not know is an
// error when a record is read, because the next write would lose it: a program must not manage objects that
// a newer one has written with such a field.
package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"unicode/utf8"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// ErrContent says that a record is not JSON, does not fit its kind, or has a field that this program does not know.
var ErrContent = errors.New("has content that does not fit its kind")

// Codec turns the objects of one kind into records and back. NewCodec makes it. It is safe for concurrent
// use.
type Codec[T object.Object[T]] struct {
	elem reflect.Type        // the type that T points to
	utc  func(reflect.Value) // converts all times in an elem to UTC; nil if it has none
}

// NewCodec returns the codec of the kind T, which is a pointer to a struct.
func NewCodec[T object.Object[T]]() Codec[T] {
	elem := reflect.TypeFor[T]().Elem()
	return Codec[T]{elem: elem, utc: times(elem)}
}

// Encode returns the record of o, and the object that Decode will return for it: o itself, unless some of its
// text is not UTF-8; invalid bytes are replaced by U+FFFD then. It converts the times of o to UTC. The error is
// store.ErrInvalid, if o can't be written, such as a time after the year 9999, or a name that is not UTF-8. It
// does not contain the value.
func (c *Codec[T]) Encode(o T) (content []byte, same T, err error) {
	if meta := o.ObjectMeta(); !utf8.ValidString(meta.Namespace) || !utf8.ValidString(meta.Name) {
		return nil, same, fmt.Errorf("%w: its name is not UTF-8", store.ErrInvalid)
	}
	if c.utc != nil {
		c.utc(reflect.ValueOf(o).Elem())
	}
	content, err = json.Marshal(o)
	if err != nil {
		return nil, same, fmt.Errorf("%w: %s", store.ErrInvalid, unwritable(err))
	}
	// json.Marshal replaces invalid UTF-8 by an escaped U+FFFD. It never escapes a U+FFFD of the text.
	if !bytes.Contains(content, []byte(`\ufffd`)) {
		return content, o, nil
	}
	if same, err = c.Decode(content); err != nil {
		return nil, same, fmt.Errorf("%w: its text is not UTF-8", store.ErrInvalid)
	}
	return content, same, nil
}

// unwritable returns the text of an error of encoding/json without the value, which may be secret.
func unwritable(err error) string {
	var marshaler *json.MarshalerError
	if errors.As(err, &marshaler) {
		return "it holds a " + marshaler.Type.String() + " that can't be written"
	}
	return "it can't be written"
}

// Decode returns the object of a record. The error is ErrContent. It does not contain the record.
func (c *Codec[T]) Decode(content []byte) (T, error) {
	var none T
	o, _ := reflect.New(c.elem).Interface().(T) // always ok, because T is *elem
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(o); err != nil {
		return none, ErrContent
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return none, ErrContent
	}
	if c.utc != nil {
		c.utc(reflect.ValueOf(o).Elem())
	}
	return o, nil
}
