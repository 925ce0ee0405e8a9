package codes

import (
	"fmt"
	"iter"
	"strconv"
)

// Code is the outcome of a call to a provider. The numbers 0 to 17 and their meaning are the
// provider contract's (see docs/reference/contract.md); they are stable and may be stored. The zero
// value is OK.
type Code uint8

// These are the codes of the provider contract, in its order.
const (
	// OK (0): the call did what was asked.
	OK Code = iota
	// Canceled (1): the caller gave the call up.
	Canceled
	// Unknown (2): too little is known about the failure. Errors without a code read as this one.
	Unknown
	// InvalidArgument (3): a parameter is missing or malformed, mostly in the provider spec.
	InvalidArgument
	// DeadlineExceeded (4): the call did not end within its deadline. It may still take effect.
	DeadlineExceeded
	// NotFound (5): there is no such VM.
	NotFound
	// AlreadyExists (6): a VM of that name exists and differs from the one asked for.
	AlreadyExists
	// PermissionDenied (7): the credentials are valid but don't allow this.
	PermissionDenied
	// ResourceExhausted (8): a quota or the provider's capacity is used up.
	ResourceExhausted
	// PreconditionFailed (9): the VM is in a state in which this can't be done. Its String is
	// "FailedPrecondition".
	PreconditionFailed
	// Aborted (10): another operation on the same machine is still going on.
	Aborted
	// OutOfRange (11): sizes lie outside of what the provider offers. From GetMachineStatus:
	// several VMs match one machine.
	OutOfRange
	// Unimplemented (12): the driver doesn't have this call.
	Unimplemented
	// Internal (13): an invariant of the provider or the driver is broken.
	Internal
	// Unavailable (14): the provider can't be reached or is not serving at present.
	Unavailable
	// DataLoss (15): reserved by the contract; no call is specified to answer it.
	DataLoss
	// Unauthenticated (16): the credentials are missing or not valid.
	Unauthenticated
	// Uninitialized (17): the VM exists and still has to be initialized.
	Uninitialized

	codeCount = int(Uninitialized) + 1
)

// naming holds the two spellings of one code, see [Code.String] and [Code.Contract], and the sentence
// about it for an error without a message of its own.
type naming struct{ wire, contract, sentence string }

var namings = [codeCount]naming{
	OK:                 {"OK", "OK", "the call succeeded"},
	Canceled:           {"Canceled", "CANCELED", "the call was canceled"},
	Unknown:            {"Unknown", "UNKNOWN", "the provider call failed without saying why"},
	InvalidArgument:    {"InvalidArgument", "INVALID_ARGUMENT", "a parameter of the call is not valid"},
	DeadlineExceeded:   {"DeadlineExceeded", "DEADLINE_EXCEEDED", "the call did not end within its deadline"},
	NotFound:           {"NotFound", "NOT_FOUND", "the VM was not found"},
	AlreadyExists:      {"AlreadyExists", "ALREADY_EXISTS", "a different VM of this name already exists"},
	PermissionDenied:   {"PermissionDenied", "PERMISSION_DENIED", "the credentials don't permit this call"},
	ResourceExhausted:  {"ResourceExhausted", "RESOURCE_EXHAUSTED", "a quota or the provider's capacity is used up"},
	PreconditionFailed: {"FailedPrecondition", "PRECONDITION_FAILED", "the state of the VM doesn't allow this call"},
	Aborted:            {"Aborted", "ABORTED", "another operation on this machine is still pending"},
	OutOfRange:         {"OutOfRange", "OUT_OF_RANGE", "a requested value is out of the provider's range"},
	Unimplemented:      {"Unimplemented", "UNIMPLEMENTED", "the driver does not implement this call"},
	Internal:           {"Internal", "INTERNAL", "an invariant of the provider or its driver is broken"},
	Unavailable:        {"Unavailable", "UNAVAILABLE", "the provider is not available at present"},
	DataLoss:           {"DataLoss", "DATA_LOSS", "data was lost beyond recovery"},
	Unauthenticated:    {"Unauthenticated", "UNAUTHENTICATED", "the provider did not accept the credentials"},
	Uninitialized:      {"Uninitialized", "UNINITIALIZED", "the VM has not been initialized"},
}

// bySpelling is read-only once the package is initialized.
var bySpelling = spellings()

func spellings() map[string]Code {
	m := map[string]Code{
		"Cancelled":           Canceled,
		"CANCELLED":           Canceled,
		"FAILED_PRECONDITION": PreconditionFailed,
	}
	for c := range All() {
		m[namings[c].wire] = c
		m[namings[c].contract] = c
	}
	return m
}

// All yields the eighteen codes in the order of their numbers.
func All() iter.Seq[Code] {
	return func(yield func(Code) bool) {
		for c := range Code(codeCount) {
			if !yield(c) {
				return
			}
		}
	}
}

// Valid reports whether c is one of the eighteen codes.
func (c Code) Valid() bool { return int(c) < codeCount }

// String returns the wire's spelling, which stored objects hold and autoscalers compare:
// "ResourceExhausted", "FailedPrecondition", "Canceled". A number that is no code reads as
// "Code(42)", which [Parse] refuses.
func (c Code) String() string {
	if !c.Valid() {
		return "Code(" + strconv.Itoa(int(c)) + ")"
	}
	return namings[c].wire
}

// Contract returns the spelling of the provider contract: "RESOURCE_EXHAUSTED",
// "PRECONDITION_FAILED", "CANCELED". A number that is no code reads as "CODE(42)", which [Parse]
// refuses.
func (c Code) Contract() string {
	if !c.Valid() {
		return "CODE(" + strconv.Itoa(int(c)) + ")"
	}
	return namings[c].contract
}

// Parse returns the code that s spells, and reports whether s spells one. It accepts both spellings
// of every code exactly: no other case, no surrounding blanks. It accepts three more because
// foreign status types print them: "FAILED_PRECONDITION" (the name in gRPC's own enumeration),
// "CANCELLED" (likewise) and "Cancelled" (as the contract's text has it). If nothing matches, the
// code is [Unknown].
func Parse(s string) (Code, bool) {
	c, ok := bySpelling[s]
	if !ok {
		return Unknown, false
	}
	return c, true
}

// MarshalText writes the wire's spelling. A number that is no code is an error: it could not be read
// back.
func (c Code) MarshalText() ([]byte, error) {
	if !c.Valid() {
		return nil, misspelled(c.String())
	}
	return []byte(c.String()), nil
}

// UnmarshalText reads what [Parse] accepts. Anything else is an error and leaves c as it was.
func (c *Code) UnmarshalText(text []byte) error {
	parsed, ok := Parse(string(text))
	if !ok {
		return misspelled(string(text))
	}
	*c = parsed
	return nil
}

func misspelled(text string) error { return fmt.Errorf("%q is not a provider error code", text) }
