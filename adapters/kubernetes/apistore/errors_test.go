package apistore_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/millwright-go/millwright/adapters/kubernetes/apistore"
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/store"
)

// TestTranslate: each error of a server is the error of package store with its meaning, keeps the
// server's text, and has the code that decides the retry. If there is no answer, it is UNAVAILABLE.
func TestTranslate(t *testing.T) {
	t.Parallel()
	nodes, silence := schema.GroupResource{Resource: "nodes"}, errors.New("connection refused")
	for answer, want := range map[error]struct {
		err  error
		code codes.Code
	}{
		apierrors.NewInvalid(schema.GroupKind{Kind: "Node"}, "a", nil):     {store.ErrInvalid, codes.InvalidArgument},
		apierrors.NewBadRequest("no"):                                      {store.ErrInvalid, codes.InvalidArgument},
		apierrors.NewRequestEntityTooLargeError("3 MiB"):                   {store.ErrTooLarge, codes.InvalidArgument},
		apierrors.NewForbidden(nodes, "a", errors.New("a policy says no")): {store.ErrForbidden, codes.PermissionDenied},
		apierrors.NewUnauthorized("who"):                                   {store.ErrUnauthenticated, codes.Unauthenticated},
		apierrors.NewTooManyRequests("later", 3):                           {store.ErrThrottled, codes.Unavailable},
		apierrors.NewConflict(nodes, "a", errors.New("changed")):           {store.ErrConflict, codes.Aborted},
		apierrors.NewNotFound(nodes, "a"):                                  {store.ErrNotFound, codes.NotFound},
		apierrors.NewAlreadyExists(nodes, "a"):                             {store.ErrAlreadyExists, codes.AlreadyExists},
		apierrors.NewInternalError(errors.New("etcd")):                     {nil, codes.Unavailable},
		apierrors.NewServiceUnavailable("starting"):                        {nil, codes.Unavailable},
		silence: {silence, codes.Unavailable},
	} {
		got := apistore.Translate(answer)
		assert.ErrorIs(t, got, answer)
		assert.ErrorContains(t, got, answer.Error())
		if want.err != nil {
			assert.ErrorIs(t, got, want.err)
		}
		assert.Equal(t, want.code, engine.CodeOf(got), "%v", answer)
	}
	assert.NoError(t, apistore.Translate(nil))
}
