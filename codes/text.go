package codes

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxMessage is how many bytes of a provider's message are kept, including the mark of a cut. The
// figure is this library's: an object may hold hundreds of messages, and a store may limit its size
// to 1 MiB.
const MaxMessage = 1 << 10

// cutMark ends a message that was cut.
const cutMark = " … (cut)"

// Bounded returns a message of at most MaxMessage bytes, and whether it was cut.
// A cut falls between two characters and ends with " … (cut)".
func Bounded(message string) (short string, cut bool) {
	if len(message) <= MaxMessage {
		return message, false
	}
	end := MaxMessage - len(cutMark)
	for end > 0 && !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + cutMark, true
}

// Printable returns the text without control characters, so that a terminal only shows it. A line break
// or a tab becomes a space. Every other control character, and what is not UTF-8, becomes U+FFFD.
// Characters that change the direction of writing, and the separators U+2028 and U+2029, count as
// control characters. Text without any of these is returned unchanged.
func Printable(text string) string {
	if utf8.ValidString(text) && strings.IndexFunc(text, control) < 0 {
		return text
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case control(r):
			return utf8.RuneError
		}
		return r
	}, text)
}

// control reports whether a character controls the terminal or the layout, and is not shown itself.
func control(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}
