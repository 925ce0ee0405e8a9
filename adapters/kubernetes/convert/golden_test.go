package convert_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/millwright-go/millwright/adapters/kubernetes/convert"
	"github.com/millwright-go/millwright/internal/testkit"
)

// full is an object in which every field says something.
func (k *tested[W, C]) full() C {
	c := k.blank()
	for _, l := range leaves(reflect.TypeOf(c).Elem(), "", func(root reflect.Value) reflect.Value { return root }) {
		if !skipped(l.path) {
			l.set(reflect.ValueOf(c).Elem(), sample(l))
		}
	}
	return c
}

// records are the annotations of a full object, and its record in the status.
func (k *tested[W, C]) records(t *testing.T, name string, out *strings.Builder) {
	doc := k.store(t, map[string]any{}, k.full())
	w := k.typed(t, doc)
	out.WriteString("# " + name + "\n")
	all := w.GetAnnotations()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		out.WriteString(key + ": " + all[key] + "\n")
	}
	status, _ := doc["status"].(map[string]any)
	for _, list := range []string{"conditions", "machineSetCondition"} {
		conditions, _ := status[list].([]any)
		for _, c := range conditions {
			if c := c.(map[string]any); c["type"] == convert.RecordType {
				out.WriteString(convert.RecordType + ": " + c["message"].(string) + "\n")
			}
		}
	}
}

// The spelling of records is stored for years. From the first release on, a field that is renamed or
// changes its meaning must be read under its old name too. A new one adds to this file (-update).
func TestSpellingOfAllRecords(t *testing.T) {
	var out strings.Builder
	machines.records(t, "machine", &out)
	sets.records(t, "set", &out)
	deployments.records(t, "deployment", &out)
	nodes.records(t, "node", &out)
	testkit.Golden(t, "testdata/records.golden", out.String())
}
