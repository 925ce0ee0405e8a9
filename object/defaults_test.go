package object_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/object"
)

type settings struct {
	Wait  time.Duration
	Count int32
	Names []string
	Keys  struct{ A, B string }
	On    bool // has no default
}

// TestWithDefaults: what is set stays, what is zero becomes the default, and neither argument changes.
func TestWithDefaults(t *testing.T) {
	defaults := &settings{Wait: time.Second, Count: 3, Names: []string{"a"}}
	defaults.Keys.A = "key"
	rapid.Check(t, func(t *rapid.T) {
		var p settings
		set := func(name string) bool { return rapid.Bool().Draw(t, name) }
		want := *defaults
		if set("wait") {
			p.Wait, want.Wait = object.Off, object.Off
		}
		if set("count") {
			p.Count, want.Count = 7, 7
		}
		if set("names") {
			p.Names, want.Names = []string{}, []string{} // empty and not nil: no names
		}
		if set("keys") {
			p.Keys.B = "other"
			want.Keys = p.Keys // keys are set together
		}
		p.On = set("on")
		want.On = p.On
		before := p
		got := object.WithDefaults(&p, defaults)
		require.Equal(t, &want, got)
		require.Equal(t, before, p)
		require.Same(t, got, object.WithDefaults(got, defaults), "complete settings are returned as they are")
	})
	require.Equal(t, defaults, object.WithDefaults(nil, defaults))
	require.NotSame(t, defaults, object.WithDefaults(nil, defaults))
}
