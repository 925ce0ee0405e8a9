package object_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/object"
)

func TestFieldError(t *testing.T) {
	err := object.Invalid("spec.replicas", "must not be negative")
	key := object.Key{Namespace: "fleet", Name: "a"}
	assert.EqualError(t, err, "spec.replicas must not be negative")
	assert.EqualError(t, err.Of("set", key), "set fleet/a: spec.replicas must not be negative")
	assert.EqualError(t, err.Of("", key), "fleet/a: spec.replicas must not be negative")
	assert.EqualError(t, err.Of("set", object.Key{}), "set: spec.replicas must not be negative")
	assert.EqualError(t, err, "spec.replicas must not be negative", "Of makes a copy")
	wrapped := fmt.Errorf("store: %w", err)
	assert.ErrorIs(t, wrapped, object.ErrInvalid)
	assert.NotErrorIs(t, wrapped, errors.New("invalid"))
	var field *object.FieldError
	require.ErrorAs(t, wrapped, &field)
	assert.Equal(t, "spec.replicas", field.Field)
	assert.False(t, strings.HasPrefix(err.Of("", key).Error(), " "))
}
