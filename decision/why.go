package decision

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/object"
)

// ErrNoObservation is the error of every Decide function whose observation is nil, or lacks the object to
// decide about: a mistake of its caller.
var ErrNoObservation = errors.New("the observation, or the object that it is about, is missing")

// Reason is the kind of a decision: one word for programs, and the sentence that a [Why] of this
// reason prints as. Two reasons are equal if they are of the same declaration. The zero value is no
// reason.
type Reason struct{ *declaration }

type declaration struct{ name, sentence string }

// NewReason declares a reason. The words that a sentence may contain are those of [Why.String].
func NewReason(name, sentence string) Reason { return Reason{&declaration{name, sentence}} }

// String returns the reason's word, such as "CreationTimeout"; of the zero value "".
func (r Reason) String() string {
	if r.declaration == nil {
		return ""
	}
	return r.name
}

// Why is the reason of one decision, with what the decision was made from. Most fields that the reason's
// sentence does not name are zero. Values are comparable, and making one allocates nothing. The zero
// value gives no reason.
type Why struct {
	Reason Reason
	Name   string     // what the sentence is about: a node, a set, a field
	Detail string     // an answer or a problem
	Object object.Key // another object that the sentence is about: a pod
	Code   codes.Code // of a failure

	Have      int64 // how many there are
	Want      int64 // how many there should be, or may be
	Count     int64 // how many the decision is about
	All       int64 // the whole that Count or Have is a part of
	Ready     int64 // how many are ready
	Available int64 // how many are available
	Number    int64 // a revision, or an ordinal

	For time.Duration // a limit, a wait or an age
	// Cause is the reason of another decision, or another value with a sentence of its own, that
	// this one follows from. Its type must be comparable.
	Cause fmt.Stringer
}

// String returns the sentence of the reason, which a person can act on. Its template may contain
//
//	{name} {detail} {object}          the field; "" in quotes if it is empty
//	{code}                            the code in capitals: NOT_FOUND
//	{have} … {number}                 the number
//	{count|set|sets}                  the number with its noun: "1 set", "3 sets"
//	{for}, {wait}                     For, to the second and to the millisecond
//	{cause}                           the sentence of Cause; nothing without one
//	[; {for} left]                    left out if a field in it is zero
//	[again in {for}|again later]      the second part if a field in the first one is zero
//
// Of the zero value it returns "".
func (w Why) String() string {
	if w.Reason.declaration == nil {
		return ""
	}
	text, _ := w.fill(w.Reason.sentence)
	return text
}

// Figures returns the numbers of the sentence, for logs and metrics: each numeric field that it names, in
// lower case, as an int64, and For as a time.Duration. A number that is zero is left out if the sentence
// leaves it out. The figures of Cause follow, if it has a method Figures.
func (w Why) Figures() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for _, name := range numbers {
			if n, _ := w.number(name); w.says(name, n != 0) && !yield(name, n) {
				return
			}
		}
		if w.For != 0 && (w.says("for", true) || w.says("wait", true)) && !yield("for", w.For) {
			return
		}
		if cause, ok := w.Cause.(interface{ Figures() iter.Seq2[string, any] }); ok {
			cause.Figures()(yield)
		}
	}
}

// numbers are the words for the numeric fields, except for For.
var numbers = []string{"have", "want", "count", "all", "ready", "available", "number"}

// says reports whether the sentence names this field. With optional, parts in brackets count too.
func (w *Why) says(name string, optional bool) bool {
	if w.Reason.declaration == nil {
		return false
	}
	rest := w.Reason.sentence
	for {
		part, after, more := strings.Cut(rest, "[")
		inner, after, _ := strings.Cut(after, "]")
		if optional {
			part += inner
		}
		if strings.Contains(part, "{"+name+"}") || strings.Contains(part, "{"+name+"|") {
			return true
		}
		if rest = after; !more {
			return false
		}
	}
}
