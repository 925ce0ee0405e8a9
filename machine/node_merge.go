package machine

import (
	"maps"
	"slices"

	"github.com/millwright-go/millwright/object"
)

// merge removes from have what was applied last and is not wanted any more, unless
// another program has changed the value since. Then it adds what is wanted.
func merge(have, last, want map[string]string) map[string]string {
	out := maps.Clone(have)
	if out == nil {
		out = make(map[string]string, len(want))
	}
	for k, v := range last {
		if out[k] == v {
			delete(out, k)
		}
	}
	maps.Copy(out, want)
	return out
}

// without is a copy of taints without those that match.
func without(taints []object.Taint, match func(object.Taint) bool) []object.Taint {
	return slices.DeleteFunc(slices.Clone(taints), match)
}

// mergeTaints is merge for taints, which key and effect identify.
func mergeTaints(have, last, want []object.Taint) []object.Taint {
	out := slices.DeleteFunc(slices.Clone(have), func(t object.Taint) bool {
		return slices.Contains(last, t) || slices.ContainsFunc(want, t.Same)
	})
	return append(out, want...)
}
