package driver

import (
	"context"
	"fmt"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
)

// Validation holds the rules for one call's request and answer. Validate says what happens to a
// violation. Validate uses it, and so does pooldriver.Validate.
type Validation[R any] struct {
	Call CallInfo
	// Invalid is what the request lacks, or what else is wrong with it: "the class is missing". Empty:
	// nothing.
	Invalid string
	// Secrets are those whose values the answer must not show. Nil secrets are ignored. Text in
	// Class's provider spec is not secret.
	Secrets []*machine.Secret
	Class   *machine.Class

	// Optional: a missing response counts as an empty one.
	Optional bool
	// Check returns what is wrong with a response that came without an error: "has no provider ID".
	// Empty: nothing. A nil Check accepts any response.
	Check func(*R) string
	// Tidy removes from a response without an error what can't be acted upon, and reports whether
	// there was any. The response is a copy; what it refers to is not. Nil: nothing is removed.
	Tidy func(*R) bool
	// Bounds returns the bounds of the parts of a response. Nil: there are none.
	Bounds func(*R) []Bound
	// Note returns the driver's own note, which has at most MaxNote bytes. Nil: there is none.
	Note func(*R) *string
	// Failure returns a text that is treated like an error's message. Nil: there is none.
	Failure func(*R) *string

	// Cut is as in ValidateOptions.
	Cut func(ctx context.Context, call CallInfo, whole string)
}

// Do makes the call, if the request is valid, and returns the part of its answer that is passed on:
// the driver's own response, or a changed copy of it.
func (v Validation[R]) Do(ctx context.Context, call func(context.Context) (*R, error)) (*R, error) {
	if v.Invalid != "" {
		return nil, codes.Newf(codes.InvalidArgument, "%s was not called: %s", v.Call.Method, v.Invalid)
	}
	answered, err := call(ctx)
	hidden := confidentialOf(ctx, v.Call.Object.Name, v.Class, v.Secrets...)
	response, fault := v.bounded(ctx, answered, hidden)
	if err != nil {
		whole, passed := passedOn(err, hidden)
		v.cut(ctx, whole)
		return response, passed
	}
	if fault == "" {
		response, fault = v.checked(response)
	}
	if fault != "" {
		return response, codes.Newf(codes.Internal, "the driver's answer to %s %s", v.Call.Method, fault)
	}
	return response, nil
}

// bounded returns a response without confidential text and without parts that exceed their bound.
// fault says what is wrong with a required part. Empty: nothing.
func (v *Validation[R]) bounded(ctx context.Context, answered *R, hidden *confidential) (response *R, fault string) {
	if answered == nil {
		return nil, ""
	}
	c := *answered
	changed := v.Failure != nil && v.failure(ctx, v.Failure(&c), hidden)
	var bounds []Bound
	if v.Bounds != nil {
		bounds = v.Bounds(&c)
	}
	if v.Note != nil {
		note := v.Note(&c)
		before := *note
		*note = hidden.redactedNote(before)
		changed = changed || *note != before
		bounds = append(bounds, Bound{Name: "a last known state", Text: note, Most: MaxNote})
	}
	for _, b := range bounds {
		what := b.excess(hidden)
		if what == "" {
			continue
		}
		changed = true
		v.cut(ctx, "the answer has "+what+": left out")
		if b.Needed && fault == "" {
			fault = "has " + what
		}
	}
	if !changed {
		return answered, ""
	}
	return &c, fault
}

// failure changes a text so that it can be shown, and reports whether it did.
func (v *Validation[R]) failure(ctx context.Context, text *string, hidden *confidential) bool {
	whole := hidden.redacted(*text)
	shown, _ := codes.Bounded(codes.Printable(whole))
	if shown == *text {
		return false
	}
	v.cut(ctx, whole)
	*text = shown
	return true
}

// checked returns a response that can be acted upon, and what is wrong with it.
func (v *Validation[R]) checked(response *R) (_ *R, fault string) {
	switch {
	case response == nil && v.Optional:
		return new(R), ""
	case response == nil:
		return nil, "says OK, and nothing else"
	}
	if v.Check != nil {
		fault = v.Check(response)
	}
	if fault != "" || v.Tidy == nil {
		return response, fault
	}
	if c := *response; v.Tidy(&c) {
		return &c, ""
	}
	return response, ""
}

// cut passes to Cut the whole of a text that was shortened or changed. Empty: there is none.
func (v *Validation[R]) cut(ctx context.Context, whole string) {
	if v.Cut != nil && whole != "" {
		v.Cut(ctx, v.Call, whole)
	}
}

// Bound is one part of a response, and how large it may be.
type Bound struct {
	Name string // "a node name"
	Most int
	// Needed: an answer without this part is invalid.
	Needed bool
	// Text is the part: its size is in bytes, and it is emptied if it is too large. If Text is nil,
	// Size is the size of the part, and Drop removes what is too large from the response.
	Text *string
	Size int
	Drop func()
	// Unfit removes from the response each text of the part that shows a value of a secret (the
	// function shows tells), and reports whether there was any. Nil: the part is not searched.
	Unfit func(shows func(string) bool) bool
}

// excess removes the part if it may not be passed on, and returns why. Empty: it may.
func (b *Bound) excess(hidden *confidential) string {
	if size := b.size(); size > b.Most {
		b.drop()
		return fmt.Sprintf("%s of size %d, and %d is the most", b.Name, size, b.Most)
	}
	if b.Unfit != nil && b.Unfit(hidden.isShownBy) {
		return b.Name + " that shows a value of a secret"
	}
	return ""
}

func (b *Bound) size() int {
	if b.Text != nil {
		return len(*b.Text)
	}
	return b.Size
}

func (b *Bound) drop() {
	if b.Text != nil {
		*b.Text = ""
		return
	}
	b.Drop()
}

// passedOn returns an error as it is passed on: of at most codes.MaxMessage bytes, on one line, and
// without confidential text. If that changes or cuts the error, whole is the full text, with the
// cause. Otherwise whole is empty, and the error is returned as it is.
func passedOn(err error, c *confidential) (whole string, passed error) {
	message, text := codes.Message(err), codes.Message(err)
	if own, typed := err.(*codes.Error); typed { //nolint:errorlint // what codes.Message does
		text = own.Error()
	}
	whole = c.redacted(text)
	if whole == text && len(text) <= codes.MaxMessage && codes.Printable(text) == text {
		return "", err
	}
	shown, _ := codes.Bounded(codes.Printable(c.redacted(message)))
	return whole, &codes.Error{Code: codes.Of(err), Message: shown, RetryAfter: codes.RetryAfter(err)}
}
