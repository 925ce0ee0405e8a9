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

// full returns an object in which every field is set.
func (k *tested[W, C]) full() C {
	c := k.blank()
	for _, l := range leaves(reflect.TypeOf(c).Elem(), "", func(root reflect.Value) reflect.Value { return root }) {
		if !skipped(l.path) {
			l.set(reflect.ValueOf(c).Elem(), sample(l))
		}
	}
	return c
}

// records writes the annotations of a full object, and the record in its status, to out.
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

// Records are stored for years. From the first release on, a field that is renamed or changes its
// meaning must be read by its old name, too. A new field adds to the golden file (-update).
func TestSpellingOfAllRecords(t *testing.T) {
	var out strings.Builder
	machines.records(t, "machine", &out)
	sets.records(t, "set", &out)
	deployments.records(t, "deployment", &out)
	nodes.records(t, "node", &out)
	testkit.Golden(t, "testdata/records.golden", out.String())
}
