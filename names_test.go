package millwright_test

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestNamesInProseExist: a name that a comment or a page gives with its package, such as
// machine.Decide, is one that a package of that name declares.
func TestNamesInProseExist(t *testing.T) {
	read := loadTree(t)
	declared := namesOf(read.sources)
	var faults []string
	for _, s := range read.sources {
		if s.generated() {
			continue
		}
		others := map[string]bool{}
		for from, name := range s.imports() {
			others[name] = others[name] || !strings.HasPrefix(from, modulePath)
		}
		for _, group := range s.file.Comments {
			faults = append(faults, missingNames(s.at(group.Pos()), group.Text(), declared, others)...)
		}
	}
	for _, page := range read.pages {
		if path.Base(page) == "CHANGELOG.md" { // it gives the names of before
			continue
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		faults = append(faults, missingNames(page, string(text), declared, nil)...)
	}
	for _, fault := range faults {
		t.Error(fault)
	}
}

// namesOf returns the exported names of the packages of each name, those of their tests included.
func namesOf(sources []*source) map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for _, s := range sources {
		name := strings.TrimSuffix(s.file.Name.Name, "_test")
		if all[name] == nil {
			all[name] = map[string]bool{}
		}
		found := surface{}
		for _, d := range s.file.Decls {
			found.add(d)
		}
		for exported := range found {
			all[name][exported] = ast.IsExported(exported)
		}
	}
	return all
}

var qualified = regexp.MustCompile(`(^|[^\w.-])([a-z][a-z0-9]*)\.([A-Z]\w*)`)

// missingNames returns one sentence for each qualified name of a text whose package is one of
// ours and does not declare it. A package among the file's others is none of ours.
func missingNames(at, text string, declared map[string]map[string]bool, others map[string]bool) (found []string) {
	for _, match := range qualified.FindAllStringSubmatch(text, -1) {
		of, ours := declared[match[2]]
		if ours && !others[match[2]] && !of[match[3]] {
			found = append(found, fmt.Sprintf("%s: %s.%s does not exist", at, match[2], match[3]))
		}
	}
	return found
}

// TestNamesInProseBite: a name that is gone is found, in all the forms that prose has.
func TestNamesInProseBite(t *testing.T) {
	s, err := parseSource("a.go", ".", "package a\n\nfunc Here() {}\n\nfunc here() {}\n")
	if err != nil {
		t.Fatal(err)
	}
	declared := namesOf([]*source{s})
	for text, want := range map[string]int{
		"a.Here, (a.Here) and `a.Here`, x/a.Here": 0,
		"a.Gone, (a.Gone) and `a.Gone`, x/a.Gone": 4,
		"A.Gone, a.gone, b.Gone, x.a.Gone":        0,
	} {
		if got := missingNames("p", text, declared, nil); len(got) != want {
			t.Errorf("%q: %q, want %d", text, got, want)
		}
	}
	if got := missingNames("p", "a.Gone", declared, map[string]bool{"a": true}); len(got) != 0 {
		t.Errorf("a foreign package was taken for ours: %q", got)
	}
}
