package codes

import (
	"fmt"
	"time"
)

// Error is a failed provider call, as a driver returns it. Build it with [New], [Newf] or [Wrap].
type Error struct {
	// Code is the outcome. OK and numbers that are no code contradict an error; they count as
	// [Unknown].
	Code Code
	// Message is one sentence for people. The owner of the machine may read it. It must hold no
	// secret. It must hold nothing that differs from one attempt to the next (a request ID, a
	// time), because it is stored in status and every change is a write. Such details belong in
	// Cause. If Message is empty, the text of Cause is used, or else a sentence about the code.
	Message string
	// Cause is the wrapped error, or nil. Code takes precedence over a code of its own.
	Cause error
	// RetryAfter, if positive, says that the provider limits calls: it has done nothing, and wants
	// no call with these credentials for so long. Set it only if the provider asks for it, for
	// example by HTTP's Retry-After or a throttling error. The call is repeated later. Whatever
	// Code is, it does not count as a failure of its machine, pool or list. UNAVAILABLE is a good
	// Code. See [RetryAfter].
	RetryAfter time.Duration
}

// New returns an error with this code and message.
func New(code Code, message string) *Error {
	return &Error{Code: code, Message: message}
}

// Newf is [New] with a message formatted as by fmt.Sprintf. It takes no %w: use [Wrap] to wrap an
// error.
func Newf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap returns an error with this code and message and with cause below it. It is an error even if
// cause is nil.
func Wrap(code Code, cause error, message string) *Error {
	return &Error{Code: code, Message: message, Cause: cause}
}

// Error returns the code in the wire's spelling, the message, and the cause: "ResourceExhausted: no
// cores are left in zone b: status 403". It is meant for logs; status has [Message].
func (e *Error) Error() string {
	s := e.code().String() + ": " + e.sentence()
	if e != nil && e.Message != "" && e.Cause != nil {
		s += ": " + textOf(e.Cause)
	}
	return s
}

// RetryAfter returns how long the provider asks to wait before the next call, from the first error
// in err's tree that says so: an [Error] with the field set, or an error with a method
// RetryAfter() time.Duration. The tree is walked as by [Of]. Zero: no error asks for it.
func RetryAfter(err error) time.Duration {
	left := walkLimit
	return retryAfter(err, &left)
}

func retryAfter(err error, left *int) time.Duration {
	if err == nil || *left == 0 {
		return 0
	}
	*left--
	if d := retryAfterAt(err); d > 0 {
		return d
	}
	many, one := below(err)
	if one != nil {
		return retryAfter(one, left)
	}
	for _, e := range many {
		if d := retryAfter(e, left); d > 0 {
			return d
		}
	}
	return 0
}

// retryAfterAt returns the wait that err itself asks for. It ignores methods that panic.
func retryAfterAt(err error) (d time.Duration) {
	defer func() {
		if recover() != nil {
			d = 0
		}
	}()
	switch e := err.(type) {
	case *Error:
		if e != nil {
			return e.RetryAfter
		}
	case interface{ RetryAfter() time.Duration }:
		return e.RetryAfter()
	}
	return 0
}

// Unwrap returns the cause, nil if there is none.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Cause
}

// code is the code as callers see it: never OK, always valid.
func (e *Error) code() Code {
	if e == nil {
		return Unknown
	}
	return e.Code.ofFailure()
}

// ofFailure returns c as the code of a failure: Unknown for OK and for numbers that are no code.
func (c Code) ofFailure() Code {
	if c == OK || !c.Valid() {
		return Unknown
	}
	return c
}

// sentence returns what the error says about itself, without its code. It is never empty.
func (e *Error) sentence() string {
	switch {
	case e == nil:
	case e.Message != "":
		return e.Message
	case e.Cause != nil:
		return textOf(e.Cause)
	}
	return namings[e.code()].sentence
}

// Message returns the sentence about err for status, next to the code that [Of] returns.
//
// For an [Error] that no other error wraps it is the field Message, without code and cause. So the driver
// decides what the owner reads, and a cause that changes with each attempt causes no write. If Message is
// empty, it is the text of the cause, or else a sentence about the code. For every other error it is the
// whole text. It is empty for nil only.
func Message(err error) string {
	if err == nil {
		return ""
	}
	if e, ok := err.(*Error); ok {
		return e.sentence()
	}
	return textOf(err)
}

// textOf returns err.Error(), for any error. It returns a sentence for an Error method that panics
// (on a nil receiver, for example) and for an empty text.
func textOf(err error) (text string) {
	defer func() {
		if recover() != nil || text == "" {
			text = fmt.Sprintf("an error of type %T without a readable text", err)
		}
	}()
	return err.Error()
}
