package engine

import (
	"errors"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/store"
)

// CodeOf returns the code of an error of a store or of the cluster: that of codes.Of if the error
// has one, else that of the same meaning as the error of package store that it is. An error that
// says nothing counts as UNAVAILABLE: the server did not answer. Nil is OK.
func CodeOf(err error) codes.Code {
	if code := codes.Of(err); code != codes.Unknown {
		return code
	}
	for _, known := range [...]struct {
		err  error
		code codes.Code
	}{
		{store.ErrInvalid, codes.InvalidArgument},
		{store.ErrForbidden, codes.PermissionDenied},
		{store.ErrUnauthenticated, codes.Unauthenticated},
		{store.ErrConflict, codes.Aborted},
		{store.ErrNotFound, codes.NotFound},
		{store.ErrAlreadyExists, codes.AlreadyExists},
		{store.ErrThrottled, codes.Unavailable},
	} {
		if errors.Is(err, known.err) {
			return known.code
		}
	}
	return codes.Unavailable
}
