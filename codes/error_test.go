package codes_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/millwright-go/millwright/codes"
)

// mute is an error without a text, crashing one whose methods all panic.
type mute struct{}

func (mute) Error() string { return "" }

type crashing struct{}

func (crashing) Error() string    { panic("Error") }
func (crashing) Unwrap() error    { panic("Unwrap") }
func (crashing) Is(error) bool    { panic("Is") }
func (crashing) As(any) bool      { panic("As") }
func (crashing) Code() codes.Code { panic("Code") }

func TestErrorTextAndMessage(t *testing.T) {
	refused := errors.New("status 403, request 7f3a")
	for name, c := range map[string]struct {
		err           error
		text, message string
	}{
		"message": {codes.New(codes.ResourceExhausted, "no cores are left in zone b"),
			"ResourceExhausted: no cores are left in zone b", "no cores are left in zone b"},
		"format": {codes.Newf(codes.OutOfRange, "%d cores asked, %d are the most", 99, 64),
			"OutOfRange: 99 cores asked, 64 are the most", "99 cores asked, 64 are the most"},
		"cause": {codes.Wrap(codes.PermissionDenied, refused, "VMs can't be created"),
			"PermissionDenied: VMs can't be created: status 403, request 7f3a", "VMs can't be created"},
		"cause only": {codes.Wrap(codes.PermissionDenied, refused, ""),
			"PermissionDenied: status 403, request 7f3a", "status 403, request 7f3a"},
		"typed cause only": {codes.Wrap(codes.Internal, codes.New(codes.NotFound, "no image x"), ""),
			"Internal: NotFound: no image x", "NotFound: no image x"},
		"code only": {codes.New(codes.Unavailable, ""),
			"Unavailable: the provider is not available at present", "the provider is not available at present"},
		"wrapped": {fmt.Errorf("machine m-1: %w", codes.New(codes.Aborted, "VM m-1 is being resized")),
			"machine m-1: Aborted: VM m-1 is being resized", "machine m-1: Aborted: VM m-1 is being resized"},
		"foreign":     {refused, "status 403, request 7f3a", "status 403, request 7f3a"},
		"code OK":     {codes.New(codes.OK, "done"), "Unknown: done", "done"},
		"no code":     {codes.New(42, "what"), "Unknown: what", "what"},
		"nil pointer": {(*codes.Error)(nil), "Unknown: the provider call failed without saying why", "the provider call failed without saying why"},
		"mute cause": {codes.Wrap(codes.Internal, mute{}, "disk m-1 is in an odd state"),
			"Internal: disk m-1 is in an odd state: an error of type codes_test.mute without a readable text", "disk m-1 is in an odd state"},
		"crashing cause": {codes.Wrap(codes.Internal, crashing{}, ""),
			"Internal: an error of type codes_test.crashing without a readable text", "an error of type codes_test.crashing without a readable text"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.err.Error(); got != c.text {
				t.Errorf("Error() = %q, want %q", got, c.text)
			}
			if got := codes.Message(c.err); got != c.message {
				t.Errorf("Message() = %q, want %q", got, c.message)
			}
		})
	}
}

func TestMessageIsEmptyForNilOnly(t *testing.T) {
	if got := codes.Message(nil); got != "" {
		t.Errorf("Message(nil) = %q", got)
	}
	if got := codes.Message(mute{}); !strings.Contains(got, "codes_test.mute") {
		t.Errorf("Message of an error without text = %q", got)
	}
	if got := codes.Message(crashing{}); !strings.Contains(got, "codes_test.crashing") {
		t.Errorf("Message of an error whose Error panics = %q", got)
	}
	for c := range codes.All() {
		if got := codes.Message(codes.New(c, "")); len(strings.Fields(got)) < 3 {
			t.Errorf("without a message, %v says only %q", c, got)
		}
	}
}

func TestUnwrap(t *testing.T) {
	cause := errors.New("below")
	if err := codes.Wrap(codes.Internal, cause, "above"); !errors.Is(err, cause) {
		t.Error("the cause is not found by errors.Is")
	}
	if err := codes.New(codes.Internal, "alone"); err.Unwrap() != nil {
		t.Error("an error without cause unwraps to something")
	}
	if err := (*codes.Error)(nil); err.Unwrap() != nil {
		t.Error("a nil error unwraps to something")
	}
	if err := codes.Wrap(codes.Internal, nil, "no cause"); codes.Of(err) != codes.Internal {
		t.Error("without a cause Wrap must still give an error")
	}
}

// throttled is an error of another library that asks to wait. retryAfterPanics has a method that panics.
type throttled struct{ error }

func (throttled) RetryAfter() time.Duration { return time.Minute }

type retryAfterPanics struct{ error }

func (retryAfterPanics) RetryAfter() time.Duration { panic("RetryAfter") }

func TestRetryAfter(t *testing.T) {
	limited := &codes.Error{Code: codes.Unavailable, RetryAfter: time.Second}
	for name, c := range map[string]struct {
		err  error
		want time.Duration
	}{
		"nil":               {nil, 0},
		"own":               {limited, time.Second},
		"wrapped":           {fmt.Errorf("a: %w", limited), time.Second},
		"below a code":      {codes.Wrap(codes.Internal, limited, "above"), time.Second},
		"joined":            {errors.Join(errors.New("x"), retryAfterPanics{errors.New("y")}, limited), time.Second},
		"foreign":           {fmt.Errorf("a: %w", throttled{errors.New("x")}), time.Minute},
		"negative":          {&codes.Error{RetryAfter: -1}, 0},
		"none":              {codes.New(codes.Unavailable, "later"), 0},
		"nil pointer":       {(*codes.Error)(nil), 0},
		"unwraps to itself": {endless{}, 0},
	} {
		if got := codes.RetryAfter(c.err); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestBounded(t *testing.T) {
	for _, c := range []struct {
		text string
		cut  bool
	}{
		{"", false},
		{"no cores are left", false},
		{strings.Repeat("x", codes.MaxMessage), false},
		{strings.Repeat("x", codes.MaxMessage+1), true},
		{strings.Repeat("x", 20_000), true},
	} {
		short, cut := codes.Bounded(c.text)
		if cut != c.cut || len(short) > codes.MaxMessage || !cut && short != c.text {
			t.Errorf("%d bytes became %d, cut: %t", len(c.text), len(short), cut)
		}
		if cut && !strings.HasSuffix(short, "x … (cut)") {
			t.Errorf("it does not say that it was cut: %q", short[len(short)-20:])
		}
	}
	for shift := range 4 { // no character is cut in two
		short, _ := codes.Bounded(strings.Repeat("x", shift) + strings.Repeat("€", 1000))
		if !utf8.ValidString(short) || len(short) < codes.MaxMessage-2 {
			t.Errorf("shift %d: %d bytes, valid: %t", shift, len(short), utf8.ValidString(short))
		}
	}
	if short, cut := codes.Bounded(strings.Repeat("\x80", 5000)); !cut || len(short) > codes.MaxMessage {
		t.Errorf("what is no UTF-8 became %d bytes", len(short))
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"quota exceeded: 8 vCPU, Zürich, 東京": "quota exceeded: 8 vCPU, Zürich, 東京",
		"one\ntwo\r\n\tthree":                "one two   three",
		"\x1b[2Jgone\x07\x00":                "�[2Jgone��",
		"a\u009b31m b\u202e c":               "a�31m b� c",
		"line\u2028break":                    "line�break",
		"bad \xff byte":                      "bad � byte",
	} {
		if got := codes.Printable(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
