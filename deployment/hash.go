package deployment

import (
	"encoding/binary"
	"hash"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/millwright-go/millwright/machineset"
)

// letters can't be mistaken for each other or, without vowels, form a word.
const letters = "bcdfghjklmnpqrstvwxz2456789"

// hashLength is the number of letters in a hash: 27^10 is a bit more than 2^47.
const hashLength = 10

// templateHash names and labels the sets made from a template. It depends on the fields that decide
// whether two templates are the same, and on collisions, which separates sets whose names would be
// the same otherwise. It must be the same in every process and every version of this library,
// because the names of existing sets depend on it. So the serialization is explicit: each map as
// its number of entries and these by key, each string after its length, all numbers as eight bytes,
// high first.
func templateHash(t *machineset.Template, hashLabel string, collisions int32) string {
	h := digest{fnv.New64a()}
	h.dictionary(withoutEntry(t.Labels, hashLabel))
	h.dictionary(t.Annotations)
	h.text(t.Spec.Class.APIGroup)
	h.text(t.Spec.Class.Name)
	h.number(int64(collisions))

	sum := h.Sum64()
	var out [hashLength]byte
	for i := range out {
		out[i] = letters[sum%uint64(len(letters))]
		sum /= uint64(len(letters))
	}
	return string(out[:])
}

type digest struct{ hash.Hash64 }

func (h digest) number(n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	h.Write(b[:]) // never fails
}

func (h digest) text(s string) {
	h.number(int64(len(s)))
	h.Write([]byte(s))
}

func (h digest) dictionary(m map[string]string) {
	h.number(int64(len(m)))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		h.text(k)
		h.text(m[k])
	}
}
