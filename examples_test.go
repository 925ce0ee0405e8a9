package millwright_test

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestCorePackagesHaveAnExample: a package that decides, a port, and what carries plans out show in an
// example, which runs as a test, how they are used.
func TestCorePackagesHaveAnExample(t *testing.T) {
	read, checked := loadTree(t), 0
	for _, r := range architecture {
		if strings.Contains(r.dir, "internal/") || !r.core && !slices.Contains([]string{"machine/fsm", "manager", "manager/engine"}, r.dir) {
			continue
		}
		checked++
		if !slices.ContainsFunc(read.sources, func(s *source) bool { return s.dir() == r.dir && hasExample(s) }) {
			t.Errorf("%s has no Example with an output: add one to its example_test.go", r.dir)
		}
	}
	if checked < 15 {
		t.Errorf("%d core packages were checked: the table 'architecture' has more", checked)
	}
}

// hasExample reports whether a file has an example that go test runs.
func hasExample(s *source) bool {
	return s.test() && slices.ContainsFunc(s.file.Decls, func(decl ast.Decl) bool {
		f, ok := decl.(*ast.FuncDecl)
		return ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Example") && slices.ContainsFunc(s.file.Comments, func(c *ast.CommentGroup) bool {
			return f.Pos() < c.Pos() && c.End() < f.End() && strings.HasPrefix(c.Text(), "Output:") && strings.TrimSpace(strings.TrimPrefix(c.Text(), "Output:")) != ""
		})
	})
}

// TestExampleRuleBites: an example without an output is not run, so it is none.
func TestExampleRuleBites(t *testing.T) {
	for text, want := range map[string]bool{
		"package m_test\n\nfunc Example() {\n\tprintln(1)\n\t// Output:\n\t// 1\n}\n":        true,
		"package m_test\n\nfunc ExampleT_f() {\n\tprintln(1)\n\t// Output:\n\t// 1\n}\n":     true,
		"package m_test\n\nfunc Example() {\n\tprintln(1)\n}\n":                              false,
		"package m_test\n\nfunc Example() {\n\tprintln(1)\n\t// Output:\n}\n":                false,
		"package m_test\n\nfunc TestExample() {\n\t// Output:\n\t// 1\n}\n":                  false,
		"package m_test\n\nfunc Example() {\n\tprintln(1)\n}\n\n// Output:\n// 1\nvar a int": false,
	} {
		s, err := parseSource("m/a_test.go", ".", text)
		if err != nil {
			t.Fatal(err)
		}
		if got := hasExample(s); got != want {
			t.Errorf("%v, want %v: %s", got, want, text)
		}
	}
}

// TestLoopsOfDocs: a loop that a package's documentation shows is code of an example of that package.
// So it compiles, and the example shows that it ends.
func TestLoopsOfDocs(t *testing.T) {
	read, found := loadTree(t), 0
	for _, s := range read.sources {
		if s.test() || s.file.Doc == nil {
			continue
		}
		for _, loop := range loopsOf(s.file.Doc.Text()) {
			found++
			example, err := os.ReadFile(filepath.Join(s.dir(), "example_test.go"))
			if err != nil || !strings.Contains(unindented(string(example)), loop) {
				t.Errorf("%s shows a loop that is not in %s/example_test.go: %v\n%s", s.path, s.dir(), err, loop)
			}
		}
	}
	if found < 8 {
		t.Errorf("only %d loops were found", found)
	}
}

// loopsOf returns the pieces of code in a comment that hold a loop, without their indentation.
func loopsOf(doc string) (loops []string) {
	for _, block := range regexp.MustCompile(`(?m)(?:^\t.*\n|^\n)+`).FindAllString(doc, -1) {
		if code := unindented(strings.TrimSpace(block)); regexp.MustCompile(`(?m)^for .*\{$`).MatchString(code) {
			loops = append(loops, code)
		}
	}
	return loops
}

func unindented(code string) string { return regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(code, "") }

// TestLoopRuleBites: what counts as a loop that a comment shows.
func TestLoopRuleBites(t *testing.T) {
	for doc, want := range map[string]int{
		"Package p does.\n\n\tfor {\n\t\tf()\n\n\t\tg()\n\t}\n\nMore.\n\n\tfor i := range 3 {\n\t}\n": 2,
		"Package p waits for {x}.\n\n\tx := 1\n":                                                      0,
	} {
		if got := loopsOf(doc); len(got) != want {
			t.Errorf("%q: %q, want %d", doc, got, want)
		}
	}
}
