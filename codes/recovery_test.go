package codes

import (
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
)

// specified reads testdata/recovery.csv, the specification of the table.
func specified(t *testing.T) []rowOf {
	t.Helper()
	f, err := os.Open("testdata/recovery.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	header := []string{"call", "code", "name", "auto_retry", "retry_class", "quick", "remedy", "origin"}
	if !slices.Equal(lines[0], header) {
		t.Fatalf("the columns are %v", lines[0])
	}
	var all []rowOf
	for i, line := range lines[1:] {
		all = append(all, parsedRow(t, i+2, line))
	}
	return all
}

// rowOf is one row of the specification.
type rowOf struct {
	line     int
	call     Call
	code     Code
	recovery Recovery
}

func parsedRow(t *testing.T, line int, fields []string) rowOf {
	t.Helper()
	number, err := strconv.Atoi(fields[1])
	if err != nil {
		t.Fatalf("line %d: %v", line, err)
	}
	code, ok := Parse(fields[2])
	if !ok || int(code) != number {
		t.Fatalf("line %d: code %d is called %s", line, number, fields[2])
	}
	if !slices.Contains([]string{"Y", "N"}, fields[3]) {
		t.Fatalf("line %d: auto_retry is %q", line, fields[3])
	}
	return rowOf{line, named(t, line, slices.Collect(Calls()), fields[0]), code, Recovery{
		AutoRetry: fields[3] == "Y",
		Class:     named(t, line, upTo(RetryClass(classCount)), fields[4]),
		Quick:     uint8(slices.Index([]string{"0", "1", "2"}, fields[5])),
		Remedy:    named(t, line, upTo(Remedy(remedyCount)), fields[6]),
	}}
}

func upTo[T ~uint8](end T) (all []T) {
	for v := range end {
		all = append(all, v)
	}
	return all
}

// named returns the one of all that is spelled name.
func named[T interface{ String() string }](t *testing.T, line int, all []T, name string) T {
	t.Helper()
	i := slices.IndexFunc(all, func(v T) bool { return v.String() == name })
	if i < 0 {
		t.Fatalf("line %d: %q is not one of %v", line, name, all)
	}
	return all[i]
}

func TestTableHasTheSpecifiedRows(t *testing.T) {
	for _, want := range specified(t) {
		got, ok := rows[want.call][want.code]
		if !ok || got != want.recovery {
			t.Errorf("line %d: %v, %v: the table has %v (%v), want %v", want.line, want.call, want.code, got, ok, want.recovery)
		}
		if got := RecoveryFor(want.call, want.code); got != want.recovery {
			t.Errorf("line %d: RecoveryFor(%v, %v) = %v, want %v", want.line, want.call, want.code, got, want.recovery)
		}
	}
}

func TestTableHasNoOtherRows(t *testing.T) {
	type pair struct {
		call Call
		code Code
	}
	known := map[pair]bool{}
	for _, row := range specified(t) {
		known[pair{row.call, row.code}] = true
	}
	for call := range Calls() {
		if !known[pair{call, Unknown}] || !known[pair{call, OK}] {
			t.Errorf("%v needs a row for Unknown and one for OK, because the defaults are taken from them", call)
		}
		for code := range rows[call] {
			if !known[pair{call, code}] {
				t.Errorf("%v, %v is in the table and not in the specification", call, code)
			}
		}
		for code := range All() {
			want := RecoveryFor(call, Unknown)
			if code == Unimplemented {
				want = Recovery{false, None, 0, Continue}
			}
			if got := RecoveryFor(call, code); !known[pair{call, code}] && got != want {
				t.Errorf("RecoveryFor(%v, %v) = %v, want the default %v", call, code, got, want)
			}
		}
	}
}

func TestRecoveryOfUnknownNumbers(t *testing.T) {
	for call := range Calls() {
		for _, code := range []Code{18, 42, 255} {
			if got, want := RecoveryFor(call, code), RecoveryFor(call, Unknown); got != want {
				t.Errorf("RecoveryFor(%v, %v) = %v, want %v", call, code, got, want)
			}
		}
	}
	for _, call := range []Call{8, 42, 255} {
		for code := range Code(255) {
			want := Recovery{true, Short, 0, RetryLater}
			switch code {
			case OK:
				want = Recovery{}
			case Unimplemented:
				want = Recovery{false, None, 0, Continue}
			}
			if got := RecoveryFor(call, code); got != want {
				t.Errorf("RecoveryFor(%v, %v) = %v, want %v", call, code, got, want)
			}
		}
	}
}

// A call with AutoRetry has a class other than None, so that it is retried.
func TestAutoRetryHasAClass(t *testing.T) {
	for call := range Calls() {
		for code := range All() {
			if r := RecoveryFor(call, code); r.AutoRetry && r.Class == None {
				t.Errorf("%v, %v has AutoRetry and class None", call, code)
			}
		}
	}
}

func TestNamesOfCallsAndRemedies(t *testing.T) {
	want := []string{"CreateMachine", "InitializeMachine", "DeleteMachine", "GetMachineStatus", "ListMachines",
		"GetVolumeIDs", "GenerateMachineClassForMigration", "UpdateMachine"}
	var got []string
	for c := range Calls() {
		got = append(got, c.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("the calls are %v, want %v", got, want)
	}
	for range Calls() {
		break // ending the loop early must not panic
	}
	if got := Call(42).String(); got != "Call(42)" {
		t.Errorf("String() = %q", got)
	}
	for _, r := range []Remedy{42, Remedy(remedyCount)} { // remedyCount is the first number that is no remedy
		if got := r.String(); got != fmt.Sprintf("Remedy(%d)", uint8(r)) {
			t.Errorf("String() = %q", got)
		}
	}
	seen := map[string]bool{}
	for r := range Remedy(remedyCount) {
		if r.String() == "" || seen[r.String()] {
			t.Errorf("remedy %d is called %q", r, r)
		}
		seen[r.String()] = true
	}
}

func TestRecoveryForDoesNotAllocate(t *testing.T) {
	var sink Recovery
	if n := testing.AllocsPerRun(100, func() { sink = RecoveryFor(DeleteMachine, Aborted) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	_ = sink
}
