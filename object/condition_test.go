package object_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/object"
)

var (
	then = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	now  = then.Add(time.Hour)
)

func TestFindCondition(t *testing.T) {
	list := []object.Condition{{Type: "A"}, {Type: "B", Status: object.True}}
	assert.Same(t, &list[1], object.FindCondition(list, "B"))
	assert.Nil(t, object.FindCondition(list, "C"))
	assert.Nil(t, object.FindCondition(nil, "A"))
}

// Since is when the status last changed: another message leaves it alone.
func TestSetConditionKeepsSinceWithTheStatus(t *testing.T) {
	list := []object.Condition{{Type: "A", Status: object.True, Since: then}, {Type: "B", Status: object.True, Since: then}}
	same := object.SetCondition(list, object.Condition{Type: "B", Status: object.True, Message: "new", Since: now})
	assert.Equal(t, object.Condition{Type: "B", Status: object.True, Message: "new", Since: then}, same[1])
	changed := object.SetCondition(list, object.Condition{Type: "B", Status: object.False, Since: now})
	assert.Equal(t, object.Condition{Type: "B", Status: object.False, Since: now}, changed[1])
	added := object.SetCondition(list, object.Condition{Type: "C", Since: now})
	assert.Len(t, added, 3)
	assert.Equal(t, now, added[2].Since)
	assert.Len(t, list, 2)
}

func TestConditionsAreASet(t *testing.T) {
	types := rapid.SampledFrom([]string{"A", "B", "C"})
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) object.Condition {
			return object.Condition{
				Type: types.Draw(t, "type"), Since: then,
				Status: rapid.SampledFrom([]object.ConditionStatus{object.True, object.False, ""}).Draw(t, "status"),
			}
		}), 0, 4).Draw(t, "conditions")
		before := append([]object.Condition(nil), list...)
		c := object.Condition{Type: types.Draw(t, "set"), Status: object.True, Since: now}
		set := object.SetCondition(list, c)
		count := 0
		for _, s := range set {
			if s.Type == c.Type {
				count++
			}
		}
		require.Equal(t, 1, count, "a type occurs once")
		require.Equal(t, object.True, object.FindCondition(set, c.Type).Status)
		require.Equal(t, object.DropCondition(list, c.Type), object.DropCondition(set, c.Type), "the others stay, in order")
		require.Equal(t, set, object.SetCondition(set, c), "setting again changes nothing")
		dropped := object.DropCondition(set, c.Type)
		require.Nil(t, object.FindCondition(dropped, c.Type))
		require.Len(t, dropped, len(set)-1)
		if len(list) > 0 {
			require.Equal(t, before, list, "the slice passed in was changed")
		}
	})
}

func TestTaintSame(t *testing.T) {
	a := object.Taint{Key: "a", Value: "1", Effect: object.NoSchedule}
	assert.True(t, a.Same(object.Taint{Key: "a", Value: "2", Effect: object.NoSchedule}))
	assert.False(t, a.Same(object.Taint{Key: "a", Value: "1", Effect: object.NoExecute}))
	assert.False(t, a.Same(object.Taint{Key: "b", Value: "1", Effect: object.NoSchedule}))
}
