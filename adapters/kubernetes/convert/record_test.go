package convert_test

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/adapters/kubernetes/convert"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// asBefore is a document as earlier versions stored it: with the record in a condition.
func asBefore(doc map[string]any, list, annotation string) map[string]any {
	meta, _ := doc["metadata"].(map[string]any)
	annotations := maps.Clone(meta["annotations"].(map[string]any))
	text := annotations[annotation]
	delete(annotations, annotation)
	status := maps.Clone(doc["status"].(map[string]any))
	conditions, _ := status[list].([]any)
	status[list] = append(conditions[:len(conditions):len(conditions)],
		map[string]any{"type": convert.RecordType, "status": "True", "reason": "Record", "message": text})
	meta = maps.Clone(meta)
	meta["annotations"] = annotations
	return map[string]any{"metadata": meta, "spec": doc["spec"], "status": status}
}

// moves: a record in a condition is read, has the status written once although nothing else changes,
// and is the same in its own place then, also if the process ends between the two writes.
func (k *tested[W, C]) moves(t *testing.T, list, annotation string, observed func(C) *int64) {
	want := k.full()
	want.ObjectMeta().Generation = 7
	*observed(want) = 7
	full := k.store(t, map[string]any{"metadata": map[string]any{"name": "o", "generation": 7}, "spec": map[string]any{}}, want)
	want, _ = k.Read(k.typed(t, full))
	old := asBefore(full, list, annotation)

	read, problems := k.Read(k.typed(t, old))
	require.Empty(t, problems)
	assert.Zero(t, *observed(read), "nothing else would have the status written")
	*observed(read) = *observed(want)
	assert.Equal(t, want, read)

	after := k.store(t, old, read)
	assert.Equal(t, full, after)
	k.movesJSON(t, asBefore(full, list, annotation), list, annotation, read)
	patch, err := k.UpdateNotes(k.typed(t, asBefore(full, list, annotation)), read)
	require.NoError(t, err)
	torn := apply(asBefore(full, list, annotation), parse(t, patch))
	again, problems := k.Read(k.typed(t, torn))
	require.Empty(t, problems)
	assert.Zero(t, *observed(again), "the condition is still there")
	*observed(again) = *observed(want)
	assert.Equal(t, full, k.store(t, torn, again))
}

// movesJSON: a record in JSON becomes a line when it is moved, also what a later version has in it.
func (k *tested[W, C]) movesJSON(t *testing.T, old map[string]any, list, annotation string, read C) {
	conditions := old["status"].(map[string]any)[list].([]any)
	last := maps.Clone(conditions[len(conditions)-1].(map[string]any))
	last["message"] = `{"later":{"b":[1,{"c":true}],"a":"x y"}}`
	old["status"].(map[string]any)[list] = append(slices.Clone(conditions[:len(conditions)-1]), last)
	patch, err := k.UpdateNotes(k.typed(t, old), read)
	require.NoError(t, err)
	text := parse(t, patch)["metadata"].(map[string]any)["annotations"].(map[string]any)[annotation]
	assert.Contains(t, text, `later.a="x y" later.b.0=1 later.b.1.c=true`)
}

func TestRecordsInConditionsAreMoved(t *testing.T) {
	sets.moves(t, "machineSetCondition", keys.SetRecord, func(s *machineset.Set) *int64 { return &s.Status.ObservedGeneration })
	deployments.moves(t, "conditions", keys.DeploymentRecord, func(d *deployment.Deployment) *int64 { return &d.Status.ObservedGeneration })
}

// What a process that ends between the two writes of a status leaves says of each part what was said
// before, or what was to be said; a generation that it claims to have seen, it has seen.
func TestHalfWrittenStatuses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { sets.torn(t, func(s *machineset.Set) *int64 { return &s.Status.ObservedGeneration }) })
	rapid.Check(t, func(t *rapid.T) {
		deployments.torn(t, func(d *deployment.Deployment) *int64 { return &d.Status.ObservedGeneration })
	})
}

func (k *tested[W, C]) torn(t *rapid.T, observed func(C) *int64) {
	seen := int64(0)
	draw := func(label string) C {
		c := k.blank()
		fill(t, reflect.ValueOf(c).Elem(), label)
		copyStored(c.ObjectMeta(), &object.Meta{})
		k.tame(c)
		seen += rapid.Int64Range(0, 2).Draw(t, label+" generations")
		*observed(c) = seen
		return c
	}
	generation := rapid.Int64Range(0, 3).Draw(t, "generation")
	doc := map[string]any{"metadata": map[string]any{"name": "o", "generation": generation}}
	before, after := draw("before"), draw("after")
	doc = k.store(t, doc, before)
	patch, err := k.UpdateNotes(k.typed(t, doc), after)
	require.NoError(t, err)
	if patch == nil {
		return
	}
	half := apply(doc, parse(t, patch))
	read, problems := k.Read(k.typed(t, half))
	require.Empty(t, problems)
	require.LessOrEqual(t, *observed(read), *observed(after))
	require.GreaterOrEqual(t, *observed(read), *observed(before))
	k.store(t, half, after)
}
