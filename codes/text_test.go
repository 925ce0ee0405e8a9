package codes_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/millwright-go/millwright/codes"
)

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
