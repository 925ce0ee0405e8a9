package decision

import (
	"strconv"
	"strings"
	"time"
)

// fill returns a template, see [Why.String], with its words replaced. complete reports whether no word
// outside of brackets has a zero value. Braces and brackets in values have no meaning. A word that is not
// known stays as it is.
func (w *Why) fill(template string) (text string, complete bool) {
	var out strings.Builder
	out.Grow(2 * len(template))
	complete = true
	for {
		at := strings.IndexAny(template, "{[")
		if at < 0 {
			out.WriteString(template)
			return out.String(), complete
		}
		end := strings.IndexByte(template[at:], template[at]+2) // "}" and "]" come two after "{" and "["
		if end < 0 {
			out.WriteString(template)
			return out.String(), complete
		}
		out.WriteString(template[:at])
		inner := template[at+1 : at+end]
		if template[at] == '[' {
			out.WriteString(w.optional(inner))
		} else {
			value, set := w.word(inner)
			out.WriteString(value)
			complete = complete && set
		}
		template = template[at+end+1:]
	}
}

// optional returns the part before the bar if all of its words are set, or else the part after it.
func (w *Why) optional(parts string) string {
	first, second := parts, ""
	depth := 0
	for i := range len(parts) {
		switch parts[i] {
		case '{':
			depth++
		case '}':
			depth--
		case '|':
			if depth == 0 {
				first, second = parts[:i], parts[i+1:]
			}
		}
	}
	if text, complete := w.fill(first); complete {
		return text
	}
	text, _ := w.fill(second)
	return text
}

// word returns the text that replaces a word of a template. set reports whether its value is not zero.
func (w *Why) word(word string) (text string, set bool) {
	name, noun, counted := strings.Cut(word, "|")
	switch name {
	case "name":
		return quoted(w.Name), w.Name != ""
	case "detail":
		return quoted(w.Detail), w.Detail != ""
	case "object":
		return quoted(w.Object.String()), w.Object.Name != ""
	case "code":
		return w.Code.Contract(), w.Code != 0
	case "for":
		return w.For.Round(time.Second).String(), w.For > 0
	case "wait":
		return w.For.Round(time.Millisecond).String(), w.For > 0
	case "cause":
		if w.Cause == nil {
			return "", false
		}
		return w.Cause.String(), true
	}
	n, known := w.number(name)
	switch text = strconv.FormatInt(n, 10); {
	case !known:
		return "{" + word + "}", true
	case !counted:
		return text, n != 0
	}
	one, several, _ := strings.Cut(noun, "|")
	if n == 1 {
		return text + " " + one, true
	}
	return text + " " + several, n != 0
}

func (w *Why) number(name string) (n int64, known bool) {
	switch name {
	case "have":
		return w.Have, true
	case "want":
		return w.Want, true
	case "count":
		return w.Count, true
	case "all":
		return w.All, true
	case "ready":
		return w.Ready, true
	case "available":
		return w.Available, true
	case "number":
		return w.Number, true
	}
	return 0, false
}

// quoted returns a text as it is, and an empty one in quotes.
func quoted(s string) string {
	if s == "" {
		return `""`
	}
	return s
}
