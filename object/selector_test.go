package object_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/object"
)

func requiring(key string, op object.Operator, values ...string) object.Selector {
	return object.Selector{Requirements: []object.Requirement{{Key: key, Operator: op, Values: values}}}
}

func TestSelectorMatches(t *testing.T) {
	labels := map[string]string{"pool": "a", "empty": ""}
	for name, c := range map[string]struct {
		selector object.Selector
		want     bool
	}{
		"zero":                      {object.Selector{}, false},
		"empty maps":                {object.Selector{Labels: map[string]string{}, Requirements: []object.Requirement{}}, false},
		"label":                     {object.Selector{Labels: map[string]string{"pool": "a"}}, true},
		"label, other value":        {object.Selector{Labels: map[string]string{"pool": "b"}}, false},
		"label, absent":             {object.Selector{Labels: map[string]string{"zone": ""}}, false},
		"label, empty value":        {object.Selector{Labels: map[string]string{"empty": ""}}, true},
		"label, one of two":         {object.Selector{Labels: map[string]string{"pool": "a", "zone": "z"}}, false},
		"In":                        {requiring("pool", object.In, "b", "a"), true},
		"In, others":                {requiring("pool", object.In, "b"), false},
		"In, absent":                {requiring("zone", object.In, ""), false},
		"NotIn":                     {requiring("pool", object.NotIn, "b"), true},
		"NotIn, listed":             {requiring("pool", object.NotIn, "a"), false},
		"NotIn, absent":             {requiring("zone", object.NotIn, "a"), true},
		"Exists":                    {requiring("empty", object.Exists), true},
		"Exists, absent":            {requiring("zone", object.Exists), false},
		"DoesNotExist":              {requiring("zone", object.DoesNotExist), true},
		"DoesNotExist, present":     {requiring("pool", object.DoesNotExist), false},
		"invalid: In nothing":       {requiring("pool", object.In), false},
		"invalid: NotIn nothing":    {requiring("pool", object.NotIn), false},
		"invalid: Exists of values": {requiring("pool", object.Exists, "a"), false},
		"invalid: absent of values": {requiring("zone", object.DoesNotExist, "a"), false},
		"invalid: no key":           {requiring("", object.DoesNotExist), false},
		"invalid: operator":         {requiring("pool", "Gt", "1"), false},
		"label and requirement": {object.Selector{
			Labels: map[string]string{"pool": "a"}, Requirements: []object.Requirement{{Key: "pool", Operator: object.NotIn, Values: []string{"a"}}},
		}, false},
	} {
		assert.Equal(t, c.want, c.selector.Matches(labels), name)
	}
	assert.False(t, (&object.Selector{}).Matches(nil))
	absent := requiring("zone", object.DoesNotExist)
	assert.True(t, absent.Matches(nil))
}

// oracle is a plain implementation of what the documentation of Matches says.
func oracle(s object.Selector, labels map[string]string) bool {
	failed := s.Validate("x") != nil || len(s.Labels)+len(s.Requirements) == 0
	for k, v := range s.Labels {
		failed = failed || !holds(object.Requirement{Key: k, Operator: object.In, Values: []string{v}}, labels)
	}
	for _, r := range s.Requirements {
		failed = failed || !holds(r, labels)
	}
	return !failed
}

func holds(r object.Requirement, labels map[string]string) bool {
	present, listed := false, false
	for k, v := range labels {
		present = present || k == r.Key
		for _, value := range r.Values {
			listed = listed || k == r.Key && v == value
		}
	}
	return map[object.Operator]bool{
		object.In: listed, object.NotIn: !listed, object.Exists: present, object.DoesNotExist: !present,
	}[r.Operator]
}

var (
	anyLabel    = rapid.SampledFrom([]string{"", "a", "b", "c"})
	anyLabels   = rapid.MapOfN(anyLabel, anyLabel, 0, 3)
	anySelector = rapid.Custom(func(t *rapid.T) object.Selector {
		return object.Selector{
			Labels: rapid.MapOfN(anyLabel, anyLabel, 0, 2).Draw(t, "labels"),
			Requirements: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) object.Requirement {
				return object.Requirement{
					Key: anyLabel.Draw(t, "key"),
					Operator: rapid.SampledFrom([]object.Operator{
						object.In, object.NotIn, object.Exists, object.DoesNotExist, "", "Gt",
					}).Draw(t, "operator"),
					Values: rapid.SliceOfN(anyLabel, 0, 2).Draw(t, "values"),
				}
			}), 0, 2).Draw(t, "requirements"),
		}
	})
)

// An empty or invalid selector matches nothing, so that a mistake claims no fleet.
func TestSelectorMatchesAsTheOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, labels := anySelector.Draw(t, "selector"), anyLabels.Draw(t, "labels")
		require.Equal(t, oracle(s, labels), s.Matches(labels))
	})
}

func TestSelectorValidate(t *testing.T) {
	for want, s := range map[string]object.Selector{
		`spec.selector.labels has an empty key`:                                     {Labels: map[string]string{"": "a"}},
		`spec.selector.requirements[0].values must not be empty for operator NotIn`: requiring("a", object.NotIn),
		`spec.selector.requirements[0].values must be empty for operator Exists`:    requiring("a", object.Exists, "b"),
		`spec.selector.requirements[0].operator "Gt" is unknown`:                    requiring("a", "Gt"),
		`spec.selector.requirements[0].key must not be empty`:                       requiring("", object.Exists),
		`spec.selector.requirements[1].values must not be empty for operator In`: {Requirements: []object.Requirement{
			{Key: "a", Operator: object.Exists}, {Key: "a", Operator: object.In}}},
	} {
		err := s.Validate("spec.selector")
		assert.EqualError(t, err, want)
		assert.ErrorIs(t, err, object.ErrInvalid)
	}
	assert.NoError(t, (&object.Selector{}).Validate("spec.selector"), "the owner decides whether it may be empty")
}

func TestSelectorClone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySelector.Draw(t, "selector")
		kept, c := s.Clone(), s.Clone()
		require.True(t, s.Equal(&c))
		require.Equal(t, s.Empty(), c.Empty())
		for k := range c.Labels {
			c.Labels[k] += "blot"
		}
		for i := range c.Requirements {
			c.Requirements[i].Key += "blot"
			for j := range c.Requirements[i].Values {
				c.Requirements[i].Values[j] += "blot"
			}
		}
		require.True(t, s.Equal(&kept), "the copy shares something")
		if !s.Empty() {
			require.False(t, s.Equal(&c))
		}
	})
}
