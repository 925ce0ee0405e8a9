package object_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/object"
)

func TestAlike(t *testing.T) {
	const vm = "azure:///subscriptions/7f-0a/resourceGroups/Blue/vm/web-1"
	for _, other := range []string{
		vm, strings.ToLower(vm), strings.ToUpper(vm), vm + "/", "/subscriptions/7f-0a/resourceGroups/blue/vm/web-1", "azure://subscriptions//7f-0a/resourcegroups/Blue/vm/web-1/",
		"web-1", "WEB-1", "other:///subscriptions/7f-0a/resourceGroups/Blue/vm/web-1", "region-2/" + vm[len("azure:///"):],
	} {
		assert.True(t, object.Alike(vm, other), other)
		assert.True(t, object.Alike(other, vm), other)
	}
	for _, other := range []string{"", "/", ":///", "web-2", "eb-1", "azure:///subscriptions/7f-0a/resourceGroups/Red/vm/web-1", vm + "-a", vm + "/disk"} {
		assert.False(t, object.Alike(vm, other), other)
		assert.False(t, object.Alike(other, vm), other)
	}
	for _, nothing := range []string{"", "/", "://", "---"} {
		assert.False(t, object.Alike(nothing, nothing), "%q", nothing)
	}
	assert.False(t, object.Alike("i-1", "i-11"))
	assert.False(t, object.Alike("12", "312"), "a prefix ends with a sign")
}

// anyIdentity draws from few words, so that many are alike.
func anyIdentity(t *rapid.T, label string) string {
	part := rapid.SampledFrom([]string{"a", "B", "b", "1", "11", "/", "//", "-", "://", ":", "é", "\xff", " "})
	return strings.Join(rapid.SliceOfN(part, 0, 6).Draw(t, label), "")
}

// The set finds exactly what a comparison of each pair does.
// Invariants: P48
func TestSpellings(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		var set object.Spellings
		var all []string
		for range rapid.IntRange(0, 8).Draw(t, "identities") {
			all = append(all, anyIdentity(t, "identity"))
			set.Add(all[len(all)-1])
		}
		other := anyIdentity(t, "other")
		want := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return !object.Alike(id, other) })
		require.ElementsMatch(t, want, set.Alike(other))
		found += len(want)
		for _, id := range all {
			require.Equal(t, object.Alike(id, other), object.Alike(other, id))
		}
	})
	assert.Positive(t, found)
}

// A set of any size answers in the same time: identities are not compared in pairs.
func TestSpellingsOfAFleet(t *testing.T) {
	began := time.Now()
	const fleet = 100_000
	var set object.Spellings
	for i := range fleet {
		set.Add(fmt.Sprintf("azure:///sub/7f0a-22/rg/blue/vm/web-%d", i))
	}
	for i := range fleet {
		require.Len(t, set.Alike(fmt.Sprintf("AZURE:///Sub/7f0a-22/rg/blue/vm/web-%d/", i)), 1)
	}
	assert.Less(t, time.Since(began), time.Minute, "pairs would take an hour")
}
