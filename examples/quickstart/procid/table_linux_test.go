package procid

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// stat is an entry as Linux has it, with a command name made to mislead.
func stat(state, flags, start string) []byte {
	return []byte("77 (a) Z 9 (b) " + state + " 1 77 77 0 -1 " + flags + " 5 0 0 0 1 2 0 0 20 0 1 0 " + start + " 1000 25 1844\n")
}

func TestParseStat(t *testing.T) {
	for _, c := range []struct {
		state, flags string
		ended        bool
	}{
		{"S", "4194304", false},
		{"R", "4194304", false},
		{"T", "4194304", false}, // stopped, and there
		{"Z", "4194304", true},
		{"X", "4194304", true},
		{"R", "4194308", true}, // PF_EXITING
	} {
		got, err := parseStat(stat(c.state, c.flags, "4711"))
		require.NoError(t, err)
		require.Equal(t, c.ended, got.ended, "state %s, flags %s", c.state, c.flags)
		require.True(t, strings.HasPrefix(got.start, "4711@"), got.start)
	}
	for _, bad := range []string{"", "77", "77 (a)", "77 (a) S 1 2 3", string(stat("S", "x", "1"))} {
		_, err := parseStat([]byte(bad))
		require.Error(t, err, bad)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add(stat("S", "4194304", "4711"))
	f.Add([]byte("1 (init) S"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := parseStat(text)
		if err == nil && got.start == "" {
			t.Errorf("no start time in %q, and no error", text)
		}
	})
}
