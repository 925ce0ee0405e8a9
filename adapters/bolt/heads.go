package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// A bbolt file begins with two heads ("meta pages"), of which commits write each in turn. Head n is
// page n.
const (
	headMagic   = 0xED0CDAED
	headVersion = 2

	pageHeader  = 16 // id, flags, count and overflow of a page
	headSummed  = 56 // what the checksum of a head covers, behind the page's header
	minPageSize = 1 << 10
	maxPageSize = 1 << 24
)

// native is the byte order in which bbolt stores numbers: the processor's.
var native = binary.NativeEndian

// head is the content of a head whose checksum fits.
type head struct {
	pageSize int64
	root     uint64 // the page that the tree begins at
	freelist uint64 // the page of the freelist, or noFreelist
	pages    uint64 // in use or free; nothing is beyond them
	commit   uint64 // the number of the transaction
}

const noFreelist = ^uint64(0)

var errNoHead = errors.New("it has no head")

// readHead reads the head at an offset. It returns errNoHead if there is something else.
func readHead(file io.ReaderAt, offset int64) (head, error) {
	var raw [pageHeader + headSummed + 8]byte
	if _, err := file.ReadAt(raw[:], offset); errors.Is(err, io.EOF) {
		return head{}, fmt.Errorf("%w: it is too short", ErrDamaged)
	} else if err != nil {
		return head{}, err
	}
	m := raw[pageHeader:]
	if native.Uint32(m) != headMagic || native.Uint32(m[4:]) != headVersion {
		return head{}, errNoHead
	}
	sum := fnv.New64a()
	_, _ = sum.Write(m[:headSummed])
	if sum.Sum64() != native.Uint64(m[headSummed:]) {
		return head{}, fmt.Errorf("%w: a head does not fit its checksum", ErrDamaged)
	}
	h := head{
		pageSize: int64(native.Uint32(m[8:])),
		root:     native.Uint64(m[16:]), freelist: native.Uint64(m[32:]),
		pages: native.Uint64(m[40:]), commit: native.Uint64(m[48:]),
	}
	if h.pageSize < minPageSize || h.pageSize > maxPageSize || h.pageSize&(h.pageSize-1) != 0 {
		return head{}, fmt.Errorf("%w: a head has pages of %d bytes", ErrDamaged, h.pageSize)
	}
	return h, nil
}

// readHeads returns the newer head. In a sound file both heads can be read, and are of adjacent
// commits: two apart after the first commit to a backup. Otherwise the last commit may be missing,
// which is ErrDamaged. With lenient, readHeads then returns the newer head that can be read, as
// bbolt does.
func readHeads(file io.ReaderAt, lenient bool) (head, error) {
	first, err := readHead(file, 0)
	if err != nil {
		other, found := findSecond(file)
		switch {
		case !found && errors.Is(err, errNoHead):
			return head{}, fmt.Errorf("%w: %w", ErrForeign, err)
		case !found || !lenient:
			return head{}, damagedUnless(err)
		}
		return other, nil
	}
	second, err := readHead(file, first.pageSize)
	switch {
	case err != nil && lenient:
		return first, nil
	case err != nil:
		return head{}, damagedUnless(err)
	case second.commit > first.commit:
		first, second = second, first
	}
	if apart := first.commit - second.commit; !lenient && (apart < 1 || apart > 2) || first.pageSize != second.pageSize {
		return head{}, fmt.Errorf("%w: its heads are of commits %d and %d", ErrDamaged, first.commit, second.commit)
	}
	return first, nil
}

// damagedUnless makes a head that can't be found ErrDamaged. A failed read stays as it is.
func damagedUnless(err error) error {
	if errors.Is(err, errNoHead) {
		return fmt.Errorf("%w: one of its two heads is gone", ErrDamaged)
	}
	return err
}

// findSecond finds the second head if the size of the pages is not known.
func findSecond(file io.ReaderAt) (head, bool) {
	for size := int64(minPageSize); size <= maxPageSize; size *= 2 {
		if h, err := readHead(file, size); err == nil && h.pageSize == size {
			return h, true
		}
	}
	return head{}, false
}

// span is a part of a tree: the pages below one branch hold keys from its first on, and below the
// next one's.
type span struct{ from, below []byte } // nil for no bound

func (s span) holds(key []byte) bool {
	return (s.from == nil || bytes.Compare(key, s.from) >= 0) && (s.below == nil || bytes.Compare(key, s.below) < 0)
}
