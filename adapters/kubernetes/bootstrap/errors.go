package bootstrap

import (
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/millwright-go/millwright/codes"
)

// ErrTaken is the error of Ensure if another token has the ID of the owner's token. The owner has to
// wait until that token is gone. The code is ALREADY_EXISTS.
var ErrTaken = errors.New("another token has the ID that follows from the owner's UID")

var errDeleting = errors.New("the owner's token is being deleted")

// errDamaged needs a person: with a new secret half, machines of the group could not join, because
// their user data has the old one.
var errDamaged = errors.New("the secret that keeps the pool's token is damaged: restore it, or delete it and update the pool")

// codeOf returns the code of an error, which decides the retry.
func codeOf(err error) codes.Code {
	var status apierrors.APIStatus
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	case errors.Is(err, ErrTaken):
		return codes.AlreadyExists
	case errors.Is(err, errDeleting), apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return codes.Aborted
	case apierrors.IsForbidden(err):
		return codes.PermissionDenied
	case apierrors.IsUnauthorized(err):
		return codes.Unauthenticated
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return codes.InvalidArgument
	case apierrors.IsNotFound(err), errors.Is(err, errDamaged):
		return codes.PreconditionFailed
	case errors.As(err, &status) && status.Status().Code < 500 && !apierrors.IsTooManyRequests(err):
		return codes.Unknown
	}
	return codes.Unavailable // no answer, or only that the server can't answer now
}

// about adds the name of the call to an error.
func about(verb string, err error) error {
	if err == nil {
		return nil
	}
	return &callError{verb, err}
}

// callError is the error of a call to the server.
type callError struct {
	verb string
	err  error
}

// Error implements error.
func (e *callError) Error() string { return e.verb + ": " + e.err.Error() }

// Unwrap implements errors.Unwrap.
func (e *callError) Unwrap() error { return e.err }

// vanished reports whether an update failed because the secret is gone.
func vanished(err error) bool {
	var of *callError
	return errors.As(err, &of) && of.verb == "update" && apierrors.IsNotFound(err)
}

// redactError removes the secret half of a token from an error's text: a server might repeat it there.
func redactError(err error, half string) error {
	if !strings.Contains(err.Error(), half) {
		return err
	}
	return &redacted{strings.ReplaceAll(err.Error(), half, "(secret)"), err}
}

// redacted is err with another text.
type redacted struct {
	text string
	err  error
}

// Error implements error.
func (e *redacted) Error() string { return e.text }

// Unwrap implements errors.Unwrap.
func (e *redacted) Unwrap() error { return e.err }

// failure is the error of a call on an owner's token. Its text may be shown in the owner's status.
type failure struct {
	secret string
	err    error
}

// Error implements error.
func (e *failure) Error() string { return "secret " + e.secret + ": " + e.err.Error() }

// Unwrap implements errors.Unwrap.
func (e *failure) Unwrap() error { return e.err }

// Code returns the code for codes.Of.
func (e *failure) Code() codes.Code { return codeOf(e.err) }
