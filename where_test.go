package millwright_test

import (
	"fmt"
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestWhereNamesWhatExists: each file, function and test that docs/reference/where.md names exists. Each of its
// rows states a rule in sentences, and names some of each.
func TestWhereNamesWhatExists(t *testing.T) {
	const page = "docs/reference/where.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	read, rows := loadTree(t), 0
	for _, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(line, "|")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| rule |") {
			continue
		}
		rows++
		if len(cells) != 5 {
			t.Errorf("%s: no three cells in: %s", page, line)
			continue
		}
		if !strings.HasSuffix(strings.TrimSpace(cells[1]), ".") {
			t.Errorf("%s: %q is no sentence: state the rule", page, strings.TrimSpace(cells[1]))
		}
		for _, fault := range append(decidedFaults(read, cells[2]), shownFaults(read, cells[3])...) {
			t.Errorf("%s: %q: %s", page, strings.TrimSpace(cells[1]), fault)
		}
	}
	if rows < 50 {
		t.Errorf("%s has %d rows: the test does not see its tables", page, rows)
	}
}

var span = regexp.MustCompile("`([^`]+)`")

// decidedFaults checks a cell such as "`a/b.go`: `f`, `g`; `a/c.go`: `h`".
func decidedFaults(read *tree, cell string) (found []string) {
	for _, part := range strings.Split(cell, ";") {
		names := span.FindAllStringSubmatch(part, -1)
		if len(names) < 2 {
			found = append(found, fmt.Sprintf("%q names no file and function", strings.TrimSpace(part)))
			continue
		}
		at := slices.IndexFunc(read.sources, func(s *source) bool { return s.path == names[0][1] })
		if at < 0 {
			found = append(found, names[0][1]+" does not exist")
			continue
		}
		for _, name := range names[1:] {
			if !declaresAnything(read.sources[at], name[1]) {
				found = append(found, names[0][1]+" declares no "+name[1])
			}
		}
	}
	return found
}

// shownFaults checks a cell of tests, such as "a/b: TestC", and of files.
func shownFaults(read *tree, cell string) (found []string) {
	names := span.FindAllStringSubmatch(cell, -1)
	if len(names) == 0 {
		return []string{"nothing shows it"}
	}
	for _, name := range names {
		dir, test, isTest := strings.Cut(name[1], ": ")
		if !isTest {
			if _, err := os.Stat(name[1]); err != nil {
				found = append(found, name[1]+" does not exist")
			}
			continue
		}
		if !slices.ContainsFunc(read.sources, func(s *source) bool { return s.test() && s.dir() == dir && declares(s, test) }) {
			found = append(found, dir+" has no "+test)
		}
	}
	return found
}

// declaresAnything reports whether a file declares a function, method, type, constant or variable.
func declaresAnything(s *source, name string) bool {
	if declares(s, name) {
		return true
	}
	named := false
	for _, decl := range s.file.Decls {
		general, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range general.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				named = named || spec.Name.Name == name
			case *ast.ValueSpec:
				named = named || slices.ContainsFunc(spec.Names, func(n *ast.Ident) bool { return n.Name == name })
			}
		}
	}
	return named
}

// TestWhereBites: what is missing or misspelled in a row is found.
func TestWhereBites(t *testing.T) {
	read := loadTree(t)
	for cell, want := range map[string]int{
		" `where_test.go`: `decidedFaults`, `span`; `sources_test.go`: `tree` ": 0,
		" `where_test.go` ":                        1,
		" `where_test.go`: `gone`, `alsoGone` ":    2,
		" `gone.go`: `decidedFaults`; `gone` ":     2,
		" `where_test.go`: `tree`, `tableOfNone` ": 2,
	} {
		if got := decidedFaults(read, cell); len(got) != want {
			t.Errorf("%q: %q, want %d", cell, got, want)
		}
	}
	for cell, want := range map[string]int{
		" `.: TestWhereBites`, `README.md` ":      0,
		" none ":                                  1,
		" `.: TestWhereBitesNot`, `docs: TestA` ": 2,
		" `docs/gone.txt`, `docs/reference/where.md` ":      1,
		" `examples: TestWhereBites`, `go.mod` ":  1,
	} {
		if got := shownFaults(read, cell); len(got) != want {
			t.Errorf("%q: %q, want %d", cell, got, want)
		}
	}
}

// TestContractNamesWhatExists: what docs/reference/contract.md says that a rule is decided in exists. Each row has
// what the texts say, what we do, why, and where.
func TestContractNamesWhatExists(t *testing.T) {
	const page = "docs/reference/contract.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	read, rows, where := loadTree(t), 0, false
	for _, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(line, "|")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| the texts |") {
			where = len(cells) > 1 && (where || strings.HasSuffix(line, "| decided in |"))
			continue
		}
		if !where { // the table of codes
			continue
		}
		rows++
		if len(cells) != 6 {
			t.Errorf("%s: no four cells in: %s", page, line)
			continue
		}
		for _, fault := range decidedFaults(read, cells[4]) {
			t.Errorf("%s: %q: %s", page, strings.TrimSpace(cells[1]), fault)
		}
	}
	if rows < 18 {
		t.Errorf("%s has %d rows: the test does not see its tables", page, rows)
	}
}
