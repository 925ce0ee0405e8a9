package api_test

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/convert"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// converter converts the stored documents of one kind.
type converter interface {
	// seen compares a document with bare, which lacks a field. It returns whether the Go type has the
	// field, whether the library's object depends on it, and the documents that the library writes
	// from that object.
	seen(t *testing.T, doc, bare map[string]any) (typed, read bool, written []map[string]any)
	// changed returns the patches of a document and of its status after the library has added a label
	// to the object.
	changed(t *testing.T, doc map[string]any) (patches []string)
}

type kind[W metav1.Object, C object.Object[C]] struct {
	*convert.Kind[W, C]
	blank func() W
}

func converters() map[string]converter {
	keys := convert.DefaultKeys()
	return map[string]converter{
		"machines":           kind[*v1alpha1.Machine, *machine.Machine]{convert.Machines(keys), func() *v1alpha1.Machine { return &v1alpha1.Machine{} }},
		"machinesets":        kind[*v1alpha1.MachineSet, *machineset.Set]{convert.Sets(keys), func() *v1alpha1.MachineSet { return &v1alpha1.MachineSet{} }},
		"machinedeployments": kind[*v1alpha1.MachineDeployment, *deployment.Deployment]{convert.Deployments(keys), func() *v1alpha1.MachineDeployment { return &v1alpha1.MachineDeployment{} }},
		"machineclasses":     kind[*v1alpha1.MachineClass, *machine.Class]{convert.Classes(keys), func() *v1alpha1.MachineClass { return &v1alpha1.MachineClass{} }},
		"nodes":              kind[*corev1.Node, *machine.Node]{convert.Nodes(keys), func() *corev1.Node { return &corev1.Node{} }},
	}
}

func (k kind[W, C]) parse(t *testing.T, doc map[string]any) W {
	t.Helper()
	w := k.blank()
	require.NoError(t, json.Unmarshal([]byte(text(t, doc)), w))
	return w
}

// document returns a value as generic JSON.
func document(t *testing.T, value any) (doc map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text(t, value)), &doc))
	return doc
}

func (k kind[W, C]) seen(t *testing.T, doc, bare map[string]any) (typed, read bool, out []map[string]any) {
	t.Helper()
	w, plain := k.parse(t, doc), k.parse(t, bare)
	typed = !reflect.DeepEqual(document(t, w), document(t, plain))
	without, _ := k.Read(plain)
	with, problems := k.Read(w)
	read = len(problems) > 0 || !reflect.DeepEqual(without, with)
	made, err := k.Create(with)
	require.NoError(t, err)
	out = append(out, document(t, made))
	patch, err := k.UpdateStatus(plain, with)
	require.NoError(t, err)
	if patch != nil {
		out = append(out, document(t, json.RawMessage(patch)))
	}
	return typed, read, out
}

func (k kind[W, C]) changed(t *testing.T, doc map[string]any) (patches []string) {
	t.Helper()
	base := k.parse(t, doc)
	c, _ := k.Read(base)
	m := c.ObjectMeta()
	m.Labels = map[string]string{"other": "label"}
	for key, value := range base.GetLabels() {
		m.Labels[key] = value
	}
	for _, write := range []func(W, C) ([]byte, error){k.Update, k.UpdateStatus} {
		patch, err := write(base, c)
		require.NoError(t, err)
		patches = append(patches, string(patch))
	}
	require.Contains(t, patches[0], "other")
	return patches
}

// at returns a document with a value at a path. In a path, [] is the item of a list, and * the value
// of a map.
func at(path string, value any) map[string]any {
	head, rest, more := strings.Cut(path, ".")
	if more {
		value = at(rest, value)
	}
	if head == "*" {
		head = "key"
	}
	if list, is := strings.CutSuffix(head, "[]"); is {
		return map[string]any{list: []any{value}}
	}
	return map[string]any{head: value}
}

// has reports whether a document has anything at a path.
func has(doc any, path string) bool {
	if path == "" {
		return doc != nil
	}
	head, rest, _ := strings.Cut(path, ".")
	if head == "*" {
		head = "key"
	}
	fields, _ := doc.(map[string]any)
	if list, is := strings.CutSuffix(head, "[]"); is {
		items, _ := fields[list].([]any)
		return slices.ContainsFunc(items, func(item any) bool { return has(item, rest) })
	}
	inner, there := fields[head]
	return there && has(inner, rest)
}

// sample returns a value of a type that is not zero, and that the field at the path may have.
func sample(path, typ string) any {
	last := path[strings.LastIndex(path, ".")+1:]
	switch typ {
	case "integer int32", "integer int64", "int-or-string", "integer":
		return 3
	case "boolean":
		return true
	case "object":
		return map[string]any{"labels": map[string]any{"key": "value"}}
	case "string date-time":
		return "2026-03-01T12:00:00Z"
	}
	switch {
	case strings.HasSuffix(last, "Timeout"):
		return "90s"
	case strings.Contains(path, "orchestrationType"):
		return "Manual"
	}
	return "word"
}

// The library reads, writes or ignores each field of the table, as the table says.
func TestFieldsAreUsedAsTheTableSays(t *testing.T) {
	all := converters()
	for _, n := range table(t, "field") {
		doc, bare := at(n.name, sample(n.name, n.typ)), map[string]any{}
		if end := strings.LastIndex(n.name, "."); end > 0 {
			bare = at(n.name[:end], bare)
		}
		for _, d := range []map[string]any{doc, bare} {
			d["metadata"] = map[string]any{"generation": 3}
			if strings.Contains(n.name, ".inPlaceUpdate.") {
				d["spec"].(map[string]any)["strategy"].(map[string]any)["type"] = "InPlaceUpdate"
			}
		}
		typed, sees, out := all[n.on].seen(t, doc, bare)
		writes := slices.ContainsFunc(out, func(d map[string]any) bool { return has(d, n.name) })
		use := kept
		switch {
		case sees && writes:
			use = both
		case sees:
			use = read
		case writes:
			use = written
		}
		assert.Equal(t, n.use, use, n)
		assert.True(t, typed || use == kept, n)
		for _, patch := range all[n.on].changed(t, doc) {
			assert.False(t, has(document(t, json.RawMessage(orEmpty(patch))), n.name), "%s: %s", n, patch)
		}
	}
}

// The table has every field of the established definitions.
func TestTableHasEveryField(t *testing.T) {
	known := map[string]bool{}
	for _, n := range table(t, "field") {
		known[n.on+" "+n.name] = true
	}
	facts, err := os.ReadFile("v1alpha1/testdata/fields.txt")
	require.NoError(t, err)
	lines := slices.Collect(strings.Lines(string(facts)))
	for i, line := range lines {
		words := strings.Fields(line)
		inner := len(words) > 1 && i+1 < len(lines) && strings.HasPrefix(lines[i+1], words[0]+" "+words[1]) &&
			strings.ContainsAny(lines[i+1][len(words[0]+" "+words[1]):][:1], ".[")
		if words[0] == "#" || inner || len(words) > 1 && slices.Contains([]string{".", "apiVersion", "kind", "metadata"}, words[1]) {
			continue
		}
		assert.True(t, known[words[0]+" "+words[1]], line)
	}
}

func orEmpty(patch string) string {
	if patch == "" {
		return "{}"
	}
	return patch
}

// A label, annotation or condition that the library does not use stays on an object: the library reads
// it and writes it back, and no patch of anything else changes it.
func TestUnusedNamesStay(t *testing.T) {
	all := converters()
	found := 0
	for _, n := range table(t, "label", "annotation", "condition", "reason") {
		if n.use != kept {
			continue
		}
		found++
		on, condition, _ := strings.Cut(n.on, " ")
		list := map[string]string{"machinesets": "machineSetCondition"}[on]
		if list == "" {
			list = "conditions"
		}
		var doc map[string]any
		switch n.kind {
		case "label", "annotation":
			doc = at("metadata."+n.kind+"s", map[string]any{n.name: "value"})
		case "condition":
			doc = at("status."+list+"[]", map[string]any{"type": n.name, "status": "True"})
		case "reason":
			doc = at("status."+list+"[]", map[string]any{"type": condition, "status": "True", "reason": n.name})
		}
		_, sees, out := all[on].seen(t, doc, map[string]any{})
		assert.True(t, sees, n)
		assert.Contains(t, text(t, out), strconv.Quote(n.name), n)
		for _, patch := range all[on].changed(t, doc) {
			assert.NotContains(t, patch, strconv.Quote(n.name), n)
		}
	}
	require.Greater(t, found, 10)
}

func text(t *testing.T, value any) string {
	t.Helper()
	b, err := json.Marshal(value)
	require.NoError(t, err)
	return string(b)
}
