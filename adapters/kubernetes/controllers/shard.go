package controllers

import (
	"fmt"
	"hash/fnv"

	"github.com/millwright-go/millwright/object"
)

// Shard is one of Of parts into which objects are divided by their keys: the part with number Index.
// The zero Shard is all of them.
type Shard struct {
	Index, Of int // 0 <= Index < Of
}

func (s Shard) validate() error {
	if s == (Shard{}) || 0 <= s.Index && s.Index < s.Of {
		return nil
	}
	return fmt.Errorf("%w: shard %d of %d", ErrOptions, s.Index, s.Of)
}

// Holds reports whether an object is in the shard. Of the shards with the same Of, exactly one holds
// a key.
func (s Shard) Holds(key object.Key) bool {
	if s.Of < 2 {
		return true
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(key.Namespace + "/" + key.Name)) // never fails
	return h.Sum64()%uint64(s.Of) == uint64(s.Index)       //nolint:gosec // neither is negative
}
