package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// These are the kinds of pages, and the mark of an element that is a bucket.
const (
	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10
	bucketFlag   = 0x01

	elementSize  = 16
	bucketHeader = 16 // root page and sequence of a bucket
	maxDepth     = 64 // of the tree: with two keys a page, more than any disk holds
)

// walk reads all pages of a file that its newer head leads to, before bbolt maps the file, because
// bbolt trusts the pages: it would follow a circle endlessly, or reserve as much memory as a count
// says. The walk visits no page twice, reads nothing beyond the file, and holds no more in memory
// than one path down the tree, which takes at most as much as the file.
type walk struct {
	file    io.ReaderAt
	head    head
	visited []uint64 // a bit a page
	buffers [maxDepth][]byte

	content content
}

// content is what a walk has found.
type content struct {
	commit   uint64
	freelist bool                   // there is one
	about    map[string][]byte      // the file's own bucket, or nil
	kinds    map[string]kindSummary // the other buckets
	others   int                    // what is no bucket
}

// inspect checks every page in use of a file of this size.
func inspect(file io.ReaderAt, size int64, lenient bool) (*content, error) {
	h, err := readHeads(file, lenient)
	if err != nil {
		return nil, err
	}
	if available := uint64(max(0, size)) / uint64(h.pageSize); h.pages > available {
		return nil, fmt.Errorf("%w: cut off, it has %d of %d pages", ErrDamaged, available, h.pages)
	}
	w := &walk{file: file, head: h, visited: make([]uint64, h.pages/64+1)}
	w.content = content{commit: h.commit, freelist: h.freelist != noFreelist, kinds: map[string]kindSummary{}}
	w.visit(0, 2) // the heads
	if err := w.tree(h.root, 0, w.topLevel); err != nil {
		return nil, err
	}
	if err := w.checkFreelist(); err != nil {
		return nil, err
	}
	return &w.content, nil
}

// visit marks n pages from id on. It returns false if one of them is no page or was visited.
func (w *walk) visit(id, n uint64) bool {
	if id >= w.head.pages || n > w.head.pages-id {
		return false
	}
	for i := id; i < id+n; i++ {
		if w.visited[i/64]&(1<<(i%64)) != 0 {
			return false
		}
		w.visited[i/64] |= 1 << (i % 64)
	}
	return true
}

// page is a page with those that continue it. Its bytes are valid until the walk reads another page
// of the same depth.
type page struct {
	id    uint64
	flags uint16
	count int
	raw   []byte
}

func (w *walk) damaged(id uint64, format string, args ...any) error {
	return fmt.Errorf("%w: page %d %s", ErrDamaged, id, fmt.Sprintf(format, args...))
}

// read reads a page that was not visited before.
func (w *walk) read(id uint64, depth int) (page, error) {
	if depth >= maxDepth {
		return page{}, w.damaged(id, "is too deep in the tree")
	}
	if !w.visit(id, 1) {
		return page{}, w.damaged(id, "is beyond the end or used twice")
	}
	size := w.head.pageSize
	raw, err := w.fill(depth, id, 0, size)
	if err != nil {
		return page{}, err
	}
	p := page{id: id, flags: native.Uint16(raw[8:]), count: int(native.Uint16(raw[10:])), raw: raw}
	more := uint64(native.Uint32(raw[12:]))
	switch {
	case native.Uint64(raw) != id:
		return page{}, w.damaged(id, "says that it is page %d", native.Uint64(raw))
	case more == 0:
		return p, nil
	case !w.visit(id+1, more):
		return page{}, w.damaged(id, "continues beyond the end or in pages that are used twice")
	}
	p.raw, err = w.fill(depth, id, size, size*int64(more+1))
	return p, err
}

// fill reads the bytes of a page from one to another into the buffer of a depth.
func (w *walk) fill(depth int, id uint64, from, to int64) ([]byte, error) {
	if b := w.buffers[depth]; int64(len(b)) < to {
		w.buffers[depth] = append(make([]byte, 0, to), b...)[:to]
	}
	raw := w.buffers[depth][:to]
	if _, err := w.file.ReadAt(raw[from:], int64(id)*w.head.pageSize+from); errors.Is(err, io.EOF) {
		return nil, w.damaged(id, "is cut off")
	} else if err != nil {
		return nil, err
	}
	return raw, nil
}

// element is one entry of a branch or a leaf.
type element struct {
	key, value []byte
	bucket     bool
	child      uint64 // of a branch
}

// elements yields the elements of a branch or a leaf. They lie one behind the other, in the order
// of their keys, within bounds.
func (w *walk) elements(p page, bounds span, do func(element, span) error) error {
	offset := uint64(pageHeader + elementSize*p.count)
	if p.count > (len(p.raw)-pageHeader)/elementSize {
		return w.damaged(p.id, "is too small for %d elements", p.count)
	}
	var before element
	for i := range p.count {
		e, next, ok := p.element(i, offset)
		if !ok || !bounds.holds(e.key) || i > 0 && bytes.Compare(before.key, e.key) >= 0 {
			return w.damaged(p.id, "has an element %d that does not fit", i)
		}
		if i > 0 {
			if err := do(before, span{before.key, e.key}); err != nil {
				return err
			}
		}
		before, offset = e, next
	}
	if p.count == 0 {
		return nil
	}
	return do(before, span{before.key, bounds.below})
}

// element reads an element whose key begins at an offset, and returns where the next one does.
func (p page) element(i int, offset uint64) (element, uint64, bool) {
	start := uint64(pageHeader + elementSize*i)
	raw := p.raw[start : start+elementSize]
	var e element
	var at, keySize, valueSize uint64
	if p.flags == branchPage {
		at, keySize, e.child = uint64(native.Uint32(raw)), uint64(native.Uint32(raw[4:])), native.Uint64(raw[8:])
	} else {
		flags := native.Uint32(raw)
		at, keySize, valueSize = uint64(native.Uint32(raw[4:])), uint64(native.Uint32(raw[8:])), uint64(native.Uint32(raw[12:]))
		if e.bucket = flags == bucketFlag; flags > bucketFlag {
			return e, 0, false
		}
	}
	end := offset + keySize + valueSize
	if start+at != offset || keySize == 0 || end > uint64(len(p.raw)) {
		return e, 0, false
	}
	e.key, e.value = p.raw[offset:offset+keySize], p.raw[offset+keySize:end]
	return e, end, true
}

// tree walks the tree below a root page, and yields the elements of its leaves.
func (w *walk) tree(root uint64, depth int, do func(element, int) error) error {
	return w.below(root, depth, span{}, true, do)
}

func (w *walk) below(id uint64, depth int, bounds span, root bool, do func(element, int) error) error {
	p, err := w.read(id, depth)
	if err != nil {
		return err
	}
	switch {
	case p.flags != branchPage && p.flags != leafPage:
		return w.damaged(id, "is not one of a tree")
	case p.count == 0 && (!root || p.flags == branchPage):
		return w.damaged(id, "is empty")
	}
	return w.elements(p, bounds, func(e element, part span) error {
		if p.flags == branchPage {
			return w.below(e.child, depth+1, part, false, do)
		}
		return do(e, depth+1)
	})
}

// bucket walks a bucket, which is a tree of its own or lies within the element.
func (w *walk) bucket(e element, depth int, do func(element, int) error) error {
	if len(e.value) < bucketHeader {
		return fmt.Errorf("%w: a bucket is too short", ErrDamaged)
	}
	if root := native.Uint64(e.value); root != 0 {
		return w.tree(root, depth, do)
	}
	inline := page{flags: leafPage, raw: e.value[bucketHeader:]}
	if len(inline.raw) < pageHeader || native.Uint16(inline.raw[8:]) != leafPage {
		return fmt.Errorf("%w: a bucket within a page is none", ErrDamaged)
	}
	inline.count = int(native.Uint16(inline.raw[10:]))
	return w.elements(inline, span{}, func(e element, _ span) error { return do(e, depth) })
}

// topLevel records what is in a bucket of the file.
func (w *walk) topLevel(e element, depth int) error {
	if !e.bucket {
		w.content.others++ // another program's
		return nil
	}
	if bytes.Equal(e.key, aboutBucket) {
		w.content.about = map[string][]byte{}
		return w.bucket(e, depth, func(entry element, depth int) error {
			w.content.about[string(entry.key)] = bytes.Clone(entry.value)
			return w.nested(entry, depth)
		})
	}
	var t kindSummary
	err := w.bucket(e, depth, func(record element, depth int) error {
		t.add(record.value)
		return w.nested(record, depth)
	})
	if err == nil {
		t.Version = native.Uint64(e.value[8:])
		w.content.kinds[string(e.key)] = t
	}
	return err
}

// nested walks buckets within buckets, which other programs make.
func (w *walk) nested(e element, depth int) error {
	if !e.bucket {
		return nil
	}
	if depth >= maxDepth {
		return fmt.Errorf("%w: its buckets are too deep", ErrDamaged)
	}
	return w.bucket(e, depth+1, w.nested)
}

// manyFree is the count of a freelist that has its true one in the first element.
const manyFree = 0xFFFF

// checkFreelist requires that no page is free and in use, or free twice, because a commit would
// overwrite it.
func (w *walk) checkFreelist() error {
	if w.head.freelist == noFreelist {
		return nil
	}
	p, err := w.read(w.head.freelist, 0)
	if err != nil {
		return err
	}
	if p.flags != freelistPage {
		return w.damaged(p.id, "is no freelist")
	}
	ids := p.raw[pageHeader:]
	count := uint64(p.count)
	if count == manyFree && len(ids) >= 8 {
		count, ids = native.Uint64(ids), ids[8:]
	}
	if count > uint64(len(ids))/8 {
		return w.damaged(p.id, "is too small for a freelist of %d pages", count)
	}
	for ; count > 0; count, ids = count-1, ids[8:] {
		if id := native.Uint64(ids); !w.visit(id, 1) {
			return w.damaged(id, "is in the freelist, and beyond the end or used twice")
		}
	}
	return nil
}
