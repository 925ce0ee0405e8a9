package command_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/examples/quickstart/command"
)

func TestOptions(t *testing.T) {
	c := command.Command{Name: "play", Usage: "usage: play [-state DIR]\n", State: "keep it in DIR"}
	var out bytes.Buffer
	state, _, ok := c.Options([]string{"-state", "DIR"}, &out)
	require.True(t, ok)
	require.Equal(t, "DIR", state)
	_, _, ok = c.Options(nil, &out)
	require.True(t, ok)
	require.Empty(t, out.String())
	for text, want := range map[string]int{"-h": 0, "-x": command.Misused, "DIR": command.Misused} {
		_, status, ok := c.Options([]string{text}, &out)
		require.False(t, ok)
		require.Equal(t, want, status)
	}
	require.Contains(t, out.String(), "usage: play [-state DIR]")
	require.Contains(t, out.String(), `play: "DIR" is one argument too many`)
}
