package pagecheck

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// A bbolt file begins with two meta pages, pages 0 and 1. Commits write them in turn.
const (
	metaMagic   = 0xED0CDAED
	metaVersion = 2

	pageHeader  = 16 // id, flags, count and overflow of a page
	metaSummed  = 56 // number of bytes after the page header that the checksum covers
	minPageSize = 1 << 10
	maxPageSize = 1 << 24
)

// native is the byte order in which bbolt stores numbers: the processor's.
var native = binary.NativeEndian

// meta is the content of a meta page whose checksum is right.
type meta struct {
	pageSize int64
	root     uint64 // page of the root bucket
	freelist uint64 // page of the freelist, or noFreelist
	pages    uint64 // number of pages: all IDs are lower
	txID     uint64
}

const noFreelist = ^uint64(0)

// readMeta reads the meta page at an offset. It returns ErrNoMeta if there is none.
func readMeta(file io.ReaderAt, offset int64) (meta, error) {
	var raw [pageHeader + metaSummed + 8]byte
	if _, err := file.ReadAt(raw[:], offset); errors.Is(err, io.EOF) {
		return meta{}, fmt.Errorf("%w: it is too short", ErrDamaged)
	} else if err != nil {
		return meta{}, err
	}
	b := raw[pageHeader:]
	if native.Uint32(b) != metaMagic || native.Uint32(b[4:]) != metaVersion {
		return meta{}, ErrNoMeta
	}
	sum := fnv.New64a()
	_, _ = sum.Write(b[:metaSummed])
	if sum.Sum64() != native.Uint64(b[metaSummed:]) {
		return meta{}, fmt.Errorf("%w: the checksum of a meta page is wrong", ErrDamaged)
	}
	m := meta{
		pageSize: int64(native.Uint32(b[8:])),
		root:     native.Uint64(b[16:]), freelist: native.Uint64(b[32:]),
		pages: native.Uint64(b[40:]), txID: native.Uint64(b[48:]),
	}
	if m.pageSize < minPageSize || m.pageSize > maxPageSize || m.pageSize&(m.pageSize-1) != 0 {
		return meta{}, fmt.Errorf("%w: a meta page has a page size of %d bytes", ErrDamaged, m.pageSize)
	}
	return m, nil
}

// newerMeta returns the meta page of the last commit. In a sound file both meta pages can be read, and
// their transaction IDs differ by 1, or by 2 after the first commit to a restored backup. Otherwise the
// last commit may be missing, and the error is ErrDamaged.
func newerMeta(file io.ReaderAt) (meta, error) {
	first, err := readMeta(file, 0)
	if err != nil {
		if _, found := findSecondMeta(file); !found && errors.Is(err, ErrNoMeta) {
			return meta{}, err
		}
		return meta{}, metaMissing(err)
	}
	second, err := readMeta(file, first.pageSize)
	if err != nil {
		return meta{}, metaMissing(err)
	}
	if second.txID > first.txID {
		first, second = second, first
	}
	if apart := first.txID - second.txID; apart < 1 || apart > 2 || first.pageSize != second.pageSize {
		return meta{}, fmt.Errorf("%w: its meta pages are of commits %d and %d", ErrDamaged, first.txID, second.txID)
	}
	return first, nil
}

// anyMeta returns the newer meta page that can be read.
func anyMeta(file io.ReaderAt) (meta, error) {
	first, err := readMeta(file, 0)
	if err != nil {
		if second, found := findSecondMeta(file); found {
			return second, nil
		}
		return meta{}, err
	}
	second, err := readMeta(file, first.pageSize)
	if err != nil || second.pageSize != first.pageSize || second.txID < first.txID {
		return first, nil //nolint:nilerr // one meta page is enough
	}
	return second, nil
}

// metaMissing turns ErrNoMeta into ErrDamaged: the other meta page exists, so it is a bbolt file.
func metaMissing(err error) error {
	if errors.Is(err, ErrNoMeta) {
		return fmt.Errorf("%w: one of its two meta pages is missing", ErrDamaged)
	}
	return err
}

// findSecondMeta looks for the second meta page at all possible page sizes.
func findSecondMeta(file io.ReaderAt) (meta, bool) {
	for size := int64(minPageSize); size <= maxPageSize; size *= 2 {
		if m, err := readMeta(file, size); err == nil && m.pageSize == size {
			return m, true
		}
	}
	return meta{}, false
}
