package millwright_test

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestInvariantsNameTheirChecks: every check that docs/reference/invariants.md names exists,
// and every invariant there has one.
func TestInvariantsNameTheirChecks(t *testing.T) {
	page, err := os.ReadFile("docs/reference/invariants.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	for _, s := range loadTree(t).sources {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.test() {
				tests[s.dir()+": "+f.Name.Name] = true
			}
		}
	}
	numbers := map[string]bool{}
	check := regexp.MustCompile("`([a-z/]+: (?:Test|Fuzz)[A-Za-z0-9]+)`")
	for _, line := range strings.Split(string(page), "\n") {
		if !strings.HasPrefix(line, "| P") {
			continue
		}
		number, _, _ := strings.Cut(line[2:], " |")
		if numbers[number] {
			t.Errorf("docs/reference/invariants.md has two rows %s", number)
		}
		numbers[number] = true
		named := check.FindAllStringSubmatch(line, -1)
		if len(named) == 0 {
			t.Errorf("docs/reference/invariants.md: no check in: %s", line)
		}
		for _, name := range named {
			if !tests[name[1]] {
				t.Errorf("docs/reference/invariants.md names %s, which does not exist", name[1])
			}
		}
	}
}

// TestPagesLeadSomewhere: what README and docs link to, and the files that they name, exist.
func TestPagesLeadSomewhere(t *testing.T) {
	pages, err := filepath.Glob("docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([^)#:]+)\)`)
	file := regexp.MustCompile("`((?:[a-z]+/)+[A-Za-z-]+\\.(?:go|txt|golden|csv|md))`")
	for _, page := range append(pages, "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), to[1])); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, to[1])
			}
		}
		for _, to := range file.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(to[1]); err != nil {
				t.Errorf("%s names %s, which does not exist", page, to[1])
			}
		}
	}
}
