package bolt_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/millwright-go/millwright/adapters/bolt"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

var pageSize = os.Getpagesize()

// native is the byte order of the file. A page begins with its ID; at offset 8 are its flags, at 10 its
// count of elements, at 12 the number of its overflow pages, and at 16 the elements, of 16 bytes each.
// Pages 0 and 1 are meta pages, with the ID of the commit at offset 64.
var native = binary.NativeEndian

// fleetFile returns the content of a file, and the machines in it. Other machines were changed and
// deleted, so that the file has free pages with old content.
func fleetFile(t testing.TB, size int) (content []byte, held map[object.Key]*machine.Machine) {
	t.Helper()
	path := newPath(t)
	db, err := bolt.OpenRaw(path, bolt.Options{Now: now}, bbolt.Options{NoSync: true})
	require.NoError(t, err)
	machines := db.Machines()
	var writers sync.WaitGroup
	for w := range 16 {
		writers.Go(func() {
			for i := w; i < size+size/2; i += 16 {
				m, err := machines.Create(noContext, newMachine(fmt.Sprint("m", i)))
				if err == nil && i%3 == 0 {
					m = m.Clone()
					m.Finalizers = nil
					_, err = machines.Update(noContext, m)
				}
				if err == nil && i%3 == 0 {
					err = machines.Delete(noContext, m.Key, "")
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	held = map[object.Key]*machine.Machine{}
	listed, err := machines.List(noContext, store.Query{})
	require.NoError(t, err)
	for _, m := range listed {
		held[m.Key] = m
	}
	require.Len(t, held, size)
	require.NoError(t, db.Close())
	content, err = os.ReadFile(path)
	require.NoError(t, err)
	used := max(native.Uint64(content[16+40:]), native.Uint64(content[pageSize+16+40:]))
	return content[:int(used)*pageSize], held
}

// pages returns the IDs of the pages with these flags, except the meta pages.
func pages(content []byte, flags uint16) (found []int) {
	for p := 2; p < len(content)/pageSize; p++ {
		at := content[p*pageSize:]
		if native.Uint16(at[8:]) == flags && native.Uint64(at) == uint64(p) {
			found = append(found, p)
		}
	}
	return found
}

// corruptHeader sets a field of a page's header, and returns the field's number.
func corruptHeader(r *rand.Rand, page []byte, value uint64) (field int) {
	field = r.IntN(4)
	switch field {
	case 0:
		native.PutUint64(page, value)
	case 1, 2:
		native.PutUint16(page[6+2*field:], uint16(value))
	case 3:
		native.PutUint32(page[12:], uint32(value))
	}
	return field
}

// corruptBranch makes a branch page point to itself or to the page some, and returns a description.
func corruptBranch(r *rand.Rand, c []byte, some int) string {
	branches := pages(c, 1)
	if len(branches) == 0 {
		return "nothing"
	}
	b := branches[r.IntN(len(branches))]
	child := uint64([]int{b, some}[r.IntN(2)])
	native.PutUint64(c[b*pageSize+16+16*r.IntN(int(native.Uint16(c[b*pageSize+10:])))+8:], child)
	return fmt.Sprintf("branch %d leads to page %d", b, child)
}

// corrupt damages a copy of a file in one of eleven ways, and returns a description.
func corrupt(r *rand.Rand, sound []byte) (content []byte, how string) {
	c := bytes.Clone(sound)
	count := len(c) / pageSize
	some, other := r.IntN(count), r.IntN(count)
	at := c[some*pageSize : (some+1)*pageSize]
	value := []uint64{0, 1, 2, 0xffff, 0x7fffffff, 0xffffffff, 1 << 40, uint64(some), uint64(other), r.Uint64()}[r.IntN(10)]
	switch r.IntN(11) {
	case 0:
		length := r.IntN(len(c))
		return c[:length], fmt.Sprint("cut off at ", length)
	case 1:
		flips := 1 + r.IntN(50)
		for range flips {
			c[r.IntN(len(c))] ^= 1 << r.IntN(8)
		}
		return c, fmt.Sprint(flips, " bits turned")
	case 2:
		clear(at)
		return c, fmt.Sprint("page ", some, " zero")
	case 3:
		return c, fmt.Sprintf("page %d: field %d of its header is %x", some, corruptHeader(r, at, value), value)
	case 4:
		element := 16 + 16*r.IntN(min(200, max(1, int(native.Uint16(at[10:])))))
		field := 4 * r.IntN(4)
		native.PutUint32(at[element+field:], uint32(value))
		return c, fmt.Sprintf("page %d: byte %d of the element at %d is %x", some, field, element, value)
	case 5, 6:
		return c, corruptFreelist(r, c)
	case 7:
		return c, corruptBranch(r, c, some)
	case 8:
		copy(c[other*pageSize:(other+1)*pageSize], at)
		if r.IntN(2) == 0 {
			native.PutUint64(c[other*pageSize:], uint64(other))
		}
		return c, fmt.Sprintf("page %d copied over %d", some, other)
	case 9:
		moved := bytes.Clone(at)
		copy(at, sound[other*pageSize:])
		copy(c[other*pageSize:(other+1)*pageSize], moved)
		if r.IntN(2) == 0 {
			native.PutUint64(at, uint64(some))
			native.PutUint64(c[other*pageSize:], uint64(other))
		}
		return c, fmt.Sprintf("pages %d and %d swapped", some, other)
	}
	hole := r.IntN(len(at))
	for i := range min(len(at)-hole, 1+r.IntN(600)) {
		at[hole+i] = byte(r.Uint32())
	}
	return c, fmt.Sprintf("page %d: noise from %d on", some, hole)
}

// corruptFreelist damages all freelists, also the old ones, and returns a description.
func corruptFreelist(r *rand.Rand, c []byte) string {
	way := r.IntN(4)
	for _, p := range pages(c, 0x10) {
		at := c[p*pageSize:]
		count := int(native.Uint16(at[10:]))
		switch way {
		case 0:
			native.PutUint16(at[10:], 0xffff)
			native.PutUint64(at[16:], []uint64{1 << 20, 1 << 33, 1 << 40, 1 << 60, ^uint64(0)}[r.IntN(5)])
		case 1:
			for range 5 {
				native.PutUint64(at[16+8*r.IntN(max(1, count)):], uint64(r.IntN(len(c)/pageSize)))
			}
		case 2:
			native.PutUint16(at[10:], uint16(r.Uint32()))
		case 3:
			native.PutUint16(at[10:], uint16(max(0, count-1-r.IntN(5))))
		}
	}
	return fmt.Sprint("freelist, way ", way)
}

// resealed returns the file with right checksums in its meta pages. No accident produces such a file.
func resealed(c []byte) []byte {
	for at := 0; at+80 <= len(c) && at <= pageSize; at += pageSize {
		sum := fnv.New64a()
		_, _ = sum.Write(c[at+16 : at+72])
		native.PutUint64(c[at+72:], sum.Sum64())
	}
	return c
}
