package codes

import (
	"context"
	"fmt"
	"reflect"
)

// Of returns the code of err: OK for nil, and never OK otherwise.
//
// Of walks the whole tree of err, each error before the errors that it wraps, in their order
// (Unwrap() error and Unwrap() []error, as errors.As does). The first code found wins. An error has
// a code if it
//   - is an [Error], or yields one through a method As(any) bool; or
//   - has a method Code() without arguments whose one result has a String() that [Parse] accepts.
//
// The second covers errors of other libraries that have such a method. A gRPC status error has none
// (it has GRPCStatus), so it is [Unknown]. If the code found is OK, it counts as Unknown too, because
// a failure can't be OK.
//
// If there is no code, Of returns [DeadlineExceeded] if context.DeadlineExceeded is anywhere in the
// tree, else [Canceled] if context.Canceled is (both as errors.Is finds them), else Unknown. It
// never reads a message. A method of an error that panics counts as missing. Of stops in an endless
// tree (an error that unwraps to itself) after some thousands of errors.
func Of(err error) Code {
	if err == nil {
		return OK
	}
	w := walk{left: walkLimit}
	if code, ok := w.find(err); ok {
		return code.ofFailure()
	}
	switch {
	case w.deadline:
		return DeadlineExceeded
	case w.canceled:
		return Canceled
	}
	return Unknown
}

// walkLimit is how many errors of one tree are visited. Real trees are much smaller, and the stack
// has room for as many frames.
const walkLimit = 1 << 13

// walk is one pass over a tree of errors.
type walk struct {
	left               int  // errors that may still be visited
	deadline, canceled bool // whether the tree has such an error, as far as visited
}

// find returns the first code at err or below it. It may be OK if a foreign error says so.
func (w *walk) find(err error) (Code, bool) {
	if err == nil || w.left == 0 {
		return Unknown, false
	}
	w.left--
	if code, ok := codeAt(err); ok {
		return code, true
	}
	w.deadline = w.deadline || is(err, context.DeadlineExceeded)
	w.canceled = w.canceled || is(err, context.Canceled)
	many, one := below(err)
	if one != nil {
		return w.find(one)
	}
	for _, e := range many {
		if code, ok := w.find(e); ok {
			return code, true
		}
	}
	return Unknown, false
}

// codeAt returns the code of err itself, without what it wraps.
func codeAt(err error) (Code, bool) {
	if e, ok := err.(*Error); ok {
		return codeOf(e)
	}
	if a, ok := err.(interface{ As(any) bool }); ok {
		if code, ok := codeAs(a); ok {
			return code, true
		}
	}
	return foreignCode(err)
}

// codeOf returns the code of e. A nil *Error, which got into an interface by mistake, has none; its
// method code accepts it.
func codeOf(e *Error) (Code, bool) { return e.code(), e != nil }

// codeAs calls the As method of an error, as errors.As does.
func codeAs(err interface{ As(any) bool }) (code Code, ok bool) {
	defer panicIsNo(&ok)
	var e *Error
	if !err.As(&e) {
		return Unknown, false
	}
	return codeOf(e)
}

var stringer = reflect.TypeFor[fmt.Stringer]()

// foreignCode calls err's method Code if there is one of the right shape. Reflection is the only
// way: the result types of other libraries differ, and no interface matches them all.
func foreignCode(err error) (code Code, ok bool) {
	defer panicIsNo(&ok)
	method := reflect.ValueOf(err).MethodByName("Code")
	if !method.IsValid() {
		return Unknown, false
	}
	shape := method.Type()
	if shape.NumIn() != 0 || shape.NumOut() != 1 {
		return Unknown, false
	}
	if out := shape.Out(0); !out.Implements(stringer) && out.Kind() != reflect.Interface {
		return Unknown, false
	}
	result, ok := method.Call(nil)[0].Interface().(fmt.Stringer)
	if !ok {
		return Unknown, false
	}
	return Parse(result.String())
}

// is reports whether err itself is target, or its method Is says so.
func is(err, target error) (ok bool) {
	defer panicIsNo(&ok)
	if err == target {
		return true
	}
	x, has := err.(interface{ Is(error) bool })
	return has && x.Is(target)
}

// below returns what err wraps: several errors, or one, or nothing.
func below(err error) (many []error, one error) {
	defer func() { _ = recover() }()
	switch x := err.(type) {
	case interface{ Unwrap() error }:
		return nil, x.Unwrap()
	case interface{ Unwrap() []error }:
		return x.Unwrap(), nil
	}
	return nil, nil
}

// panicIsNo sets ok to false if a method of a foreign error panics. It must be deferred.
func panicIsNo(ok *bool) {
	if recover() != nil {
		*ok = false
	}
}
