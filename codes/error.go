package codes

import "fmt"

// Error is a failed provider call: what a driver returns. Build it with [New], [Newf] or [Wrap].
type Error struct {
	// Code says what went wrong. OK and numbers that are no code contradict an error; they count as [Unknown].
	Code Code
	// Message is one sentence a person can read; it may be shown to the owner of the machine. It must hold no
	// secret, and nothing that differs from one attempt to the next (a request ID, a time), since it is stored in
	// status and every change is a write. Such detail belongs into Cause. If it is empty, Cause speaks, or else
	// a sentence about the code.
	Message string
	// Cause is the error below; nil: none. Its own code, if it has one, is overruled by Code.
	Cause error
}

// New returns an error with this code and message.
func New(code Code, message string) *Error {
	return &Error{Code: code, Message: message}
}

// Newf is [New] with a message formatted as by fmt.Sprintf. It takes no %w: an error below goes into [Wrap].
func Newf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap returns an error with this code and message and with cause below it. It is an error even if cause is nil.
func Wrap(code Code, cause error, message string) *Error {
	return &Error{Code: code, Message: message, Cause: cause}
}

// Error returns the code in the wire's spelling, the message, and the cause: "ResourceExhausted: no cores are left in
// zone b: status 403". It is meant for logs; status has [Message].
func (e *Error) Error() string {
	s := e.code().String() + ": " + e.sentence()
	if e != nil && e.Message != "" && e.Cause != nil {
		s += ": " + textOf(e.Cause)
	}
	return s
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

// ofFailure is c as the code of something that did fail.
func (c Code) ofFailure() Code {
	if c == OK || !c.Valid() {
		return Unknown
	}
	return c
}

// sentence is what the error says about itself, without its code; never empty.
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

// Message returns the sentence about err that belongs into status, next to the code that [Of] returns.
//
// An [Error] that nothing was wrapped around speaks for itself: its Message, without code and cause, so that the
// driver decides what the owner reads and a cause that changes with each attempt causes no write. (With an empty
// Message: the text of its cause, or else a sentence about its code.) Of every other error it is the whole text.
// For nil it is empty, for anything else never.
func Message(err error) string {
	if err == nil {
		return ""
	}
	if e, ok := err.(*Error); ok {
		return e.sentence()
	}
	return textOf(err)
}

// textOf is err.Error(), for errors of any quality: an Error method that panics (on a nil receiver, for one) and an
// empty text come out as a sentence too.
func textOf(err error) (text string) {
	defer func() {
		if recover() != nil || text == "" {
			text = fmt.Sprintf("an error of type %T without a readable text", err)
		}
	}()
	return err.Error()
}
