package convert_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/adapters/kubernetes/convert"
)

// drawJSON draws a JSON value without null, which no merge patch can write.
func drawJSON(depth int) *rapid.Generator[any] {
	kinds := []*rapid.Generator[any]{
		rapid.Map(rapid.SampledFrom([]string{"", "a", "b"}), func(s string) any { return s }),
		rapid.Map(rapid.Int64Range(0, 2), func(n int64) any { return n }),
	}
	if depth > 0 {
		kinds = append(kinds,
			rapid.Map(rapid.SliceOfN(drawJSON(depth-1), 0, 2), func(l []any) any { return l }),
			rapid.Map(drawObject(depth-1), func(m map[string]any) any { return m }),
			rapid.Map(drawObject(depth-1), func(m map[string]any) any { return m }))
	}
	return rapid.OneOf(kinds...)
}

func drawObject(depth int) *rapid.Generator[map[string]any] {
	return rapid.MapOfN(rapid.SampledFrom([]string{"x", "y", "z"}), drawJSON(depth), 0, 3)
}

// A patch turns one object into the other, and has only fields that differ.
func TestDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		was, is := drawObject(2).Draw(t, "was"), drawObject(2).Draw(t, "is")
		for name, value := range was {
			if rapid.Bool().Draw(t, "stays") {
				is[name] = value
			}
		}
		patch, err := convert.Difference(was, is)
		require.NoError(t, err)
		for name := range patch {
			require.NotEqual(t, was[name], is[name], "the patch has a field that does not differ")
		}
		text := func(value any) []byte {
			out, err := json.Marshal(value)
			require.NoError(t, err)
			return out
		}
		require.JSONEq(t, string(text(is)), string(text(apply(parse(t, text(was)), patch))))
		if len(patch) == 0 {
			require.Equal(t, was, is)
		}
	})
}
