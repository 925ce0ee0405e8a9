package convert_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/adapters/kubernetes/convert"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

// keys are the keys of all tests.
var keys = convert.DefaultKeys()

// tested is a kind with functions that the tests of all kinds use.
type tested[W metav1.Object, C object.Object[C]] struct {
	*convert.Kind[W, C]
	blank func() C
	empty func() W
}

// tester has the tests of one kind. tested implements it.
type tester interface {
	leaves(t *testing.T)
	roundTrip(t *rapid.T)
	anyStored(t *testing.T, a, b []byte)
}

// apply carries out a merge patch (RFC 7386).
func apply(doc, patch map[string]any) map[string]any {
	for key, value := range patch {
		switch inner, ok := value.(map[string]any); {
		case value == nil:
			delete(doc, key)
		case ok:
			outer, _ := doc[key].(map[string]any)
			if outer == nil {
				outer = map[string]any{}
			}
			doc[key] = apply(outer, inner)
		default:
			doc[key] = value
		}
	}
	return doc
}

func parse(t require.TestingT, text []byte) map[string]any {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var doc map[string]any
	require.NoError(t, decoder.Decode(&doc), "%s", text)
	return doc
}

// typed returns a stored document as the Go type, as a client reads it.
func (k *tested[W, C]) typed(t require.TestingT, doc map[string]any) W {
	text, err := json.Marshal(doc)
	require.NoError(t, err)
	w := k.empty()
	require.NoError(t, json.Unmarshal(text, w), "%s", text)
	return w
}

// document returns a stored object as generic JSON.
func (k *tested[W, C]) document(t require.TestingT, w W) map[string]any {
	text, err := json.Marshal(w)
	require.NoError(t, err)
	return parse(t, text)
}

// store updates a document to c as an API server does: by one patch for metadata and spec, one for the
// parts of the status that are in annotations, and one for the status. It checks the result.
func (k *tested[W, C]) store(t require.TestingT, doc map[string]any, c C) map[string]any {
	patch, err := k.Update(k.typed(t, doc), c)
	require.NoError(t, err)
	if patch != nil {
		p := parse(t, patch)
		require.NotContains(t, p, "status", "%s", patch)
		doc = apply(doc, p)
	}
	patch, err = k.UpdateNotes(k.typed(t, doc), c)
	require.NoError(t, err)
	if patch != nil {
		p := parse(t, patch)
		require.Len(t, p, 1, "%s", patch)
		doc = apply(doc, map[string]any{"metadata": map[string]any{"annotations": p["metadata"].(map[string]any)["annotations"]}})
		k.checkReadable(t, doc)
	}
	patch, err = k.UpdateStatus(k.typed(t, doc), c)
	require.NoError(t, err)
	if patch != nil {
		p := parse(t, patch)
		delete(p, "metadata") // the version
		require.Len(t, p, 1, "%s", patch)
		doc = apply(doc, p)
	}
	k.checkStored(t, doc, c)
	return doc
}

// checkReadable checks that the records of a document can be read after the first of the two patches
// of a status.
func (k *tested[W, C]) checkReadable(t require.TestingT, doc map[string]any) {
	_, problems := k.Read(k.typed(t, doc))
	for _, p := range problems {
		require.NotContains(t, p.Field, "record")
	}
}

// checkStored checks that a document reads as c, and that nothing would be written again.
func (k *tested[W, C]) checkStored(t require.TestingT, doc map[string]any, c C) {
	w := k.typed(t, doc)
	read, _ := k.Read(w)
	m, want := read.ObjectMeta(), c.Clone()
	copyStored(want.ObjectMeta(), m)
	setDefaultStrategy(want)
	require.Equal(t, convert.Canonical(want), convert.Canonical(read))
	for _, o := range []C{read, want} {
		patch, err := k.Update(w, o)
		require.NoError(t, err)
		require.Empty(t, string(patch))
		patch, err = k.UpdateNotes(w, o)
		require.NoError(t, err)
		require.Empty(t, string(patch))
		patch, err = k.UpdateStatus(w, o)
		require.NoError(t, err)
		require.Empty(t, string(patch))
	}
}

// setDefaultStrategy replaces a strategy that is not set by the default, which is stored instead.
func setDefaultStrategy(o any) {
	if d, ok := o.(*deployment.Deployment); ok && d.Spec.Strategy == (deployment.Strategy{}) {
		d.Spec.Strategy = deployment.DefaultStrategy()
	}
}

// copyStored copies the fields that only a store sets.
func copyStored(to, from *object.Meta) {
	to.Key, to.UID, to.Version, to.Generation = from.Key, from.UID, from.Version, from.Generation
	to.CreatedAt, to.DeletedAt = from.CreatedAt, from.DeletedAt
}

// notStored are the fields that only a store sets.
var notStored = []string{
	"Meta.Key.Namespace", "Meta.Key.Name", "Meta.UID", "Meta.Version", "Meta.Generation", "Meta.CreatedAt", "Meta.DeletedAt",
}

// notOfTemplates are fields that a template does not have.
var notOfTemplates = []string{"ProviderID", "NodeName", "InPlace"}

// skipped reports whether the tests of all fields leave out a field.
func skipped(path string) bool {
	if rest, ok := strings.CutPrefix(path, "Spec.Template.Spec."); ok && slices.Contains(notOfTemplates, rest) {
		return rest != "ProviderID"
	}
	return slices.Contains(notStored, path)
}

// leaves tests that every field of the library's kind is stored.
func (k *tested[W, C]) leaves(t *testing.T) {
	all := leaves(reflect.TypeOf(k.blank()).Elem(), "", func(root reflect.Value) reflect.Value { return root })
	count := 0
	for _, l := range all {
		if skipped(l.path) {
			continue
		}
		count++
		t.Run(l.path, func(t *testing.T) {
			c := k.blank()
			l.set(reflect.ValueOf(c).Elem(), sample(l))
			k.setClassKind(c)
			doc := k.store(t, map[string]any{}, c)
			read, problems := k.Read(k.typed(t, doc))
			assert.Empty(t, problems)
			copyStored(c.ObjectMeta(), read.ObjectMeta())
			setDefaultStrategy(c)
			assert.Equal(t, c, read)
			text, err := json.Marshal(k.store(t, doc, k.blank())) // the field can be reset, too
			require.NoError(t, err)
			own := strings.NewReplacer(keys.SpecChanges, "", keys.DeploymentChanges, "").Replace(string(text))
			assert.NotContains(t, own, "millwright-go/", "an empty record is left")
			assert.NotContains(t, own, convert.RecordType)
			assert.NotContains(t, own, "failedMachines")
		})
	}
	require.Greater(t, count, 4)
}

// unknownField is the name of a field that this project does not know.
const unknownField = "unknownField"

// addUnknown adds an unknown field to the objects at these paths.
func addUnknown(doc map[string]any, lists ...string) {
	for _, path := range lists {
		at := doc
		for step := range strings.FieldsSeq(path) {
			inner, ok := at[step].(map[string]any)
			if !ok {
				inner = map[string]any{}
				at[step] = inner
			}
			at = inner
		}
		at[unknownField] = map[string]any{"kept": []any{"yes"}}
	}
}

// countUnknown counts the unknown fields in a document.
func countUnknown(value any) (n int) {
	switch value := value.(type) {
	case map[string]any:
		if _, ok := value[unknownField]; ok {
			n++
		}
		for _, v := range value {
			n += countUnknown(v)
		}
	case []any:
		for _, v := range value {
			n += countUnknown(v)
		}
	}
	return n
}

// roundTrip tests that any object can be changed to any other, and that no unknown field is lost.
func (k *tested[W, C]) roundTrip(t *rapid.T) {
	draw := func(label string) C {
		c := k.blank()
		fill(t, reflect.ValueOf(c).Elem(), label)
		m := c.ObjectMeta()
		copyStored(m, &object.Meta{})
		if m.Owner != nil && m.Owner.UID == "" {
			m.Owner.UID = "u"
		}
		k.normalize(c)
		return c
	}
	doc := k.store(t, map[string]any{}, draw("first"))
	places := []string{"", "metadata", "spec", "status", "spec template spec", "spec template metadata"}
	addUnknown(doc, places...)
	doc["metadata"].(map[string]any)["resourceVersion"] = "12"
	first := draw("second")
	first.ObjectMeta().Version = "12"
	doc = k.store(t, doc, first)
	require.Equal(t, len(places), countUnknown(doc), "an unknown field was lost")
	k.store(t, doc, draw("third"))
}

// normalize removes values that no object of the library has.
func (k *tested[W, C]) normalize(c C) {
	for _, l := range leaves(reflect.TypeOf(c).Elem(), "", func(root reflect.Value) reflect.Value { return root }) {
		if rest, ok := strings.CutPrefix(l.path, "Spec.Template.Spec."); ok && slices.Contains(notOfTemplates, rest) {
			l.set(reflect.ValueOf(c).Elem(), reflect.Zero(l.typ).Interface())
		}
	}
	k.setClassKind(c)
}

// setClassKind sets the kind of a class that has a name and no kind, as reading does.
func (k *tested[W, C]) setClassKind(c C) {
	spec := reflect.ValueOf(c).Elem().FieldByName("Spec")
	if spec.IsValid() && spec.FieldByName("Template").IsValid() {
		spec = spec.FieldByName("Template").FieldByName("Spec")
	}
	if _, pool := any(c).(*machinepool.Pool); !spec.IsValid() || !spec.FieldByName("Class").IsValid() || pool {
		return
	}
	class, ok := spec.FieldByName("Class").Addr().Interface().(*machine.ClassRef)
	if ok && class.Kind == "" && class.Name != "" {
		class.Kind = "MachineClass"
	}
}

// anyStored tests that any stored object can be read, is not changed by that, and can be changed to
// any other.
func (k *tested[W, C]) anyStored(t *testing.T, a, b []byte) {
	from, to := k.empty(), k.empty()
	if json.Unmarshal(a, from) != nil || json.Unmarshal(b, to) != nil {
		return
	}
	text, err := json.Marshal(from)
	if err != nil {
		return // for example a time after the year 9999
	}
	doc := parse(t, text)
	c, _ := k.Read(k.typed(t, doc))
	k.checkStored(t, doc, c)
	d, _ := k.Read(to)
	copyStored(d.ObjectMeta(), c.ObjectMeta())
	if patch, err := k.Update(from, d); err != nil {
		require.Nil(t, patch)
		require.ErrorIs(t, err, object.ErrInvalid)
		return
	}
	k.store(t, doc, d)
}
