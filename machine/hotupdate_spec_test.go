package machine_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/machine"
)

func classOf(spec string) *machine.Class {
	return &machine.Class{Provider: "model", ProviderSpec: []byte(spec)}
}

// TestOnlyDeclaredFieldsDiffer holds the comparison to examples.
func TestOnlyDeclaredFieldsDiffer(t *testing.T) {
	for _, c := range []struct {
		a, b, fields string
		only, same   bool
	}{
		{`{"size":"s","tags":{"a":"1"}}`, `{"tags":{"b":"2"},"size":"s"}`, "tags", true, false},
		{`{"size":"s","tags":{"a":"1"}}`, `{"size":"s"}`, "tags", true, false},
		{`{"size":"s","tags":null}`, `{"size":"s"}`, "tags", true, false},
		{`{"size":"s","tags":{"a":"1"}}`, `{"size":"m","tags":{"a":"1"}}`, "tags", false, false},
		{`{"size":"s","tags":{}}`, `{ "tags": {}, "size": "s" }`, "tags", true, true},
		{`{"size":"s"}`, `{"size":"s"}`, "tags", true, true},
		{`{"size":"s","Tags":1}`, `{"size":"s","Tags":2}`, "tags", false, false},
		{`{"n":[{"id":1,"tags":1},{"id":2}]}`, `{"n":[{"id":1,"tags":2},{"id":2,"tags":3}]}`, "n.tags", true, false},
		{`{"n":[{"id":1,"tags":1}]}`, `{"n":[{"id":2,"tags":1}]}`, "n.tags", false, false},
		{`{"n":[{"tags":1}]}`, `{"n":[{"tags":1},{}]}`, "n.tags", false, false},
		{`{"n":[[{"tags":1}]]}`, `{"n":[[{"tags":2}]]}`, "n.tags", true, false},
		{`{"n":{"tags":1}}`, `{}`, "n.tags", false, false},
		{`{"n":1}`, `{"n":2}`, "n.tags", false, false},
		{`{"n":1}`, `{"n":2}`, "n.tags,n", true, false},
		{`{"n":{"a":1}}`, `{"n":{"b":1}}`, "n,n.tags", true, false},
		{`{"v":1}`, `{"v":1.0}`, "tags", false, false},
		{`{"v":12345678901234567890}`, `{"v":12345678901234567891}`, "tags", false, false},
		{`{"tags":12345678901234567890}`, `{"tags":12345678901234567891}`, "tags", true, false},
		{`{"a.b":1}`, `{"a.b":2}`, "a.b", false, false},
		{`{"":1}`, `{"":2}`, "", false, false},
		{`{"a":{"":1}}`, `{"a":{"":2}}`, "a.", false, false},
		{`{"tags":1,"tags":2}`, `{"tags":1,"tags":3}`, "tags", false, false},
		{`{"tags":1} `, `{"tags":2}`, "tags", true, false},
		{`{"tags":1}x`, `{"tags":2}x`, "tags", false, false},
		{`[{"tags":1}]`, `[{"tags":2}]`, "tags", false, false},
		{"tags: 1", "tags: 2", "tags", false, false},
		{"", "", "tags", true, true},
		{"", "{}", "tags", false, false},
		{`{"tags":"` + "\xff" + `"}`, `{"tags":"` + "\xfe" + `"}`, "tags", false, false},
	} {
		fields := strings.Split(c.fields, ",")
		a, b := machine.SplitSpec(classOf(c.a), fields), machine.SplitSpec(classOf(c.b), fields)
		assert.Equal(t, c.only, a.Fixed == b.Fixed && a.Declared == b.Declared, "%s and %s by %s", c.a, c.b, c.fields)
		assert.Equal(t, c.same, a == b, "%s and %s by %s", c.a, c.b, c.fields)
		assert.Empty(t, a.Begun)
	}
}

// Of another provider nothing is comparable, and what is declared is spelled in
// one way.
func TestSplitSpecSaysOfWhat(t *testing.T) {
	a := classOf(`{"size":"s"}`)
	b := a.Clone()
	b.Provider = "another"
	assert.NotEqual(t, machine.SplitSpec(a, nil).Fixed, machine.SplitSpec(b, nil).Fixed)
	b.Provider, b.ProviderSpec = "", []byte(`model{"size":"s"}`)
	assert.NotEqual(t, machine.SplitSpec(a, nil).Fixed, machine.SplitSpec(b, nil).Fixed)
	got := machine.SplitSpec(a, []string{"tags", "nics.tags", "nics.tags", "nics.tags.a", "a,b", "", "x..y", "disks"})
	assert.Equal(t, "disks,nics.tags,tags", got.Declared)
	assert.Len(t, got.Fixed, 32)
}

// A spec that is nested without end is opaque, not a reason to fail.
func TestDeepSpecsAreOpaque(t *testing.T) {
	deep := `{"a":` + strings.Repeat("[", 1<<16) + strings.Repeat("]", 1<<16) + `}`
	assert.Empty(t, machine.SplitSpec(classOf(deep), []string{"a"}).Updatable)
	assert.NotEmpty(t, machine.SplitSpec(classOf(`{"a":[[[[1]]]]}`), []string{"a"}).Updatable)
}

// anyJSON is a spec that fields may be found in.
func anyJSON(t *rapid.T, depth int) any {
	kinds := 4
	if depth == 0 {
		kinds = 2
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return rapid.SampledFrom([]any{nil, "x", true}).Draw(t, "word")
	case 1:
		return json.Number(rapid.SampledFrom([]string{"0", "1", "1.0", "1e3"}).Draw(t, "number"))
	case 2:
		list := []any{}
		for range rapid.IntRange(0, 2).Draw(t, "length") {
			list = append(list, anyJSON(t, depth-1))
		}
		return list
	}
	return anyObject(t, depth)
}

func anyObject(t *rapid.T, depth int) map[string]any {
	o := map[string]any{}
	for _, key := range []string{"tags", "nics", "size"} {
		if rapid.Bool().Draw(t, key) {
			o[key] = anyJSON(t, depth-1)
		}
	}
	return o
}

var anyFields = rapid.SampledFrom([][]string{
	nil, {"tags"}, {"nics.tags"}, {"tags", "nics.tags"}, {"nics.nics.tags", "size"}, {"nics", "nics.tags"}, {"tags.tags"},
})

// without is a slow oracle: a copy of a value without the declared fields.
func without(value any, path string, fields []string) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, v := range value {
			below := strings.TrimPrefix(path+"."+k, ".")
			if !slices.Contains(fields, below) {
				out[k] = without(v, below, fields)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, v := range value {
			out = append(out, without(v, path, fields))
		}
		return out
	}
	return value
}

// mutate changes some values of declared fields, or anything.
func mutate(t *rapid.T, value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, k := range []string{"tags", "nics", "size"} {
			v, there := value[k]
			switch rapid.IntRange(0, 7).Draw(t, "change "+k) {
			case 0:
				out[k] = anyJSON(t, 1)
			case 1:
			default:
				if there {
					out[k] = mutate(t, v)
				}
			}
		}
		return out
	case []any:
		out := []any{}
		for _, v := range value {
			out = append(out, mutate(t, v))
		}
		return out
	}
	return value
}

func text(value any) string {
	out, err := json.Marshal(value)
	if err != nil {
		panic(err) // it was made of what can be written
	}
	return string(out)
}

// TestSplitSpecAgainstOracle: Fixed is the same exactly if the specs are the
// same without the declared fields, all exactly if they are the same, and then
// one can be restored from the other (P4).
func TestSplitSpecAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fields := anyFields.Draw(t, "fields")
		a := any(anyObject(t, 4))
		b := mutate(t, a)
		checkSplit(t, text(a), text(b), a, b, fields)
	})
}

func checkSplit(t require.TestingT, textA, textB string, a, b any, fields []string) {
	splitA, splitB := machine.SplitSpec(classOf(textA), fields), machine.SplitSpec(classOf(textB), fields)
	only := reflect.DeepEqual(without(a, "", fields), without(b, "", fields))
	require.Equal(t, only, splitA.Fixed == splitB.Fixed, "%s and %s by %s", textA, textB, fields)
	require.Equal(t, reflect.DeepEqual(a, b), splitA == splitB, "%s and %s by %s", textA, textB, fields)
	if only {
		restored := machine.RestoreSpec(classOf(textB), splitA)
		require.JSONEq(t, textA, string(restored))
		require.Equal(t, splitA, machine.SplitSpec(classOf(string(restored)), fields))
	}
}

// FuzzSplitSpec: any two specs can be compared, and what is said to differ in
// tags alone differs in nothing else.
func FuzzSplitSpec(f *testing.F) {
	for _, c := range [][2]string{
		{`{"size":"s","tags":{"a":"1"}}`, `{"tags":{},"size":"s"}`}, {`{"n":[{"tags":1}]}`, `{"n":[{}]}`},
		{"", "null"}, {`{"tags":1,"tags":2}`, "[]"}, {`{"a":"\ud800"}`, `{"a":"\ud801"}`}, {"{", "\xff"}, {`{"n":{"tags":[]}}`, `{"n":{}}`},
		{`{"n":[{"tags":1},{}]}`, `{"n":[{"tags":1}]}`},
	} {
		f.Add(c[0], c[1])
	}
	fields := []string{"tags", "n.tags"}
	f.Fuzz(func(t *testing.T, textA, textB string) {
		a, b := machine.SplitSpec(classOf(textA), fields), machine.SplitSpec(classOf(textB), fields)
		if textA == textB {
			require.Equal(t, a, b)
		}
		_ = machine.RestoreSpec(classOf(textA), b) // of anything
		if a.Updatable == "" || a.Fixed != b.Fixed {
			return
		}
		var valueA, valueB any
		require.NoError(t, json.Unmarshal([]byte(textA), &valueA))
		require.NoError(t, json.Unmarshal([]byte(textB), &valueB))
		require.Equal(t, without(valueA, "", fields), without(valueB, "", fields))
		restored := machine.RestoreSpec(classOf(textB), a)
		require.Equal(t, a, machine.SplitSpec(classOf(string(restored)), fields))
	})
}

// Until an update has been answered a VM may have the values from before it or
// those after it, so a record of both loses no name, in lists too.
func TestRecordsOfABegunUpdateLoseNoName(t *testing.T) {
	for _, c := range []struct{ first, second, want string }{
		{`{"tags":{"a":"1"}}`, `{"tags":{"b":"2"}}`, `{"tags":{"a":"1","b":"2"}}`},
		{`{"tags":{"a":"1"}}`, `{"tags":{"a":"2"}}`, `{"tags":{"a":"2"}}`},
		{`{"disks":[{"tags":{"a":"1"}}]}`, `{"disks":[{"tags":{"b":"2"}}]}`, `{"disks":[{"tags":{"a":"1","b":"2"}}]}`},
		{
			`{"disks":[{"tags":{"a":"1"}},null]}`, `{"disks":[{"tags":{"a":"3"}},{"tags":{"b":"2"}}]}`,
			`{"disks":[{"tags":{"a":"3"}},{"tags":{"b":"2"}}]}`,
		},
		{`{"n":[[{"tags":1}]]}`, `{"n":[[{"labels":2}]]}`, `{"n":[[{"labels":2,"tags":1}]]}`},
		{`{"n":[1]}`, `{"n":[2,3]}`, `{"n":[2,3]}`},
		{`{"n":{"a":1}}`, `{"n":[2]}`, `{"n":[2]}`},
		{"", `{"tags":1}`, `{"tags":1}`},
		{`{"tags":1}`, "", `{"tags":1}`},
	} {
		assert.Equal(t, c.want, machine.Unite(c.first, c.second), "%s and %s", c.first, c.second)
	}
}
