package driver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/millwright-go/millwright/machine"
)

// shortestHidden is the minimum length in bytes of a value of a secret that is removed from
// messages. Shorter ones occur in texts by chance.
const shortestHidden = 8

// shortestPart is the same for parts of a value: a line, or a string within JSON. It is longer, because
// parts are often words that are not secret.
const shortestPart = 16

// confidential is what must not be seen in a driver's answer.
type confidential struct {
	secrets []*machine.Secret // the request's, and those of WithConfidentialSecret; may be nil
	public  []byte            // the class's provider spec: its contents are not secret
	name    string            // of the object: not secret either
	texts   []replacement     // those of WithConfidential
	values  *needles          // of secrets; nil: not made yet
}

// replacement is one confidential text, and what is shown instead.
type replacement struct{ text, shown string }

type textsKey struct{}

// WithConfidential returns a context for a call of a driver. Validate removes text from the answer
// of that call, LastKnownState included, and shows other words instead. It is for text that a
// request contains in something larger, such as a token in user data. Empty text changes nothing.
func WithConfidential(ctx context.Context, text, shown string) context.Context {
	if text == "" {
		return ctx
	}
	before, _ := ctx.Value(textsKey{}).([]replacement)
	return context.WithValue(ctx, textsKey{}, append(slices.Clip(before), replacement{text, shown}))
}

type secretsKey struct{}

// WithConfidentialSecret returns a context for a call of a driver. Validate removes the values of
// the secret from messages of that call, as it does those of the request's secret. It is for a
// secret of an earlier request: a provider may repeat it later. Nil changes nothing.
func WithConfidentialSecret(ctx context.Context, s *machine.Secret) context.Context {
	if s == nil {
		return ctx
	}
	before, _ := ctx.Value(secretsKey{}).([]*machine.Secret)
	return context.WithValue(ctx, secretsKey{}, append(slices.Clip(before), s))
}

func confidentialOf(ctx context.Context, name string, class *machine.Class, secrets ...*machine.Secret) *confidential {
	more, _ := ctx.Value(secretsKey{}).([]*machine.Secret)
	c := &confidential{secrets: append(secrets, more...), name: name}
	c.texts, _ = ctx.Value(textsKey{}).([]replacement)
	if class != nil {
		c.public = class.ProviderSpec
	}
	return c
}

// redacted returns a message without values of secrets and without the caller's confidential texts.
func (c *confidential) redacted(message string) string {
	return c.replaced(message, c.secretValues())
}

// redactedNote returns a driver's note without the caller's confidential texts. Values of secrets stay:
// by contract a note holds none, and the driver, which gets its note back, could not read a changed one.
func (c *confidential) redactedNote(note string) string {
	if len(c.texts) == 0 {
		return note
	}
	return c.replaced(note, nil)
}

// isShownBy reports whether a name or an address shows a value of a secret, or a part of one, of at
// least shortestPart bytes. A shorter one may be there by chance, or be a word that is not secret.
func (c *confidential) isShownBy(text string) bool {
	if len(c.secretValues().by) == 0 {
		return false
	}
	found := false
	readings(text, func(r *reading) {
		c.secretValues().in(r, func(n *needle, _, _ int32) { found = found || len(n.text) >= shortestPart })
	})
	return found
}

// needle is a text that is searched for.
type needle struct {
	text  []byte
	shown string // what takes its place
}

// needles are texts that are searched for together. by lists them under their prefix.
type needles struct{ by map[uint64][]needle }

// add adds a text of at least shortestHidden bytes. If it is there already, the replacement that sorts
// first is used.
func (n *needles) add(text []byte, shown string) {
	begins := prefix(text)
	for i := range n.by[begins] {
		if have := &n.by[begins][i]; bytes.Equal(have.text, text) {
			have.shown = min(have.shown, shown)
			return
		}
	}
	n.by[begins] = append(n.by[begins], needle{text, shown})
}

// in calls the function found for each needle in a reading and its branches, with the bytes of the original that
// it stands for.
func (n *needles) in(r *reading, found func(n *needle, from, to int32)) {
	if n == nil || len(n.by) == 0 {
		return
	}
	for at := 0; at+shortestHidden <= len(r.text); at++ {
		candidates := n.by[prefix(r.text[at:])]
		for i := range candidates {
			if c := &candidates[i]; bytes.HasPrefix(r.text[at:], c.text) {
				found(c, r.from[at], r.to[at+len(c.text)-1])
			}
		}
	}
	for i := range r.branches {
		b := &r.branches[i]
		text := r.joined(b, shortestHidden).text
		for at := 0; at < len(b.head.text) && at+shortestHidden <= len(text); at++ {
			candidates := n.by[prefix(text[at:])]
			for i := range candidates {
				if to, ok := r.reads(b, at, candidates[i].text); ok {
					found(&candidates[i], b.head.from[at], to)
				}
			}
		}
	}
}

// secretValues returns the values of the secrets, and their parts.
func (c *confidential) secretValues() *needles {
	if c.values != nil {
		return c.values
	}
	c.values = &needles{by: map[uint64][]needle{}}
	for _, s := range c.secrets {
		if s == nil {
			continue
		}
		for key, value := range s.Data {
			c.hide(key, value)
		}
	}
	return c.values
}

// hide adds a value and its parts.
func (c *confidential) hide(key string, value []byte) {
	c.add(key, value, shortestHidden)
	for _, text := range append(members(value, deepest), string(value)) {
		c.add(key, []byte(text), shortestPart)
		for line := range strings.Lines(text) {
			c.add(key, []byte(strings.TrimSpace(line)), shortestPart)
			c.add(key, []byte(scalar(line)), shortestPart)
		}
	}
}

// add adds one text, unless it has fewer than shortest bytes or is not secret.
func (c *confidential) add(key string, value []byte, shortest int) {
	trimmed := bytes.TrimSpace(value)
	if len(trimmed) < shortest || bytes.Contains(c.public, trimmed) || strings.Contains(c.name, string(trimmed)) {
		return
	}
	c.values.add(value, "[value of "+key+"]")
	c.values.add(trimmed, "[value of "+key+"]")
}

// members returns the strings in a value that is JSON, and in those of its strings that are JSON.
func members(value []byte, depth int) (all []string) {
	var whole any
	if depth == 0 || json.Unmarshal(value, &whole) != nil {
		return nil
	}
	all = stringsIn(whole)
	for _, member := range slices.Clip(all) {
		if _, plain := whole.(string); !plain || member != string(value) {
			all = append(all, members([]byte(member), depth-1)...)
		}
	}
	return all
}

func stringsIn(value any) (all []string) {
	switch v := value.(type) {
	case string:
		return []string{v}
	case []any:
		for _, member := range v {
			all = append(all, stringsIn(member)...)
		}
	case map[string]any:
		for _, member := range v {
			all = append(all, stringsIn(member)...)
		}
	}
	return all
}

// scalar returns the value in a line of YAML or of a file of settings, such as "- token: 'abc'" or
// TOKEN=abc. Empty: there is none.
func scalar(line string) string {
	text := strings.TrimSpace(line)
	for strings.HasPrefix(text, "- ") {
		text = strings.TrimSpace(text[2:])
	}
	if _, value, ok := strings.Cut(text, ": "); ok {
		text = value
	} else if _, value, ok := strings.Cut(text, "="); ok {
		text = value
	}
	text, _, _ = strings.Cut(text, " #")
	text = strings.TrimSpace(text)
	if n := len(text); n >= 2 && (text[0] == '"' || text[0] == '\'') && text[n-1] == text[0] {
		text = text[1 : n-1]
	}
	return text
}

// span is a part of a text that is replaced.
type span struct {
	from, to int32
	size     int // of what was found there
	shown    string
}

// replaced returns a text with other words in place of what is confidential in it.
func (c *confidential) replaced(text string, values *needles) string {
	if len(c.texts) == 0 && (values == nil || len(values.by) == 0) {
		return text
	}
	rest := ""
	if len(text) > mostSearched {
		text, rest = text[:mostSearched], " … (cut)"
	}
	var spans []span
	whole := readings(text, func(r *reading) {
		values.in(r, func(n *needle, from, to int32) { spans = append(spans, span{from, to, len(n.text), n.shown}) })
		for _, s := range c.texts {
			r.each([]byte(s.text), func(from, to int32) { spans = append(spans, span{from, to, len(s.text), s.shown}) })
		}
	})
	if !whole {
		return "[a text in so many encodings that it was not searched for values of secrets]"
	}
	if len(spans) == 0 {
		return text + rest
	}
	return spliced(text, spans) + rest
}

// spliced replaces parts of a text. Parts that overlap are replaced together, by the replacement of the
// longest value among them.
func spliced(text string, spans []span) string {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	var all strings.Builder
	done := int32(0)
	for i := 0; i < len(spans); {
		one := spans[i]
		for i++; i < len(spans) && spans[i].from < one.to; i++ {
			one.to = max(one.to, spans[i].to)
			if longer(&spans[i], &one) {
				one.size, one.shown = spans[i].size, spans[i].shown
			}
		}
		all.WriteString(text[done:one.from])
		all.WriteString(one.shown)
		done = one.to
	}
	all.WriteString(text[done:])
	return all.String()
}

// longer reports whether what was found at a takes the place of what was found at b.
func longer(a, b *span) bool {
	return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(b.shown, a.shown)) > 0
}
