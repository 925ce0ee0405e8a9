package fuzzing

import (
	"reflect"
	"time"
)

// Form is how values are written as bytes. Every byte string can be read: what is missing at its
// end reads as zero, nil or empty, and what is left over is not read. Numbers and times take a byte
// or two if they are small or near Now, so that a change of one byte gives a value that matters.
//
// Exported fields of structs are read and written, and time.Time. Interfaces, functions, channels
// and unexported fields stay as they are.
type Form struct {
	// Now is the time from which times are counted, whole seconds.
	Now time.Time
	// Words are the strings that matter to the code under test, at most 200. Other strings are
	// written letter by letter. Committed inputs depend on their order: append new words.
	Words []string
}

// At returns the form of values that a test has made at another time: their times read as if that
// time were Now.
func (f Form) At(now time.Time) Form {
	f.Now = now.Truncate(time.Second)
	return f
}

// Tags of numbers and strings.
const (
	smallNumbers = 200 // tags below: a number from -smallest on
	smallest     = 8
	mostTag      = 200 // the type's largest number
	leastTag     = 201 // its smallest
	wordTags     = 200 // tags below: one of the words; above: the length of what follows
	longTag      = 255 // the next byte is the length
)

// Decode reads values one after the other from data. Each of into is a pointer.
func (f Form) Decode(data []byte, into ...any) {
	r := reader{f, data}
	for _, v := range into {
		r.value(reflect.ValueOf(v).Elem())
	}
}

// Encode writes values one after the other. Each is a pointer. Slices and maps of more than 254
// elements and strings of more than 255 bytes are cut.
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
