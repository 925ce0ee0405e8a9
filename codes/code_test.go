package codes_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/millwright-go/millwright/codes"
)

// contractCodes is written out by hand, because others compare and store the numbers and spellings.
var contractCodes = []struct {
	number         uint8
	code           codes.Code
	wire, contract string
}{
	{0, codes.OK, "OK", "OK"},
	{1, codes.Canceled, "Canceled", "CANCELED"},
	{2, codes.Unknown, "Unknown", "UNKNOWN"},
	{3, codes.InvalidArgument, "InvalidArgument", "INVALID_ARGUMENT"},
	{4, codes.DeadlineExceeded, "DeadlineExceeded", "DEADLINE_EXCEEDED"},
	{5, codes.NotFound, "NotFound", "NOT_FOUND"},
	{6, codes.AlreadyExists, "AlreadyExists", "ALREADY_EXISTS"},
	{7, codes.PermissionDenied, "PermissionDenied", "PERMISSION_DENIED"},
	{8, codes.ResourceExhausted, "ResourceExhausted", "RESOURCE_EXHAUSTED"},
	{9, codes.PreconditionFailed, "FailedPrecondition", "PRECONDITION_FAILED"},
	{10, codes.Aborted, "Aborted", "ABORTED"},
	{11, codes.OutOfRange, "OutOfRange", "OUT_OF_RANGE"},
	{12, codes.Unimplemented, "Unimplemented", "UNIMPLEMENTED"},
	{13, codes.Internal, "Internal", "INTERNAL"},
	{14, codes.Unavailable, "Unavailable", "UNAVAILABLE"},
	{15, codes.DataLoss, "DataLoss", "DATA_LOSS"},
	{16, codes.Unauthenticated, "Unauthenticated", "UNAUTHENTICATED"},
	{17, codes.Uninitialized, "Uninitialized", "UNINITIALIZED"},
}

// otherSpellings are read but never written.
var otherSpellings = map[string]codes.Code{
	"Cancelled":           codes.Canceled,
	"CANCELLED":           codes.Canceled,
	"FAILED_PRECONDITION": codes.PreconditionFailed,
}

func TestCodesAreTheContracts(t *testing.T) {
	var all []codes.Code
	for _, want := range contractCodes {
		all = append(all, want.code)
		if got := uint8(want.code); got != want.number {
			t.Errorf("%s has number %d, want %d", want.contract, got, want.number)
		}
		if got := want.code.String(); got != want.wire {
			t.Errorf("code %d is %q on the wire, want %q", want.number, got, want.wire)
		}
		if got := want.code.Contract(); got != want.contract {
			t.Errorf("code %d is %q in the contract, want %q", want.number, got, want.contract)
		}
		if !want.code.Valid() {
			t.Errorf("%s is not valid", want.contract)
		}
		for _, spelling := range []string{want.wire, want.contract} {
			if got, ok := codes.Parse(spelling); !ok || got != want.code {
				t.Errorf("Parse(%q) = %v, %v", spelling, got, ok)
			}
		}
	}
	if got := slices.Collect(codes.All()); !slices.Equal(got, all) {
		t.Errorf("All() yields %v, want %v", got, all)
	}
}

func TestNumbersThatAreNoCode(t *testing.T) {
	for n := len(contractCodes); n <= 255; n++ {
		if codes.Code(n).Valid() {
			t.Errorf("code %d is valid", n)
		}
	}
	if got := codes.Code(42).String(); got != "Code(42)" {
		t.Errorf("String() = %q", got)
	}
	if got := codes.Code(255).Contract(); got != "CODE(255)" {
		t.Errorf("Contract() = %q", got)
	}
}

func TestAllStopsWhenTheLoopEnds(t *testing.T) {
	for c := range codes.All() {
		if c == codes.Canceled {
			return
		}
	}
	t.Error("All does not yield Canceled")
}

func TestParseIsExact(t *testing.T) {
	for spelling, want := range otherSpellings {
		if got, ok := codes.Parse(spelling); !ok || got != want {
			t.Errorf("Parse(%q) = %v, %v", spelling, got, ok)
		}
	}
	for _, s := range []string{
		"", " ", "ok", "Ok", " OK", "OK\n", "not_found", "notFound", "Not Found", "[NotFound]", "PreconditionFailed",
		"Code(5)", "Code(42)", "CODE(42)", "5", "NotFound: no such VM",
	} {
		if got, ok := codes.Parse(s); ok || got != codes.Unknown {
			t.Errorf("Parse(%q) = %v, %v; want Unknown, false", s, got, ok)
		}
	}
}

func TestCodeAsText(t *testing.T) {
	type stored struct {
		Code codes.Code `json:"code"`
	}
	for _, c := range contractCodes {
		text, err := json.Marshal(stored{c.code})
		if err != nil || string(text) != `{"code":"`+c.wire+`"}` {
			t.Errorf("%s is stored as %s, %v", c.contract, text, err)
		}
		for _, spelling := range []string{c.wire, c.contract} {
			var got stored
			if err := json.Unmarshal([]byte(`{"code":"`+spelling+`"}`), &got); err != nil || got.Code != c.code {
				t.Errorf("%q is read as %v, %v", spelling, got.Code, err)
			}
		}
	}
}

func TestTextThatIsNoCode(t *testing.T) {
	got := codes.Aborted
	err := got.UnmarshalText([]byte("Nonsense"))
	if err == nil || !strings.Contains(err.Error(), `"Nonsense"`) {
		t.Errorf("UnmarshalText: %v", err)
	}
	if got != codes.Aborted {
		t.Errorf("a failed UnmarshalText left %v behind", got)
	}
	if _, err := codes.Code(42).MarshalText(); err == nil || !strings.Contains(err.Error(), `"Code(42)"`) {
		t.Errorf("MarshalText: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range contractCodes {
		f.Add(c.wire)
		f.Add(c.contract)
	}
	for s := range otherSpellings {
		f.Add(s)
	}
	f.Add("")
	f.Add("Code(42)")
	f.Add("[NotFound]")
	f.Fuzz(func(t *testing.T, s string) {
		want, known := otherSpellings[s]
		for _, c := range contractCodes {
			if s == c.wire || s == c.contract {
				want, known = c.code, true
			}
		}
		if !known {
			want = codes.Unknown
		}
		if got, ok := codes.Parse(s); got != want || ok != known {
			t.Fatalf("Parse(%q) = %v, %v; want %v, %v", s, got, ok, want, known)
		}
	})
}
