package driver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/millwright-go/millwright/machine"
)

// shortestHidden is the minimum length in bytes of a value of a secret that is removed from
// messages. Shorter ones occur in texts by chance.
const shortestHidden = 8

// shortestPart is the same for a line, and for a string within JSON. The figure is this library's.
// Parts are often words that are not secret.
const shortestPart = 16

// confidential is what must not be seen in a driver's answer.
type confidential struct {
	secrets []*machine.Secret // the request's; nil ones are none
	shows   []byte            // the class's provider spec: its contents are not secret
	spoken  []spoken          // the caller's own
}

// spoken is one confidential text, and its replacement.
type spoken struct{ text, shown string }

type spokenKey struct{}

// WithConfidential returns a context for a call of a driver. Validate removes text from the answer
// of that call, LastKnownState included, and shows other words instead. It is for text that a
// request contains in something larger, such as a token in user data. Empty text changes nothing.
func WithConfidential(ctx context.Context, text, shown string) context.Context {
	if text == "" {
		return ctx
	}
	before, _ := ctx.Value(spokenKey{}).([]spoken)
	return context.WithValue(ctx, spokenKey{}, append(slices.Clip(before), spoken{text, shown}))
}

type unsentKey struct{}

// WithConfidentialSecret returns a context for a call of a driver. Validate removes the values of
// the secret from messages of that call, as it does those of the request's secret. It is for a
// secret of an earlier request: a provider may repeat it later. Nil changes nothing.
func WithConfidentialSecret(ctx context.Context, s *machine.Secret) context.Context {
	if s == nil {
		return ctx
	}
	before, _ := ctx.Value(unsentKey{}).([]*machine.Secret)
	return context.WithValue(ctx, unsentKey{}, append(slices.Clip(before), s))
}

func confidentialOf(ctx context.Context, class *machine.Class, secrets ...*machine.Secret) *confidential {
	unsent, _ := ctx.Value(unsentKey{}).([]*machine.Secret)
	c := &confidential{secrets: append(secrets, unsent...)}
	c.spoken, _ = ctx.Value(spokenKey{}).([]spoken)
	if class != nil {
		c.shows = class.ProviderSpec
	}
	return c
}

// hidden returns a message without values of secrets and without the caller's confidential texts.
func (c *confidential) hidden(message string) string {
	all := make(map[string]string)
	for _, s := range c.secrets {
		if s == nil {
			continue
		}
		for key, value := range s.Data {
			c.hide(all, key, value)
		}
	}
	return c.noted(replaced(message, all))
}

// hide adds the forms in which a value, or a part of it, is likely to be printed.
func (c *confidential) hide(all map[string]string, key string, value []byte) {
	c.add(all, key, value, shortestHidden, forms)
	for _, text := range append(members(value), string(value)) {
		c.add(all, key, []byte(text), shortestPart, forms)
		for line := range strings.Lines(text) {
			c.add(all, key, []byte(strings.TrimSpace(line)), shortestPart, textForms)
		}
	}
}

// add adds the forms of one text, if it has at least that many bytes.
func (c *confidential) add(all map[string]string, key string, value []byte, shortest int, forms func([]byte) []string) {
	trimmed := bytes.TrimSpace(value)
	if len(trimmed) < shortest || bytes.Contains(c.shows, trimmed) {
		return
	}
	for _, v := range [][]byte{value, trimmed} {
		for _, form := range forms(v) {
			if old, has := all[form]; !has || key < old {
				all[form] = key
			}
		}
		if len(trimmed) == len(value) {
			return
		}
	}
}

// forms returns those in which a value is likely to be printed.
func forms(v []byte) []string {
	text, digits := string(v), hex.EncodeToString(v)
	return append(textForms(v), url.QueryEscape(text), url.PathEscape(text), digits, strings.ToUpper(digits),
		base64.RawStdEncoding.EncodeToString(v), base64.RawURLEncoding.EncodeToString(v), fmt.Sprint(v))
}

// textForms returns those of forms in which a text can still be read.
func textForms(v []byte) []string {
	quoted := strconv.Quote(string(v))
	all := []string{string(v), quoted[1 : len(quoted)-1]}
	if text, err := json.Marshal(string(v)); err == nil {
		all = append(all, string(text[1:len(text)-1]))
	}
	return all
}

// members returns the strings in a value that is JSON.
func members(value []byte) []string {
	var whole any
	if json.Unmarshal(value, &whole) != nil {
		return nil
	}
	return stringsIn(whole)
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

// replaced returns a text with the name of its key in place of each value. A long value goes before
// a short one that may be a part of it.
func replaced(text string, keyOf map[string]string) string {
	for _, form := range slices.SortedFunc(maps.Keys(keyOf), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	}) {
		if strings.Contains(text, form) {
			text = strings.ReplaceAll(text, form, "[value of "+keyOf[form]+"]")
		}
	}
	return text
}

// noted returns a driver's note without the caller's confidential texts. The values of secrets stay
// in it. The driver gets its note back and could not read it any more without them. By contract it
// holds none.
func (c *confidential) noted(note string) string {
	for _, s := range c.spoken {
		for _, form := range []string{s.text, url.QueryEscape(s.text)} {
			note = strings.ReplaceAll(note, form, s.shown)
		}
	}
	return note
}
