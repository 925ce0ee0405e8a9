package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/store"
)

// TestCodesOfStores: each error of package store has the code of its meaning, however it is wrapped. Only a server
// that did not answer is UNAVAILABLE.
func TestCodesOfStores(t *testing.T) {
	for err, want := range map[error]codes.Code{
		store.ErrInvalid: codes.InvalidArgument, store.ErrTooLarge: codes.InvalidArgument, store.ErrForbidden: codes.PermissionDenied,
		store.ErrUnauthenticated: codes.Unauthenticated, store.ErrConflict: codes.Aborted, store.ErrNotFound: codes.NotFound,
		store.ErrAlreadyExists: codes.AlreadyExists, store.ErrThrottled: codes.Unavailable, errors.New("EOF"): codes.Unavailable,
		context.DeadlineExceeded: codes.DeadlineExceeded, context.Canceled: codes.Canceled, codes.New(codes.DataLoss, "lost"): codes.DataLoss,
	} {
		assert.Equal(t, want, engine.CodeOf(err), "%v", err)
		assert.Equal(t, want, engine.CodeOf(fmt.Errorf("update node a: %w", err)), "%v", err)
	}
	assert.Equal(t, codes.OK, engine.CodeOf(nil))
}
