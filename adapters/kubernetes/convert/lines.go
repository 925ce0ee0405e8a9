package convert

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Records and notes are stored as a line that people can read in kubectl describe: pairs of a name and a
// value, as in
//
//	against.class=3 message="quota used up" names=a,b since=2026-03-01T12:00:00Z
//
// A name is a path of field names, and of indexes in lists whose elements are not plain values. A list
// of plain values is one pair. {} is a value without any fields. A plain value or a list of them can be
// alone, without a name.

var errLine = errors.New("is no line of name=value")

// lineOf formats a value from compact as a line.
func lineOf(path string, value any) (string, error) {
	pairs, err := appendPairs(nil, path, value)
	return strings.Join(pairs, " "), err
}

func appendPairs(out []string, path string, value any) ([]string, error) {
	below := func(name string, inner any) (err error) {
		if path != "" {
			name = path + "." + name
		}
		out, err = appendPairs(out, name, inner)
		return err
	}
	switch x := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(x)) {
			if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !inName(r) || r == '.' }) {
				return nil, errLine
			}
			if err := below(name, x[name]); err != nil {
				return nil, err
			}
		}
		if len(x) > 0 {
			return out, nil
		}
	case []any:
		if slices.ContainsFunc(x, func(v any) bool { return !plainValue(v) }) {
			for i := range x {
				if err := below(strconv.Itoa(i), x[i]); err != nil {
					return nil, err
				}
			}
			return out, nil
		}
		texts := make([]string, len(x))
		for i := range x {
			var err error
			if texts[i], err = plainText(x[i]); err != nil {
				return nil, err
			}
		}
		return appendPair(out, path, strings.Join(texts, ",")), nil
	}
	text, err := plainText(value)
	return appendPair(out, path, text), err
}

func appendPair(out []string, path, text string) []string {
	switch {
	case text == "":
		return out // an empty list
	case path != "":
		text = path + "=" + text
	}
	return append(out, text)
}

func plainValue(v any) bool {
	switch v.(type) {
	case map[string]any, []any, nil:
		return false
	}
	return true
}

func plainText(value any) (string, error) {
	switch x := value.(type) {
	case nil, map[string]any:
		return nothing, nil
	case string:
		return quoted(x), nil
	case time.Duration:
		return x.String(), nil
	case encoding.TextMarshaler:
		text, err := x.MarshalText()
		return quoted(string(text)), err
	}
	if v := reflect.ValueOf(value); v.Kind() == reflect.String {
		return quoted(v.String()), nil
	}
	return fmt.Sprint(value), nil
}

const nothing = "{}"

func inName(r rune) bool {
	return r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

func bare(r rune) bool { return inName(r) || strings.ContainsRune("_-/:+%@", r) }

func quoted(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !bare(r) }) {
		return s
	}
	return strconv.Quote(s)
}

// pair is one pair of a line. The path is empty if the value has no name.
type pair struct {
	path   []string
	values []string
	text   string
}

// parseLine returns the pairs of a line.
func parseLine(line string) (all []pair, err error) {
	for line = strings.TrimLeft(line, " "); line != ""; line = strings.TrimLeft(line, " ") {
		p, rest, err := parsePair(line)
		if err != nil || rest != "" && rest[0] != ' ' {
			return nil, errLine
		}
		p.text = line[:len(line)-len(rest)]
		all = append(all, p)
		line = rest
	}
	return all, nil
}

func parsePair(line string) (p pair, rest string, err error) {
	rest = line
	if end := strings.IndexFunc(line, func(r rune) bool { return !inName(r) }); end > 0 && line[end] == '=' {
		p.path, rest = strings.Split(line[:end], "."), line[end+1:]
	}
	for {
		value := ""
		if value, rest, err = parseValue(rest); err != nil {
			return p, "", err
		}
		p.values = append(p.values, value)
		if !strings.HasPrefix(rest, ",") {
			return p, rest, nil
		}
		rest = rest[1:]
	}
}

func parseValue(line string) (value, rest string, err error) {
	if strings.HasPrefix(line, `"`) {
		prefix, err := strconv.QuotedPrefix(line)
		if err != nil {
			return "", "", err
		}
		value, err = strconv.Unquote(prefix)
		return value, line[len(prefix):], err
	}
	if rest, found := strings.CutPrefix(line, nothing); found {
		return nothing, rest, nil
	}
	end := strings.IndexFunc(line+" ", func(r rune) bool { return !bare(r) })
	if end == 0 {
		return "", "", errLine
	}
	return line[:end], line[end:], nil
}

// branch holds the values of one path in a line, or the paths below it.
type branch struct {
	values []string
	below  map[string]*branch
}

// treeOf returns the values of a line as a tree of their paths.
func treeOf(pairs []pair) (*branch, error) {
	root := &branch{}
	for _, p := range pairs {
		at := root
		for _, name := range p.path {
			if at.values != nil || name == "" {
				return nil, errLine
			}
			if at.below == nil {
				at.below = map[string]*branch{}
			}
			if at.below[name] == nil {
				at.below[name] = &branch{}
			}
			at = at.below[name]
		}
		if at.values != nil || at.below != nil {
			return nil, errLine
		}
		at.values = p.values
	}
	return root, nil
}

// text returns the only value.
func (b *branch) text() (string, error) {
	if len(b.values) != 1 {
		return "", errLine
	}
	return b.values[0], nil
}

// into sets a Go value from the branch. Fields that the branch lacks are left as they are.
func (b *branch) into(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		fresh := reflect.New(v.Type().Elem())
		if err := b.into(fresh.Elem()); err != nil {
			return err
		}
		v.Set(fresh)
		return nil
	case reflect.Slice:
		return b.list(v)
	case reflect.Map:
		return nil // no record has a map
	}
	if _, plain := v.Addr().Interface().(encoding.TextUnmarshaler); !plain && v.Kind() == reflect.Struct {
		return b.fields(v)
	}
	text, err := b.text()
	if err != nil {
		return err
	}
	return setPlain(v, text)
}

func setPlain(v reflect.Value, text string) error {
	switch x := v.Addr().Interface().(type) {
	case *time.Duration:
		d, err := time.ParseDuration(text)
		*x = d
		return err
	case encoding.TextUnmarshaler:
		return x.UnmarshalText([]byte(text))
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
		return nil
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		v.SetBool(b)
		return err
	case reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		v.SetInt(n)
		return err
	}
	return fmt.Errorf("%s: %w", v.Type(), errors.ErrUnsupported)
}

// fields sets the fields of a struct that the branch has. Values without a field are ignored: a later
// version of this package has written them.
func (b *branch) fields(v reflect.Value) error {
	if b.values != nil && !slices.Equal(b.values, []string{nothing}) {
		return errLine
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Anonymous && field.Type.Kind() == reflect.Struct {
			if err := b.fields(v.Field(i)); err != nil {
				return err
			}
			continue
		}
		if inner := b.below[fieldName(field.Name)]; inner != nil {
			if err := inner.into(v.Field(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *branch) list(v reflect.Value) error {
	n := len(b.values) + len(b.below)
	list := reflect.MakeSlice(v.Type(), n, n)
	for i := range n {
		inner := b.below[strconv.Itoa(i)]
		if b.values != nil {
			inner = &branch{values: b.values[i : i+1]}
		}
		if inner == nil {
			return errLine
		}
		if err := inner.into(list.Index(i)); err != nil {
			return err
		}
	}
	if n > 0 {
		v.Set(list)
	}
	return nil
}
