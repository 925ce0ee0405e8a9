package pagecheck

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Check and Salvage wrap these errors. They return errors of the file's ReadAt as they are.
var (
	ErrDamaged = errors.New("damaged")
	ErrNoMeta  = errors.New("it has no meta page of bbolt")
)

// Visitor has functions that get the content of the file. Byte slices are valid during the call only.
type Visitor struct {
	Bucket func(name []byte, sequence uint64)     // called for each bucket of the root, before its records
	Record func(bucket string, key, value []byte) // called for each record of a bucket
}

// Info describes a file.
type Info struct {
	Commit   uint64 // ID of the last transaction
	Freelist bool   // the file has one
	Nested   bool   // there are buckets in buckets of the root; Check does not read them
}

// These are the flags of pages and of the elements of a leaf.
const (
	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10
	bucketFlag   = 0x01

	elementSize  = 16
	bucketHeader = 16 // root page and sequence of a bucket
	maxDepth     = 64 // of the tree; even with two keys a page, no disk can hold more
)

// checker reads the pages that a meta page leads to.
type checker struct {
	file    io.ReaderAt
	meta    meta
	visitor Visitor
	skip    func(error) error // gets an error: it returns nil to continue after the damaged part, or the error
	info    Info

	visited []uint64         // one bit for each page
	buffers [maxDepth][]byte // pages, by depth in the tree
}

// Check reads all pages in use of a file of this size. It returns an ErrDamaged about the first damage, or
// ErrNoMeta if the file is not one of bbolt.
func Check(file io.ReaderAt, size int64, visitor Visitor) (Info, error) {
	m, err := newerMeta(file)
	if err != nil {
		return Info{}, err
	}
	if available := uint64(max(0, size)) / uint64(m.pageSize); m.pages > available {
		return Info{}, fmt.Errorf("%w: cut off, it has %d of %d pages", ErrDamaged, available, m.pages)
	}
	c := newChecker(file, m, visitor)
	if err := c.tree(m.root, 0, c.rootElement); err != nil {
		return Info{}, err
	}
	return c.info, c.checkFreelist()
}

// Salvage is Check for a damaged file. It leaves out each damaged page or element with everything below
// it, passes the error to the function damage, and continues. It ignores the freelist. It fails if no
// meta page can be read.
func Salvage(file io.ReaderAt, size int64, visitor Visitor, damage func(error)) error {
	m, err := anyMeta(file)
	if err != nil {
		return err
	}
	m.pages = min(m.pages, uint64(max(0, size))/uint64(m.pageSize))
	c := newChecker(file, m, visitor)
	c.skip = func(err error) error {
		if !errors.Is(err, ErrDamaged) {
			return err
		}
		damage(err)
		return nil
	}
	return c.skip(c.tree(m.root, 0, c.rootElement))
}

func newChecker(file io.ReaderAt, m meta, visitor Visitor) *checker {
	c := &checker{
		file: file, meta: m, visitor: visitor, skip: func(err error) error { return err },
		info:    Info{Commit: m.txID, Freelist: m.freelist != noFreelist},
		visited: make([]uint64, m.pages/64+1),
	}
	c.visit(0, 2) // the meta pages
	return c
}

// visit marks n pages, beginning with id, as visited. It returns false if one of them does not exist, or
// was visited before.
func (c *checker) visit(id, n uint64) bool {
	if id >= c.meta.pages || n > c.meta.pages-id {
		return false
	}
	for i := id; i < id+n; i++ {
		if c.visited[i/64]&(1<<(i%64)) != 0 {
			return false
		}
		c.visited[i/64] |= 1 << (i % 64)
	}
	return true
}

// page is a page with its overflow pages. Its bytes are valid until the checker reads another page
// at the same depth.
type page struct {
	id    uint64
	flags uint16
	count int
	raw   []byte
}

// damaged returns an ErrDamaged about a page.
func damaged(id uint64, format string, args ...any) error {
	return fmt.Errorf("%w: page %d %s", ErrDamaged, id, fmt.Sprintf(format, args...))
}

// read reads a page that was not visited before.
func (c *checker) read(id uint64, depth int) (page, error) {
	if depth >= maxDepth {
		return page{}, damaged(id, "is too deep in the tree")
	}
	if !c.visit(id, 1) {
		return page{}, damaged(id, "is beyond the end or used twice")
	}
	size := c.meta.pageSize
	raw, err := c.fill(depth, id, 0, size)
	if err != nil {
		return page{}, err
	}
	p := page{id: id, flags: native.Uint16(raw[8:]), count: int(native.Uint16(raw[10:])), raw: raw}
	overflow := uint64(native.Uint32(raw[12:]))
	switch {
	case native.Uint64(raw) != id:
		return page{}, damaged(id, "has the ID of page %d", native.Uint64(raw))
	case overflow == 0:
		return p, nil
	case !c.visit(id+1, overflow):
		return page{}, damaged(id, "has overflow pages beyond the end or used twice")
	}
	p.raw, err = c.fill(depth, id, size, size*int64(overflow+1))
	return p, err
}

// fill reads the bytes of a page between two offsets into the buffer of a depth. It returns the buffer,
// from the beginning of the page.
func (c *checker) fill(depth int, id uint64, from, to int64) ([]byte, error) {
	if b := c.buffers[depth]; int64(len(b)) < to {
		c.buffers[depth] = append(make([]byte, 0, to), b...)[:to]
	}
	raw := c.buffers[depth][:to]
	if _, err := c.file.ReadAt(raw[from:], int64(id)*c.meta.pageSize+from); errors.Is(err, io.EOF) {
		return nil, damaged(id, "is cut off")
	} else if err != nil {
		return nil, err
	}
	return raw, nil
}

// keyRange is a range of keys: at least from, and less than before. Nil means no bound. The keys below an
// element of a branch are at least the element's key and less than the next element's.
type keyRange struct{ from, before []byte }

func (r keyRange) contains(key []byte) bool {
	return (r.from == nil || bytes.Compare(key, r.from) >= 0) && (r.before == nil || bytes.Compare(key, r.before) < 0)
}

// element is one entry of a branch or a leaf.
type element struct {
	key, value []byte
	isBucket   bool
	child      uint64 // in a branch: ID of the page below
}

// eachElement calls the function do with each element of a branch or a leaf, and the range of keys
// below it. The contents of the elements must follow each other without gaps, in the order of their
// keys.
func (c *checker) eachElement(p page, keys keyRange, do func(element, keyRange) error) error {
	offset := uint64(pageHeader + elementSize*p.count)
	if p.count > (len(p.raw)-pageHeader)/elementSize {
		return damaged(p.id, "is too small for %d elements", p.count)
	}
	var last element // do is called with it when the next key, the end of its range, is known
	var invalid error
	for i := range p.count {
		e, next, ok := p.element(i, offset)
		if !ok { // so it is not known where the next element begins
			invalid = damaged(p.id, "has an invalid element %d", i)
			break
		}
		offset = next
		if !keys.contains(e.key) || last.key != nil && bytes.Compare(last.key, e.key) >= 0 {
			if err := c.skip(damaged(p.id, "has an element %d with a key out of order", i)); err != nil {
				return err
			}
			continue
		}
		if last.key != nil {
			if err := c.skip(do(last, keyRange{last.key, e.key})); err != nil {
				return err
			}
		}
		last = e
	}
	if last.key != nil {
		if err := c.skip(do(last, keyRange{last.key, keys.before})); err != nil {
			return err
		}
	}
	return invalid
}

// element reads element i. Its key must begin at offset. It returns the offset after its value.
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
		if e.isBucket = flags == bucketFlag; flags > bucketFlag {
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

// tree calls the function do with the elements of all leaves below a root page, and the depth of what
// is below them.
func (c *checker) tree(root uint64, depth int, do func(element, int) error) error {
	return c.subtree(root, depth, keyRange{}, true, do)
}

// subtree is tree for any page, whose keys must be in a range.
func (c *checker) subtree(id uint64, depth int, keys keyRange, root bool, do func(element, int) error) error {
	p, err := c.read(id, depth)
	if err != nil {
		return err
	}
	switch {
	case p.flags != branchPage && p.flags != leafPage:
		return damaged(id, "is neither a branch nor a leaf")
	case p.count == 0 && (!root || p.flags == branchPage):
		return damaged(id, "is empty")
	}
	return c.eachElement(p, keys, func(e element, below keyRange) error {
		if p.flags == branchPage {
			return c.subtree(e.child, depth+1, below, false, do)
		}
		return do(e, depth+1)
	})
}

// rootElement reads an element of the root, which must be a bucket, and its records.
func (c *checker) rootElement(e element, depth int) error {
	if !e.isBucket || len(e.value) < bucketHeader {
		return fmt.Errorf("%w: its root has an entry that is not a bucket", ErrDamaged)
	}
	c.visitor.Bucket(e.key, native.Uint64(e.value[8:]))
	name := string(e.key)
	record := func(e element, _ int) error {
		c.info.Nested = c.info.Nested || e.isBucket
		c.visitor.Record(name, e.key, e.value)
		return nil
	}
	if root := native.Uint64(e.value); root != 0 {
		return c.tree(root, depth, record)
	}
	inline := page{flags: leafPage, raw: e.value[bucketHeader:]}
	if len(inline.raw) < pageHeader || native.Uint16(inline.raw[8:]) != leafPage {
		return fmt.Errorf("%w: the inline bucket %q is not a leaf", ErrDamaged, name)
	}
	inline.count = int(native.Uint16(inline.raw[10:]))
	return c.eachElement(inline, keyRange{}, func(e element, _ keyRange) error { return record(e, depth) })
}

// countInFirst is the count of a freelist whose real count is in its first element.
const countInFirst = 0xFFFF

// checkFreelist returns an error if the freelist has a page that is in use, because a commit would
// overwrite that page, or has a page twice.
func (c *checker) checkFreelist() error {
	if !c.info.Freelist {
		return nil
	}
	p, err := c.read(c.meta.freelist, 0)
	if err != nil {
		return err
	}
	if p.flags != freelistPage {
		return damaged(p.id, "is not a freelist")
	}
	ids := p.raw[pageHeader:]
	count := uint64(p.count)
	if count == countInFirst && len(ids) >= 8 {
		count, ids = native.Uint64(ids), ids[8:]
	}
	if count > uint64(len(ids))/8 {
		return damaged(p.id, "is too small for a freelist of %d pages", count)
	}
	for ; count > 0; count, ids = count-1, ids[8:] {
		if id := native.Uint64(ids); !c.visit(id, 1) {
			return damaged(id, "is in the freelist, and beyond the end, in use or listed twice")
		}
	}
	return nil
}
