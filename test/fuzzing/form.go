package fuzzing

import (
	"reflect"
	"time"
)

// Form encodes values as bytes. Any bytes can be decoded: missing bytes at the end give zero, nil or empty
// values, and extra bytes are ignored. Small numbers and times near Now take one to three bytes, so that
// the change of a byte gives another useful value.
//
// In structs, exported fields are encoded. Interfaces, functions, channels and unexported fields are
// skipped.
type Form struct {
	// Now is the time that times are relative to. It must be whole seconds.
	Now time.Time
	// Words are at most 200 strings that matter to the code under test. Each is encoded as one byte. Other
	// strings are encoded letter by letter. Stored inputs depend on the order: only append new words.
	Words []string
}

// At returns a Form to encode values with times around now. When f decodes them, their times are around
// f.Now instead.
func (f Form) At(now time.Time) Form {
	f.Now = now.Truncate(time.Second)
	return f
}

// A tag is the first byte of a number or a string.
const (
	smallNumbers = 200 // lower tags: the number tag-smallest
	smallest     = 8
	mostTag      = 200 // the largest number of the type
	leastTag     = 201 // the smallest number of the type
	wordTags     = 200 // lower tags: the index of a word; other tags: wordTags plus the length of the string
	longTag      = 255 // number: 8 bytes follow; string: the next byte is the length
)

// Decode decodes values one after the other from data. Each of into is a pointer to a value.
func (f Form) Decode(data []byte, into ...any) {
	r := reader{f, data}
	for _, v := range into {
		r.value(reflect.ValueOf(v).Elem())
	}
}

// Encode encodes values one after the other. Each is a pointer to a value. Slices and maps are cut to 254
// elements, and strings to 255 bytes.
func (f Form) Encode(values ...any) []byte {
	w := writer{Form: f}
	for _, v := range values {
		w.value(reflect.ValueOf(v).Elem())
	}
	return w.out
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
)
