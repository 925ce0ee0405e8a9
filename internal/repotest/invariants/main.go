// Command invariants lists the tests that check each invariant of docs/reference/invariants.md. A test names
// its invariants in the last line of its comment:
//
//	// Invariants: P7 P26
//	func TestKilledAnywhere(t *testing.T) {
//
// Run it in the root directory. Its arguments are the invariants to list; without arguments it lists all.
package main

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var marker = regexp.MustCompile(`(?m)^// Invariants: (P\d+(?: P\d+)*)\nfunc ((?:Test|Fuzz)\w+)\(`)

// testsOf returns the tests that check each invariant, as "dir: TestName".
func testsOf(tree fs.FS) (map[string][]string, error) {
	tests := map[string][]string{}
	err := fs.WalkDir(tree, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := path.Base(file); entry.IsDir() && file != "." && (base[0] == '.' || base == "testdata") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(file, "_test.go") {
			return nil
		}
		text, err := fs.ReadFile(tree, file)
		for _, match := range marker.FindAllStringSubmatch(string(text), -1) {
			for _, invariant := range strings.Fields(match[1]) {
				tests[invariant] = append(tests[invariant], path.Dir(file)+": "+match[2])
			}
		}
		return err
	})
	return tests, err
}

// number returns the number of an invariant such as P7.
func number(invariant string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(invariant, "P"))
	return n
}

func list(w io.Writer, tree fs.FS, wanted []string) error {
	tests, err := testsOf(tree)
	if err != nil {
		return err
	}
	if len(wanted) == 0 {
		wanted = slices.SortedFunc(maps.Keys(tests), func(a, b string) int { return number(a) - number(b) })
	}
	for _, invariant := range wanted {
		fmt.Fprintf(w, "%s\n", invariant)
		for _, test := range tests[invariant] {
			fmt.Fprintf(w, "    %s\n", test)
		}
	}
	return nil
}

func main() {
	if err := list(os.Stdout, os.DirFS("."), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "invariants:", err)
		os.Exit(1)
	}
}
