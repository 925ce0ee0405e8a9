package store_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/storetest"
)

// TestListKnowsOwnWrites: a list of a later order than an own write counts, although it does not show the write: the store
// has lost it, for example because an older copy was restored with higher orders.
func TestListKnowsOwnWrites(t *testing.T) {
	type state = store.State[*storetest.Object, struct{}]
	at := func(name string, order uint64) state {
		return state{
			Key: object.Key{Name: name}, UID: "1", Order: order,
			Object: &storetest.Object{Meta: object.Meta{Key: object.Key{Name: name}, UID: "1", Version: fmt.Sprint(order), Generation: int64(order)}},
		}
	}
	f := store.NewFollower[*storetest.Object, struct{}](nil)
	f.Replace([]state{at("a", 1), at("b", 2), at("c", 3)}, 3)
	f.Wrote(at("a", 4))
	f.Wrote(at("new", 5))
	f.Wrote(state{Key: object.Key{Name: "b"}, UID: "1", Order: 6})
	f.Replace([]state{at("a", 1), at("b", 2), at("c", 3)}, 5) // it may be older than the last of them
	orders := func() map[string]int64 {
		all, err := f.List(t.Context(), store.Query{})
		require.NoError(t, err)
		have := map[string]int64{}
		for _, o := range all {
			have[o.Name] = o.Generation
		}
		return have
	}
	require.Equal(t, map[string]int64{"a": 1, "c": 3}, orders())
	f.Replace([]state{at("a", 1), at("b", 2), at("c", 3)}, 1_000_000)
	require.Equal(t, map[string]int64{"a": 1, "b": 2, "c": 3}, orders())
	f.Wrote(at("a", 1_000_001))
	f.Replace([]state{at("a", 1)}, 0) // the store does not tell
	require.Equal(t, map[string]int64{"a": 1_000_001}, orders())
}
