package machineset_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/machineset"
)

// TestMinReadyIgnored: a set whose MinReady is ignored counts, creates and deletes as one that has none.
func TestMinReadyIgnored(t *testing.T) {
	p := machineset.DefaultPolicy()
	p.IgnoreMinReady = true
	rapid.Check(t, func(rt *rapid.T) {
		o := anyObservation(rt)
		o.Set.Spec.MinReady = time.Duration(rapid.IntRange(0, 600).Draw(rt, "seconds")) * time.Second
		none := *o
		none.Set = o.Set.Clone()
		none.Set.Spec.MinReady = 0
		got, err := machineset.Decide(o, p, morning)
		want, wantErr := machineset.Decide(&none, machineset.DefaultPolicy(), morning)
		require.Equal(rt, wantErr, err)
		if update, ok := got.Write.(*machineset.Update); ok {
			set := update.Set.Clone()
			set.Spec.MinReady = 0
			update.Set = set
		}
		require.Equal(rt, want, got)
	})
}
