package machineset

import (
	"math"
	"strconv"
	"strings"
	"testing"
)

// FuzzOrdinalOf: a name yields an ordinal only if the set gives out that very
// name for it.
func FuzzOrdinalOf(f *testing.F) {
	s := &Set{}
	s.Name, s.UID = "web", "set-1"
	prefix := s.namePrefix()
	for _, n := range []int64{1, 9, 10, 1 << 40, math.MaxInt64} {
		f.Add(s.MachineName(n))
	}
	for _, tail := range []string{"", "0", "01", "+1", "-1", "1_0", "1 ", "9223372036854775808", "x"} {
		f.Add(prefix + tail)
	}
	f.Add("web-1")
	f.Fuzz(func(t *testing.T, name string) {
		n := ordinalOf(prefix, name)
		if n < 0 || n > 0 && s.MachineName(n) != name {
			t.Fatalf("%q was read as %d", name, n)
		}
		digits, ours := strings.CutPrefix(name, prefix)
		if v, err := strconv.ParseUint(digits, 10, 63); ours && n == 0 && err == nil && v > 0 && digits[0] != '0' {
			t.Fatalf("%q was not read", name)
		}
	})
}
