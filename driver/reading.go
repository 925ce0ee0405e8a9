package driver

import (
	"bytes"
	"encoding/binary"
	"html"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// These are the limits of decoding. They are this library's choice.
const (
	// deepest is how many encodings a text may be wrapped in, such as base64 of JSON in JSON.
	deepest = 4
	// mostSearched is how many bytes of a text are searched, and mostRead how many bytes in all
	// readings of it. What is beyond them is not shown.
	mostSearched = 128 << 10
	mostRead     = 4 << 20
	// mostBranched is how many bytes behind a branch are searched for base64, digits and lists of bytes.
	mostBranched = 4 << 10
)

// reading is a text as it reads after some decodings. Byte i of text stands for the bytes
// [from[i]:to[i]] of the original. A byte that separates two decoded parts stands for none.
type reading struct {
	text     []byte
	from, to []int32
	branches []branch
}

// branch is another way to read a text: as head, and from its byte next on like the reading itself. There is one
// for each escape that may be none. So a percent sign before the value "41..." does not hide it: the reading has an
// A in place of "%41", and a branch the 41.
type branch struct {
	head *reading // without branches
	next int
}

// joined returns a branch as a reading, with up to n bytes behind its head.
func (r *reading) joined(b *branch, n int) *reading {
	end := min(b.next+n, len(r.text))
	return &reading{
		text: slices.Concat(b.head.text, r.text[b.next:end]), from: slices.Concat(b.head.from, r.from[b.next:end]),
		to: slices.Concat(b.head.to, r.to[b.next:end]),
	}
}

// reads reports whether a text begins at byte i of a branch's head, and where it ends in the original.
func (r *reading) reads(b *branch, i int, text []byte) (to int32, ok bool) {
	head := b.head.text[i:]
	if n := len(text); n <= len(head) {
		return b.head.to[i+n-1], bytes.HasPrefix(head, text)
	}
	behind := text[len(head):]
	if !bytes.HasPrefix(text, head) || !bytes.HasPrefix(r.text[b.next:], behind) {
		return 0, false
	}
	return r.to[b.next+len(behind)-1], true
}

// plainReading is a text as it is.
func plainReading(text string) *reading {
	r := &reading{text: []byte(text), from: make([]int32, len(text)), to: make([]int32, len(text))}
	for i := range r.text {
		r.from[i], r.to[i] = int32(i), int32(i)+1
	}
	return r
}

// add appends bytes that stand for bytes i to j of another reading.
func (r *reading) add(of *reading, i, j int, decoded ...byte) {
	for _, b := range decoded {
		r.text, r.from, r.to = append(r.text, b), append(r.from, of.from[i]), append(r.to, of.to[j-1])
	}
}

// separate appends a byte that stands for no text, so that two parts are not read as one.
func (r *reading) separate() {
	if len(r.text) > 0 {
		r.text, r.from, r.to = append(r.text, 0), append(r.from, 0), append(r.to, 0)
	}
}

// readings passes a text, and all that it decodes to, to the function found. It returns false if it
// stopped early, because the work is bounded.
func readings(text string, found func(*reading)) bool {
	read := 0
	level := []*reading{plainReading(text)}
	for depth := 0; len(level) > 0; depth++ {
		var next []*reading
		for _, r := range level {
			if read += r.size(); read > mostRead {
				return false
			}
			found(r)
			if depth == deepest {
				continue
			}
			next = append(next, r.decoded()...)
		}
		level = next
	}
	return true
}

// each calls the function found for each place where a reading or a branch of it has a text, with the bytes of the
// original that it stands for.
func (r *reading) each(text []byte, found func(from, to int32)) {
	for at := 0; ; {
		i := bytes.Index(r.text[at:], text)
		if i < 0 {
			break
		}
		at += i + len(text)
		found(r.from[at-len(text)], r.to[at-1])
	}
	for i := range r.branches {
		b := &r.branches[i]
		for at := range b.head.text {
			if to, ok := r.reads(b, at, text); ok {
				found(b.head.from[at], to)
			}
		}
	}
}

// size returns how many bytes a reading has.
func (r *reading) size() int {
	n := len(r.text)
	for i := range r.branches {
		n += len(r.branches[i].head.text)
	}
	return n
}

// decoded returns what a reading decodes to, by each of the encodings that change something.
func (r *reading) decoded() (all []*reading) {
	for _, decode := range []func([]byte) ([]byte, int){percent, query, entity, quoted} {
		if d := r.unescaped(decode); d != nil {
			all = append(all, d)
		}
	}
	for shift := range 4 {
		all = r.appendUnpacked(all, base64Digit, func(r *reading) *reading {
			return r.packed(base64Digit, 6, wrappedLine, shift)
		})
	}
	for shift := range 2 {
		all = r.appendUnpacked(all, hexDigit, func(r *reading) *reading { return r.packed(hexDigit, 4, 0, shift) })
	}
	return r.appendUnpacked(all, listByte, (*reading).numbers)
}

// appendUnpacked appends what the function unpack makes of a reading, and of its branches whose head ends with a digit:
// what begins behind the head, the reading itself has.
func (r *reading) appendUnpacked(all []*reading, digit func(byte) int, unpack func(*reading) *reading) []*reading {
	d := unpack(r)
	for i := range r.branches {
		b := &r.branches[i]
		behind := r.text[b.next:min(b.next+mostBranched, len(r.text))]
		n := 0
		for n < len(behind) && (digit(behind[n]) >= 0 || strings.IndexByte("\r\n =", behind[n]) >= 0) {
			n++
		}
		if digit(b.head.text[len(b.head.text)-1]) < 0 || len(b.head.text)+n < shortestHidden {
			continue
		}
		u := unpack(r.joined(b, n))
		d.separate()
		d.text, d.from, d.to = append(d.text, u.text...), append(d.from, u.from...), append(d.to, u.to...)
	}
	if len(d.text) > 0 {
		all = append(all, d)
	}
	return all
}

// unescaped replaces escapes by what they stand for. decode returns what the escape at the beginning of
// a text stands for, and its length: zero if there is none. Nil: there is no escape.
func (r *reading) unescaped(decode func([]byte) ([]byte, int)) *reading {
	d := &reading{}
	at := make([]int, len(r.text)+1) // where d has each byte of r; -1: it is within an escape
	var within []int                 // the second byte of each escape that is longer
	escapes := 0
	for i := 0; i < len(r.text); {
		at[i] = len(d.text)
		n := d.decode(r, i, decode)
		escapes += min(n, 1)
		for j := i + 1; j < i+n; j++ {
			at[j] = -1
		}
		if n > 1 {
			within = append(within, i+1)
		}
		i += max(n, 1)
	}
	at[len(r.text)] = len(d.text)
	passed := make([]bool, len(r.text)) // the bytes at which branches have read on
	for _, i := range within {
		if !passed[i] {
			escapes += d.branch(r, &branch{&reading{}, i}, decode, at, passed)
		}
	}
	for i := range r.branches {
		escapes += d.branch(r, &r.branches[i], decode, at, passed)
	}
	if escapes == 0 {
		return nil
	}
	return d
}

// decode appends what byte i of another reading stands for, with those that belong to the same escape. It returns
// the length of the escape; zero: there is none.
func (r *reading) decode(of *reading, i int, decode func([]byte) ([]byte, int)) (n int) {
	b, n := decode(of.text[i:])
	if n == 0 {
		r.add(of, i, i+1, of.text[i])
		return 0
	}
	r.add(of, i, i+n, b...)
	return n
}

// branch adds a branch that is decoded from one of another reading, up to where both go on alike: at says where r has
// each byte of the other. It returns how many escapes were decoded.
func (r *reading) branch(
	of *reading, b *branch, decode func([]byte) ([]byte, int), at []int, passed []bool,
) (escapes int) {
	head, next := &reading{}, b.next
	if len(b.head.text) > 0 {
		joined, i := of.joined(b, longestEntity), 0
		for i < len(b.head.text) {
			n := head.decode(joined, i, decode)
			escapes += min(n, 1)
			i += max(n, 1)
		}
		next += i - len(b.head.text)
	}
	for at[next] < 0 {
		passed[next] = true
		n := head.decode(of, next, decode)
		escapes += min(n, 1)
		next += max(n, 1)
	}
	if len(head.text) > 0 {
		r.branches = append(r.branches, branch{head, at[next]})
	}
	return escapes
}

// percent decodes %2F in either case.
func percent(text []byte) ([]byte, int) {
	if len(text) < 3 || text[0] != '%' {
		return nil, 0
	}
	return hexByte(text[1], text[2], 3)
}

// query decodes as percent does, and a plus as a space.
func query(text []byte) ([]byte, int) {
	if text[0] == '+' {
		return []byte{' '}, 1
	}
	return percent(text)
}

// hexByte returns the byte of two hexadecimal digits, and n, the length of their escape; or zero.
func hexByte(a, b byte, n int) ([]byte, int) {
	high, low := hexDigit(a), hexDigit(b)
	if high < 0 || low < 0 {
		return nil, 0
	}
	return []byte{byte(high<<4 | low)}, n
}

// longestEntity is as long as an entity of HTML may be.
const longestEntity = 34

// entity decodes &lt; and &#60; and &#x3c;.
func entity(text []byte) ([]byte, int) {
	if text[0] != '&' {
		return nil, 0
	}
	part := string(text[:min(len(text), longestEntity)])
	end := strings.IndexByte(part, ';')
	if end < 0 {
		return nil, 0
	}
	if plain := html.UnescapeString(part[:end+1]); plain != part[:end+1] {
		return []byte(plain), end + 1
	}
	return nil, 0
}

// quoted decodes what Go, JSON and YAML write behind a backslash.
func quoted(text []byte) ([]byte, int) {
	if len(text) < 2 || text[0] != '\\' {
		return nil, 0
	}
	const names, bytes = `nrtbfva0/\"'`, "\n\r\t\b\f\v\a\x00/\\\"'"
	if i := strings.IndexByte(names, text[1]); i >= 0 {
		return []byte{bytes[i]}, 2
	}
	switch {
	case text[1] == 'x' && len(text) >= 4:
		return hexByte(text[2], text[3], 4)
	case text[1] == 'u':
		return quotedRune(text)
	case text[1] == 'U':
		if v, ok := hexNumber(text, 2, 8); ok {
			return utf8.AppendRune(nil, v), 10
		}
	}
	return nil, 0
}

// quotedRune decodes \u20ac, and two that are one character.
func quotedRune(text []byte) ([]byte, int) {
	first, ok := hexNumber(text, 2, 4)
	if !ok {
		return nil, 0
	}
	if len(text) >= 12 && text[6] == '\\' && text[7] == 'u' {
		if second, ok := hexNumber(text, 8, 4); ok {
			if both := utf16.DecodeRune(first, second); both != utf8.RuneError {
				return utf8.AppendRune(nil, both), 12
			}
		}
	}
	return utf8.AppendRune(nil, first), 6
}

// hexNumber returns the number of n hexadecimal digits from i on.
func hexNumber(text []byte, i, n int) (v rune, ok bool) {
	if len(text) < i+n {
		return 0, false
	}
	for _, c := range text[i : i+n] {
		digit := hexDigit(c)
		if digit < 0 {
			return 0, false
		}
		v = v<<4 | rune(digit)
	}
	return v, true
}

// wrappedLine is the length from which a line of base64 may go on after a space: the line break may have
// become a space.
const wrappedLine = 60

// base64Digit returns what a character stands for in base64 of either alphabet, or -1.
func base64Digit(c byte) int {
	switch {
	case c >= 'A' && c <= 'Z':
		return int(c - 'A')
	case c >= 'a' && c <= 'z':
		return int(c-'a') + 26
	case c >= '0' && c <= '9':
		return int(c-'0') + 52
	case c == '+' || c == '-':
		return 62
	case c == '/' || c == '_':
		return 63
	}
	return -1
}

// hexDigit returns the value of a hexadecimal digit, or -1.
func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// packed decodes runs of digits, each of as many bits as bits says. It skips the first shift digits of
// a run, because a value may begin at any of them. A run goes on in the next line; after a line of at
// least wrapped digits, unless wrapped is zero, it also goes on after a space.
func (r *reading) packed(digit func(byte) int, bits, wrapped, shift int) *reading {
	d := &reading{}
	var run []int // positions of the digits
	line := 0     // digits of the run since its last line break
	for i := 0; i <= len(r.text); i++ {
		if i < len(r.text) {
			c := r.text[i]
			if digit(c) >= 0 {
				run, line = append(run, i), line+1
				continue
			}
			if len(run) > 0 && (c == '\n' || c == '\r' || c == ' ' && (line == 0 || wrapped > 0 && line >= wrapped)) {
				line = 0
				continue
			}
		}
		if len(run) > shift && (len(run)-shift)*bits >= 8*shortestHidden {
			r.unpack(d, run[shift:], digit, bits)
		}
		run, line = run[:0], 0
	}
	return d
}

// unpack decodes one run.
func (r *reading) unpack(d *reading, run []int, digit func(byte) int, bits int) {
	d.separate()
	held, have, first := 0, 0, 0
	for at, i := range run {
		if have == 0 {
			first = at
		}
		held, have = held<<bits|digit(r.text[i]), have+bits
		if have < 8 {
			continue
		}
		have -= 8
		d.add(r, run[first], i+1, byte(held>>have))
		held &= 1<<have - 1
		first = at
	}
	for end := run[len(run)-1] + 1; end < len(r.text) && r.text[end] == '='; end++ { // padding
		d.to[len(d.to)-1] = r.to[end]
	}
}

// numbers decodes lists of bytes in decimal, such as [104 105] or [104, 105].
func (r *reading) numbers() *reading {
	d := &reading{}
	for i := 0; i < len(r.text); i++ {
		if r.text[i] != '[' {
			continue
		}
		list := &reading{}
		start, end := i, i+1
		for end < len(r.text) {
			value, digits := decimal(r.text[end:])
			if digits == 0 || value > 255 {
				break
			}
			list.add(r, start, end+digits, byte(value))
			for end += digits; end < len(r.text) && (r.text[end] == ' ' || r.text[end] == ','); end++ {
			}
			start = end
		}
		if len(list.text) < shortestHidden {
			continue
		}
		if end < len(r.text) && r.text[end] == ']' {
			list.to[len(list.to)-1] = r.to[end]
		}
		d.separate()
		d.text, d.from, d.to = append(d.text, list.text...), append(d.from, list.from...), append(d.to, list.to...)
		i = end - 1
	}
	return d
}

// listByte is not negative for what a list of bytes consists of.
func listByte(c byte) int { return strings.IndexByte("0123456789[], ", c) }

// decimal returns the number of up to three digits at the beginning of a text, and how many these are.
func decimal(text []byte) (value, digits int) {
	for ; digits < min(3, len(text)) && text[digits] >= '0' && text[digits] <= '9'; digits++ {
		value = value*10 + int(text[digits]-'0')
	}
	return value, digits
}

// prefix returns the first shortestHidden bytes of a text, as a number.
func prefix(text []byte) uint64 { return binary.LittleEndian.Uint64(text) }
