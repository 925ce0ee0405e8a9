package millwright_test

import (
	"go/ast"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestInvariantsNameTheirChecks: every check that docs/invariants.md names exists,
// and every invariant there has one.
func TestInvariantsNameTheirChecks(t *testing.T) {
	page, err := os.ReadFile("docs/invariants.md")
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
	check := regexp.MustCompile("`([a-z/]+: (?:Test|Fuzz)[A-Za-z0-9]+)`")
	for _, line := range strings.Split(string(page), "\n") {
		if !strings.HasPrefix(line, "| P") {
			continue
		}
		named := check.FindAllStringSubmatch(line, -1)
		if len(named) == 0 {
			t.Errorf("docs/invariants.md: no check in: %s", line)
		}
		for _, name := range named {
			if !tests[name[1]] {
				t.Errorf("docs/invariants.md names %s, which does not exist", name[1])
			}
		}
	}
}
