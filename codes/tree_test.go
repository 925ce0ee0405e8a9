package codes_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
)

// specimen is an error together with what is known about it from how it was built. Building one
// never calls the package under test.
type specimen struct {
	err                error
	typed              bool // a code is in it; first is the one that comes first
	first              codes.Code
	deadline, canceled bool
}

// want is the code that the specimen must have.
func (s specimen) want() codes.Code {
	switch {
	case s.err == nil:
		return codes.OK
	case s.typed && (s.first == codes.OK || s.first > codes.Uninitialized):
		return codes.Unknown
	case s.typed:
		return s.first
	case s.deadline:
		return codes.DeadlineExceeded
	case s.canceled:
		return codes.Canceled
	}
	return codes.Unknown
}

// grown builds a specimen on a stack: each byte of plan pushes a leaf, or wraps or joins what lies
// on top. What is left at the end is joined. messages are used in turn.
func grown(plan []byte, messages []string) specimen {
	var stack []specimen
	next := 0
	for _, step := range plan {
		message := ""
		if len(messages) > 0 {
			message = messages[next%len(messages)]
			next++
		}
		code := codes.Code(step >> 3 % 20) // 18 and 19 are no codes
		n := min(len(stack), 1+int(step>>3)%3)
		switch top := stack[len(stack)-n:]; step % 8 {
		case 0, 1, 2:
			stack = append(stack, leaf(step>>3, code, message))
		case 3:
			stack = append(stack[:len(stack)-n], joined(top))
		default:
			if n > 0 {
				stack[len(stack)-1] = wrapped(step%8, stack[len(stack)-1], code, message)
			}
		}
	}
	return joined(stack)
}

func leaf(kind byte, code codes.Code, message string) specimen {
	switch kind % 7 {
	case 0:
		return specimen{err: errors.New(message)}
	case 1:
		return specimen{err: codes.New(code, message), typed: true, first: code}
	case 2:
		return specimen{err: &foreign{foreignName(code.String()), message}, typed: code.Valid(), first: code}
	case 3:
		return specimen{err: &foreign{foreignName(code.Contract()), message}, typed: code.Valid(), first: code}
	case 4:
		return specimen{err: context.DeadlineExceeded, deadline: true}
	case 5:
		return specimen{err: context.Canceled, canceled: true}
	}
	return specimen{err: (*codes.Error)(nil)}
}

func wrapped(kind byte, s specimen, code codes.Code, message string) specimen {
	switch {
	case kind == 4:
		s.err = fmt.Errorf("%s: %w", message, s.err)
	case kind == 5:
		s.err = fmt.Errorf("%w (%s, %w)", errors.New(message), message, s.err)
	case kind == 6 && s.err != nil:
		s.err = errors.Join(nil, s.err)
	default:
		s.err = codes.Wrap(code, s.err, message)
		s.typed, s.first = true, code
	}
	return s
}

func joined(parts []specimen) specimen {
	var all specimen
	errs := make([]error, 0, len(parts))
	for _, p := range parts {
		errs = append(errs, p.err)
		if p.typed && !all.typed {
			all.typed, all.first = true, p.first
		}
		all.deadline = all.deadline || p.deadline
		all.canceled = all.canceled || p.canceled
	}
	all.err = errors.Join(errs...)
	return all
}

// trickyMessages are texts that would mislead a reader of messages.
var trickyMessages = []string{
	"", "NotFound", "[NotFound]", "code = [NotFound] message = [gone]", "NOT_FOUND", "]", "[[", "%w %s %!", "OK", "[OK]",
	"rpc error: code = Unavailable desc = x", "context deadline exceeded", "context canceled", "Code(5)", "\x00\xff\n",
}

type failer interface {
	Fatalf(format string, args ...any)
}

// checkSpecimen checks Of and Message against what must be true of any error.
func checkSpecimen(t failer, s specimen) {
	if got := codes.Of(s.err); got != s.want() {
		t.Fatalf("Of(%#v) = %v, want %v", s.err, got, s.want())
	}
	if (codes.Message(s.err) == "") != (s.err == nil) {
		t.Fatalf("Message(%#v) = %q", s.err, codes.Message(s.err))
	}
}

// No wrapping and no message loses a code or invents one.
func TestPropertyCodesSurviveTheirWayUp(t *testing.T) {
	message := rapid.OneOf(rapid.SampledFrom(trickyMessages), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		plan := rapid.SliceOfN(rapid.Byte(), 0, 24).Draw(t, "plan")
		messages := rapid.SliceOfN(message, 1, 4).Draw(t, "messages")
		s := grown(plan, messages)
		checkSpecimen(t, s)
		other := grown(plan, []string{message.Draw(t, "other message")})
		if got, want := codes.Of(other.err), codes.Of(s.err); got != want {
			t.Fatalf("%v with one message, %v with another", want, got)
		}
	})
}

// Every plan of two steps, so that the specimens are known to cover every code.
func TestCodesOfAllSmallTrees(t *testing.T) {
	seen := map[codes.Code]bool{codes.OK: true}
	checkSpecimen(t, grown(nil, nil))
	for plan := range 1 << 16 {
		s := grown([]byte{byte(plan), byte(plan >> 8)}, trickyMessages[3:5])
		seen[s.want()] = true
		checkSpecimen(t, s)
	}
	for c := range codes.All() {
		if !seen[c] {
			t.Errorf("no specimen had to be %v", c)
		}
	}
}

func FuzzOf(f *testing.F) {
	plans := [][]byte{nil, {0}, {8}, {16}, {32}, {40}, {8, 4, 5, 6}, {8, 16, 11}, {0, 40, 32, 19, 4}, {8, 15}, {48, 8, 11, 4, 6}}
	for i, m := range trickyMessages {
		f.Add(plans[i%len(plans)], m, trickyMessages[(i+3)%len(trickyMessages)])
	}
	f.Fuzz(func(t *testing.T, plan []byte, m1, m2 string) {
		if len(plan) > 200 {
			plan = plan[:200]
		}
		checkSpecimen(t, grown(plan, []string{m1, m2}))
	})
}
