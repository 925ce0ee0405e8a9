package apistore

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

var (
	errNoObject = fmt.Errorf("%w: no object given", store.ErrInvalid)
	errNoName   = fmt.Errorf("%w: it has no name", store.ErrInvalid)
	errNoSpace  = fmt.Errorf("%w: it has no namespace", store.ErrInvalid)
	errSpace    = fmt.Errorf("%w: this kind has no namespaces", store.ErrInvalid)
	errVersion  = fmt.Errorf("%w: it has no version", store.ErrInvalid)
	errNoIndex  = fmt.Errorf("%w: a value needs an index", store.ErrInvalid)
)

// refused joins an error of package store and the server's error. errors.Is and errors.As find both.
type refused struct {
	as  error
	err error
}

// Error implements error.
func (r *refused) Error() string { return r.as.Error() + ": " + r.err.Error() }

// Unwrap returns both errors.
func (r *refused) Unwrap() []error { return []error{r.as, r.err} }

// Translate wraps an error of the server in the error of package store with the same meaning. With the
// result, errors.Is and errors.As find both. If there is no such error, Translate returns err.
func Translate(err error) error {
	switch {
	case err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case apierrors.IsNotFound(err):
		return &refused{store.ErrNotFound, err}
	case apierrors.IsAlreadyExists(err):
		return &refused{store.ErrAlreadyExists, err}
	case apierrors.IsConflict(err):
		return &refused{store.ErrConflict, err}
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return &refused{store.ErrInvalid, err}
	case apierrors.IsRequestEntityTooLargeError(err):
		return &refused{store.ErrTooLarge, err}
	case apierrors.IsForbidden(err):
		return &refused{store.ErrForbidden, err}
	case apierrors.IsUnauthorized(err):
		return &refused{store.ErrUnauthenticated, err}
	case apierrors.IsTooManyRequests(err):
		return &refused{store.ErrThrottled, err}
	}
	return err
}

// about names the verb and the object that an error is about.
func about(verb string, k object.Key, err error) error {
	if k.Name == "" && k.Namespace == "" {
		return fmt.Errorf("%s: %w", verb, err)
	}
	return fmt.Errorf("%s %s: %w", verb, k, err)
}
