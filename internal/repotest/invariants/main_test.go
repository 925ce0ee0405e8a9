package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestPage: for each invariant the page names a test that has the marker of the invariant, and each
// marker names an invariant of the page.
func TestPage(t *testing.T) {
	root := os.DirFS("../../..")
	tests, err := testsOf(root)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/reference/invariants.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (P\\d+) \\|.*\\| `([^`]+)` \\|$").FindAllStringSubmatch(string(page), -1) {
		invariant, check := row[1], row[2]
		if rows[invariant] {
			t.Errorf("%s has two rows", invariant)
		}
		rows[invariant] = true
		if !slices.Contains(tests[invariant], check) {
			t.Errorf("%s: %s has no line \"// Invariants: %s\" above it", invariant, check, invariant)
		}
	}
	for invariant, by := range tests {
		if !rows[invariant] {
			t.Errorf("%q have the marker of %s, which has no row in docs/reference/invariants.md", by, invariant)
		}
	}
	if len(rows) < 50 {
		t.Errorf("only %d rows were found", len(rows))
	}
}

func TestList(t *testing.T) {
	tree := fstest.MapFS{
		"a/a_test.go":          {Data: []byte("package a\n\n// TestA is.\n// Invariants: P7 P26\nfunc TestA(t *testing.T) {}\n")},
		"b/b_test.go":          {Data: []byte("package b\n\n// Invariants: P7\nfunc FuzzB(f *testing.F) {}\n\n// Invariants: P7\n\nfunc TestC(t *testing.T) {}\n")},
		"b/testdata/c_test.go": {Data: []byte("package b\n\n// Invariants: P7\nfunc TestD(t *testing.T) {}\n")},
	}
	for wanted, output := range map[string]string{
		"":   "P7\n    a: TestA\n    b: FuzzB\nP26\n    a: TestA\n",
		"P7": "P7\n    a: TestA\n    b: FuzzB\n",
	} {
		var out strings.Builder
		if err := list(&out, tree, strings.Fields(wanted)); err != nil || out.String() != output {
			t.Errorf("%s: %q, %v", wanted, out.String(), err)
		}
	}
}
