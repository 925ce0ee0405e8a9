package object_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/object"
)

func TestSentence(t *testing.T) {
	for _, c := range []struct {
		template string
		pairs    []string
		want     string
	}{
		{"", nil, ""},
		{"nothing to fill", []string{"a", "b"}, "nothing to fill"},
		{"{a} and {b}", []string{"a", "1", "b", "2"}, "1 and 2"},
		{"{a}{a}", []string{"a", "1"}, "11"},
		{"{unknown}", []string{"a", "1"}, "{unknown}"},
		{"{a}", []string{"a"}, "{a}"},
		{"{a}", nil, "{a}"},
		{"{a} {b}", []string{"a", "{b}", "b", "{a}"}, "{b} {a}"},
		{"{a}", []string{"a", ""}, ""},
		{"{a", []string{"a", "1"}, "{a"},
	} {
		assert.Equal(t, c.want, object.Sentence(c.template, c.pairs...), "%q %q", c.template, c.pairs)
	}
}

// Whatever the values hold, what stands around them stays, and they stay whole.
func TestSentenceKeepsValuesWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringOf(rapid.SampledFrom([]rune("{}ab%s\\")))
		a, b := value.Draw(t, "a"), value.Draw(t, "b")
		require.Equal(t, "<"+a+"|"+b+"|"+a+">", object.Sentence("<{a}|{b}|{a}>", "a", a, "b", b))
	})
}

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
