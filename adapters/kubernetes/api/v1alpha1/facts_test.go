package v1alpha1_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/config"
)

// definition has the parts of a CustomResourceDefinition that other programs rely on.
type definition struct {
	Spec struct {
		Group string
		Scope string
		Names struct {
			Kind, ListKind, Plural, Singular string
			ShortNames                       []string
		}
		Versions []version
	}
}

type version struct {
	Name            string
	Served, Storage bool
	Columns         []column `json:"additionalPrinterColumns"`
	Subresources    map[string]any
	Schema          struct{ OpenAPIV3Schema map[string]any }
}

type column struct {
	Name, Type, JSONPath string
	Priority             int
}

// load reads the definitions of the established API group, by the plurals of their kinds.
func load(t *testing.T) map[string]definition {
	t.Helper()
	all := map[string]definition{}
	for _, c := range config.CRDs() {
		var d definition
		require.NoError(t, yaml.Unmarshal(c.YAML, &d))
		if d.Spec.Group == v1alpha1.GroupVersion.Group {
			all[d.Spec.Names.Plural] = d
		}
	}
	return all
}

// facts reads a file of testdata, which has the established definitions in short form.
func facts(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	require.NoError(t, err)
	return text
}

// Names, short names, subresources and columns of the kinds are the established ones.
func TestDefinitionsAreTheEstablishedOnes(t *testing.T) {
	var want map[string]struct {
		Kind, ListKind, Singular string
		ShortNames               []string
		Subresources             map[string]any
		Columns                  []column
	}
	require.NoError(t, yaml.UnmarshalStrict(facts(t, "kinds.yaml"), &want))
	have := load(t)
	require.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(have)))
	for plural, fact := range want {
		t.Run(plural, func(t *testing.T) {
			s := have[plural].Spec
			assert.Equal(t, "machine.sapcloud.io", s.Group)
			assert.Equal(t, "Namespaced", s.Scope)
			assert.Equal(t, fact.Kind, s.Names.Kind)
			assert.Equal(t, fact.ListKind, s.Names.ListKind)
			assert.Equal(t, fact.Singular, s.Names.Singular)
			assert.Equal(t, fact.ShortNames, s.Names.ShortNames)
			require.Len(t, s.Versions, 1)
			v := s.Versions[0]
			assert.Equal(t, "v1alpha1", v.Name)
			assert.True(t, v.Served && v.Storage)
			assert.Equal(t, fmt.Sprint(fact.Subresources), fmt.Sprint(v.Subresources))
			established := slices.DeleteFunc(slices.Clone(v.Columns), func(c column) bool { return !slices.Contains(fact.Columns, c) })
			assert.Equal(t, fact.Columns, established, "columns are missing or in another order (further columns may be between them)")
		})
	}
}

// structure lists the keywords of a schema that describe handles by itself, or leaves out.
var structure = map[string]bool{
	"type": true, "format": true, "properties": true, "items": true, "additionalProperties": true, "required": true, "description": true,
	"anyOf":                      true, // of a number and a string, wherever int-or-string is
	"x-kubernetes-int-or-string": true, "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-list-type": true, "x-kubernetes-map-type": true,
	"pattern": true,
}

// describe returns the words about a field in fields.txt, after its path.
func describe(schema map[string]any, required bool) string {
	kind, typed := schema["type"].(string)
	if schema["x-kubernetes-int-or-string"] == true {
		kind, typed = "int-or-string", true
	}
	if !typed {
		kind = "-"
	}
	words := []string{kind}
	add := func(when bool, word string) {
		if when {
			words = append(words, word)
		}
	}
	add(schema["format"] != nil, fmt.Sprint("format=", schema["format"]))
	add(required, "required")
	add(schema["x-kubernetes-preserve-unknown-fields"] == true, "keep")
	add(schema["x-kubernetes-list-type"] != nil, fmt.Sprint("list=", schema["x-kubernetes-list-type"]))
	add(schema["x-kubernetes-map-type"] != nil, fmt.Sprint("map=", schema["x-kubernetes-map-type"]))
	add(schema["pattern"] != nil, "pattern")
	for _, name := range slices.Sorted(maps.Keys(schema)) {
		add(!structure[name], name) // such as default or enum: the established fields have none
	}
	return strings.Join(words, " ")
}

// fields adds the description of a schema and of all below it to into, by path. In a path, [] are
// the items of a list, and * the values of a map.
func fields(schema map[string]any, path string, required bool, into map[string]string) {
	into[path] = describe(schema, required)
	below := func(step string, value any, required bool) {
		if s, ok := value.(map[string]any); ok {
			fields(s, strings.TrimPrefix(path+step, "."), required, into)
		}
	}
	names, _ := schema["required"].([]any)
	inner, _ := schema["properties"].(map[string]any)
	for name, field := range inner {
		below("."+name, field, slices.Contains(names, any(name)))
	}
	below("[]", schema["items"], false)
	below(".*", schema["additionalProperties"], false)
}

// The definitions have exactly the fields that stored objects of the established kinds may have, with
// the same types and constraints.
func TestFieldsAreTheEstablishedOnes(t *testing.T) {
	want := map[string]map[string]string{}
	for line := range strings.Lines(string(facts(t, "fields.txt"))) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.SplitN(line, " ", 3)
		require.Len(t, words, 3, line)
		plural, path, rest := words[0], strings.TrimPrefix(words[1], "."), strings.TrimSuffix(words[2], " former")
		if want[plural] == nil {
			want[plural] = map[string]string{}
		}
		require.NotContains(t, want[plural], path, line)
		want[plural][path] = rest
	}
	all := load(t)
	require.Len(t, want, len(all))
	for plural, d := range all {
		have := map[string]string{}
		fields(d.Spec.Versions[0].Schema.OpenAPIV3Schema, "", false, have)
		assert.Equal(t, want[plural], have, plural)
	}
}
