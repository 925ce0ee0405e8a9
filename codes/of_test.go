package codes_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
)

// foreignName is the code type of some other library. Only its spelling is the same as ours.
type foreignName string

func (n foreignName) String() string { return string(n) }

// foreign is a status as other libraries have them.
type foreign struct {
	name foreignName
	text string
}

func (f *foreign) Error() string     { return f.text }
func (f *foreign) Code() foreignName { return f.name }

// These errors have a method Code that Of can't use, each for another reason, except for codeIsAny with a
// Stringer.
type (
	codeIsNumber    struct{ error }
	codeIsPlainText struct{ error }
	codeHasInput    struct{ error }
	codeMayHaveMany struct{ error }
	codeHasTwo      struct{ error }
	codeIsNil       struct{ error }
	codeIsAny       struct {
		error
		code any
	}
	codeTextCrashes struct{ error }
	crashingName    struct{}
)

func (codeIsNumber) Code() int                  { return 5 }
func (codeIsPlainText) Code() string            { return "NotFound" }
func (codeHasInput) Code(int) foreignName       { return "NotFound" }
func (codeMayHaveMany) Code(...int) foreignName { return "NotFound" }
func (codeHasTwo) Code() (foreignName, error)   { return "NotFound", nil }
func (codeIsNil) Code() fmt.Stringer            { return nil }
func (c codeIsAny) Code() any                   { return c.code }
func (codeTextCrashes) Code() crashingName      { return crashingName{} }
func (crashingName) String() string             { panic("String") }

// presented returns an Error through As only. Without one its As still returns true.
type presented struct{ as *codes.Error }

func (presented) Error() string { return "presented" }
func (p presented) As(target any) bool {
	e, ok := target.(**codes.Error)
	if ok {
		*e = p.as
	}
	return ok
}

// refusing has an As that never returns anything.
type refusing struct{ error }

func (refusing) As(any) bool     { return false }
func (r refusing) Unwrap() error { return r.error }

// endless unwraps to itself, branching to itself twice.
type endless struct{}

func (endless) Error() string { return "endless" }
func (endless) Unwrap() error { return endless{} }

type branching struct{}

func (branching) Error() string   { return "branching" }
func (branching) Unwrap() []error { return []error{branching{}, nil, branching{}} }

func TestOf(t *testing.T) {
	notFound := codes.New(codes.NotFound, "no VM m-1")
	aborted := codes.New(codes.Aborted, "pending")
	plain := errors.New("plain")
	var nobody *foreign
	for name, c := range map[string]struct {
		err  error
		want codes.Code
	}{
		"nil":                        {nil, codes.OK},
		"plain":                      {plain, codes.Unknown},
		"typed":                      {notFound, codes.NotFound},
		"typed, wrapped":             {fmt.Errorf("a: %w", fmt.Errorf("b: %w", notFound)), codes.NotFound},
		"typed, formatted away":      {fmt.Errorf("a: %v", notFound), codes.Unknown},
		"outer before inner":         {codes.Wrap(codes.Aborted, notFound, "m"), codes.Aborted},
		"first of a join":            {errors.Join(plain, notFound, aborted), codes.NotFound},
		"deep first branch":          {errors.Join(fmt.Errorf("a: %w", fmt.Errorf("b: %w", notFound)), aborted), codes.NotFound},
		"second %w":                  {fmt.Errorf("%w, %w", plain, aborted), codes.Aborted},
		"OK in an error":             {codes.New(codes.OK, "m"), codes.Unknown},
		"OK hides what is below":     {codes.Wrap(codes.OK, notFound, "m"), codes.Unknown},
		"no code in an error":        {codes.New(42, "m"), codes.Unknown},
		"nil pointer":                {(*codes.Error)(nil), codes.Unknown},
		"nil pointer, then typed":    {errors.Join((*codes.Error)(nil), aborted), codes.Aborted},
		"deadline":                   {fmt.Errorf("a: %w", context.DeadlineExceeded), codes.DeadlineExceeded},
		"canceled":                   {fmt.Errorf("a: %w", context.Canceled), codes.Canceled},
		"deadline before canceled":   {errors.Join(context.Canceled, context.DeadlineExceeded), codes.DeadlineExceeded},
		"typed before deadline":      {errors.Join(context.DeadlineExceeded, aborted), codes.Aborted},
		"deadline below typed":       {codes.Wrap(codes.Unavailable, context.DeadlineExceeded, "m"), codes.Unavailable},
		"deadline by its Is":         {&net.OpError{Op: "dial", Err: timedOut()}, codes.DeadlineExceeded},
		"foreign wire":               {&foreign{name: "FailedPrecondition"}, codes.PreconditionFailed},
		"foreign contract":           {&foreign{name: "UNINITIALIZED"}, codes.Uninitialized},
		"foreign, wrapped":           {fmt.Errorf("a: %w", &foreign{name: "NotFound"}), codes.NotFound},
		"foreign before typed":       {errors.Join(&foreign{name: "NotFound"}, aborted), codes.NotFound},
		"foreign OK":                 {&foreign{name: "OK"}, codes.Unknown},
		"foreign nonsense, then":     {errors.Join(&foreign{name: "Teapot"}, aborted), codes.Aborted},
		"foreign nil pointer":        {nobody, codes.Unknown},
		"foreign nil, then typed":    {errors.Join(nobody, aborted), codes.Aborted},
		"foreign text is no code":    {&foreign{text: "code = [NotFound]"}, codes.Unknown},
		"Code is a number":           {codeIsNumber{plain}, codes.Unknown},
		"Code is plain text":         {codeIsPlainText{plain}, codes.Unknown},
		"Code wants input":           {codeHasInput{plain}, codes.Unknown},
		"Code may have input":        {codeMayHaveMany{plain}, codes.Unknown},
		"Code has two results":       {codeHasTwo{plain}, codes.Unknown},
		"Code is nil":                {codeIsNil{plain}, codes.Unknown},
		"Code is any: a spelling":    {codeIsAny{plain, foreignName("ABORTED")}, codes.Aborted},
		"Code is any: plain text":    {codeIsAny{plain, "ABORTED"}, codes.Unknown},
		"Code is any: nil":           {codeIsAny{plain, nil}, codes.Unknown},
		"Code's String panics":       {codeTextCrashes{plain}, codes.Unknown},
		"all methods panic":          {crashing{}, codes.Unknown},
		"all panic, then typed":      {errors.Join(crashing{}, aborted), codes.Aborted},
		"given out by As":            {fmt.Errorf("a: %w", presented{aborted}), codes.Aborted},
		"As gives none, then typed":  {errors.Join(presented{nil}, notFound), codes.NotFound},
		"As refuses, typed below":    {refusing{notFound}, codes.NotFound},
		"endless":                    {endless{}, codes.Unknown},
		"endless in two branches":    {branching{}, codes.Unknown},
		"brackets":                   {codes.New(codes.ResourceExhausted, "[NotFound] code = [Internal]"), codes.ResourceExhausted},
		"brackets around":            {fmt.Errorf("[Internal] %w]", notFound), codes.NotFound},
		"a message spelling a code":  {errors.New("NotFound"), codes.Unknown},
		"a message with a code list": {errors.New("rpc error: code = NotFound desc = [NOT_FOUND]"), codes.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			if got := codes.Of(c.err); got != c.want {
				t.Errorf("Of(%#v) = %v, want %v", c.err, got, c.want)
			}
		})
	}
}

// timedOut is what a dialer returns when its context's deadline has passed: not
// context.DeadlineExceeded itself, but an error that says it is.
func timedOut() error {
	ctx, cancel := context.WithTimeout(context.Background(), 0)
	defer cancel()
	_, err := (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:1")
	return err
}

func TestOfReadsDeepTrees(t *testing.T) {
	var err error = codes.New(codes.DataLoss, "bottom")
	for range 4000 {
		err = fmt.Errorf("%w", err)
	}
	if got := codes.Of(err); got != codes.DataLoss {
		t.Errorf("Of = %v", got)
	}
}

// specimen is an error, and what is known about it because of how it was built. Building one never
// calls Of.
type specimen struct {
	err                error
	typed              bool // err has a code; first is the first one
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

// build makes a specimen from the bytes of a plan, on a stack: each byte pushes a leaf, or wraps or joins
// the specimens on top. At the end all are joined. messages are used in turn.
func build(plan []byte, messages []string) specimen {
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

// The code of an error stays the same however it is wrapped, and whatever its messages are.
func TestPropertyWrappingKeepsTheCode(t *testing.T) {
	message := rapid.OneOf(rapid.SampledFrom(trickyMessages), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		plan := rapid.SliceOfN(rapid.Byte(), 0, 24).Draw(t, "plan")
		messages := rapid.SliceOfN(message, 1, 4).Draw(t, "messages")
		s := build(plan, messages)
		checkSpecimen(t, s)
		other := build(plan, []string{message.Draw(t, "other message")})
		if got, want := codes.Of(other.err), codes.Of(s.err); got != want {
			t.Fatalf("%v with one message, %v with another", want, got)
		}
	})
}

// All plans of two steps together yield every code.
func TestCodesOfAllSmallTrees(t *testing.T) {
	seen := map[codes.Code]bool{codes.OK: true}
	checkSpecimen(t, build(nil, nil))
	for plan := range 1 << 16 {
		s := build([]byte{byte(plan), byte(plan >> 8)}, trickyMessages[3:5])
		seen[s.want()] = true
		checkSpecimen(t, s)
	}
	for c := range codes.All() {
		if !seen[c] {
			t.Errorf("no specimen has code %v", c)
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
		checkSpecimen(t, build(plan, []string{m1, m2}))
	})
}
