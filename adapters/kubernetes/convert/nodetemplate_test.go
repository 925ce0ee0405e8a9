package convert_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// anyText draws texts that are almost valid keys and values for Kubernetes: short ones, and some at the
// limits of length.
var anyText = rapid.OneOf(
	rapid.StringMatching(`[aZ0./_ é-]{0,6}`),
	rapid.StringMatching(`[aZ0.-]{0,3}/[aZ0._-]{0,3}`),
	rapid.Custom(func(t *rapid.T) string {
		return strings.Repeat("a", rapid.SampledFrom([]int{62, 63, 64, 252, 253, 254}).Draw(t, "length")) + rapid.SampledFrom([]string{"", "/b", ".", "-"}).Draw(t, "end")
	}),
)

// TestNodeTemplatesAgreeWithTheServersRules: package machine accepts exactly the labels, annotations
// and taints that the validation of the API server accepts.
func TestNodeTemplatesAgreeWithTheServersRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key, value := anyText.Draw(t, "key"), anyText.Draw(t, "value")
		name, text := len(validation.IsQualifiedName(key)) == 0, len(validation.IsValidLabelValue(value)) == 0
		valid := func(n machine.NodeTemplate) bool { return n.InvalidEntry("nodeTemplate") == nil }
		require.Equal(t, name && text, valid(machine.NodeTemplate{Labels: map[string]string{key: value}}), "label %q: %q", key, value)
		require.Equal(t, name && text, valid(machine.NodeTemplate{Taints: []object.Taint{{Key: key, Value: value, Effect: object.NoExecute}}}), "taint %q: %q", key, value)
		annotation := len(validation.IsQualifiedName(strings.ToLower(key))) == 0
		require.Equal(t, annotation, valid(machine.NodeTemplate{Annotations: map[string]string{key: value}}), "annotation %q", key)
	})
}

// TestQuantitiesAgreeWithTheServersRules: package machine accepts exactly the virtual capacities that
// the API server accepts. Texts that begin with no digit are not tested: the server's library reads
// some of them as 0.
func TestQuantitiesAgreeWithTheServersRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringMatching(`[+-]?([0-9]{1,3}(\.[0-9]{0,2})?|\.[0-9]{1,2})([eE][+-]?[0-9]{0,2})?`), rapid.StringMatching(`[0-9]{1,3}[numkMGTPEi ]{0,3}`)).Draw(t, "quantity")
		quantity, err := resource.ParseQuantity(text)
		class := &machine.Class{NodeTemplate: &machine.NodeShape{VirtualCapacity: map[string]string{"example.com/slots": text}}}
		require.Equal(t, err == nil && quantity.Sign() >= 0 && !strings.HasPrefix(text, "-"), class.Validate() == nil, "%q: %v", text, err)
	})
}
