package repotest

import (
	"fmt"
	"go/ast"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var (
	fence = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	link  = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"`)
	span  = regexp.MustCompile("`([^`\n]+)`")

	goFile   = regexp.MustCompile(`^(?:[\w-]+/)+[\w-]+\.go$`)
	anyFile  = regexp.MustCompile(`^(?:[\w-]+/)+[\w.-]+\.(?:go|txt|golden|csv|md|sh|yaml)$`)
	aTest    = regexp.MustCompile(`^([\w/.-]+): ((?:Test|Fuzz|Benchmark|Example)\w*)$`)
	aDir     = regexp.MustCompile(`^[a-z]+(?:/[a-z][a-z0-9-]*)+$`)
	anyName  = regexp.MustCompile(`^\w+$`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	anchorID = regexp.MustCompile(`id="([^"]+)"`)
)

// history is the only page that may name things that no longer exist.
const history = "CHANGELOG.md"

// TestLinks checks that the files, directories and headings that Markdown files link to exist in the
// repository.
func TestLinks(t *testing.T) {
	for _, page := range loadTree(t).pages {
		for _, fault := range linkFaults(page, read(t, page)) {
			t.Errorf("%s: %s", page, fault)
		}
	}
}

func linkFaults(page, text string) (faults []string) {
	for _, match := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		to, err := url.Parse(match[1] + match[2])
		if err != nil || to.Scheme != "" {
			continue
		}
		file := page
		if to.Path != "" {
			file = path.Join(path.Dir(page), to.Path)
		}
		if _, err := os.Stat(file); err != nil {
			faults = append(faults, fmt.Sprintf("links to %s, which does not exist", to))
			continue
		}
		if to.Fragment == "" || path.Ext(file) != ".md" {
			continue
		}
		target := text
		if file != page {
			content, _ := os.ReadFile(file)
			target = string(content)
		}
		if !slices.Contains(anchors(target), to.Fragment) {
			faults = append(faults, fmt.Sprintf("links to %s, but %s has no such heading", to, file))
		}
	}
	return faults
}

// anchors returns the fragments by which the headings of a page can be linked.
func anchors(text string) (all []string) {
	for _, match := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		all = append(all, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(match[1])))
	}
	for _, match := range anchorID.FindAllStringSubmatch(text, -1) {
		all = append(all, match[1])
	}
	return all
}

// TestCodeSpans checks that what Markdown files name between backquotes exists: files and directories
// by their path, functions in the form "`dir/file.go`: `name`, `other`", and tests in the form
// "`dir: TestName`".
func TestCodeSpans(t *testing.T) {
	tree, checked := loadTree(t), 0
	for _, page := range tree.pages {
		if page == history {
			continue
		}
		n, faults := spanFaults(tree, path.Dir(page), read(t, page))
		checked += n
		for _, fault := range faults {
			t.Errorf("%s: %s", page, fault)
		}
	}
	if checked < 100 {
		t.Errorf("only %d names were found in pages", checked)
	}
}

// spanFaults returns how many names of a page in a directory it checked, and a sentence for each
// that does not exist. A path is relative to the root directory or to the page's.
func spanFaults(tree *tree, dir, text string) (checked int, faults []string) {
	text = fence.ReplaceAllString(text, "")
	for _, at := range span.FindAllStringSubmatchIndex(text, -1) {
		name := text[at[2]:at[3]]
		if !anyFile.MatchString(name) {
			n, fault := nameFault(tree, dir, name)
			checked += n
			if fault != "" {
				faults = append(faults, fault)
			}
			continue
		}
		checked++
		file := name
		if _, err := os.Stat(file); err != nil {
			file = path.Join(dir, name)
		}
		if _, err := os.Stat(file); err != nil {
			faults = append(faults, name+" does not exist")
			continue
		}
		if !goFile.MatchString(name) {
			continue
		}
		for _, declared := range namesAfter(text[at[1]:]) {
			if s := tree.source(file); s != nil && !s.declares(declared) {
				faults = append(faults, fmt.Sprintf("%s declares no %s", name, declared))
			}
		}
	}
	return checked, faults
}

// nameFault checks the name of a test or a directory. Other names are not checked.
func nameFault(tree *tree, dir, name string) (checked int, fault string) {
	if match := aTest.FindStringSubmatch(name); match != nil {
		if !tree.hasTest(match[1], match[2]) {
			return 1, fmt.Sprintf("%s has no %s", match[1], match[2])
		}
		return 1, ""
	}
	if top, _, _ := strings.Cut(name, "/"); aDir.MatchString(name) && isDir(top) {
		if !isDir(name) && !isDir(path.Join(dir, name)) {
			return 1, name + " does not exist"
		}
		return 1, ""
	}
	return 0, ""
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// namesAfter returns the names in a list such as ": `a`, `b`" at the start of a text.
func namesAfter(text string) (names []string) {
	for separator := ": "; strings.HasPrefix(text, separator+"`"); separator = ", " {
		name, rest, _ := strings.Cut(text[len(separator)+1:], "`")
		if !anyName.MatchString(name) {
			break
		}
		names, text = append(names, name), rest
	}
	return names
}

func (t *tree) source(file string) *source {
	for _, s := range t.sources {
		if s.path == file {
			return s
		}
	}
	return nil
}

// hasTest reports whether a test file of a directory declares a name.
func (t *tree) hasTest(dir, name string) bool {
	return slices.ContainsFunc(t.sources, func(s *source) bool { return s.isTest() && s.dir() == dir && s.declares(name) })
}

// TestQualifiedNames checks names with a package in comments and pages, such as machine.Decide: a
// package of that name must declare them.
func TestQualifiedNames(t *testing.T) {
	tree := loadTree(t)
	declared := declaredNames(tree.sources)
	for _, s := range tree.sources {
		if ast.IsGenerated(s.file) {
			continue
		}
		foreign := map[string]bool{}
		for from, name := range s.imports() {
			foreign[name] = foreign[name] || !strings.HasPrefix(from, modulePath)
		}
		for _, group := range s.file.Comments {
			for _, name := range missingNames(group.Text(), declared, foreign) {
				t.Errorf("%s: %s does not exist", s.at(group.Pos()), name)
			}
		}
	}
	for _, page := range tree.pages {
		if page == history {
			continue
		}
		for _, name := range missingNames(read(t, page), declared, nil) {
			t.Errorf("%s: %s does not exist", page, name)
		}
	}
}

// declaredNames returns the declared names by the name of their package. Packages of the same name are
// taken together.
func declaredNames(sources []*source) map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for _, s := range sources {
		in := strings.TrimSuffix(s.file.Name.Name, "_test")
		if all[in] == nil {
			all[in] = map[string]bool{}
		}
		for _, decl := range s.file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				all[in][decl.Name.Name] = all[in][decl.Name.Name] || decl.Recv == nil
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						all[in][spec.Name.Name] = true
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							all[in][name.Name] = true
						}
					}
				}
			}
		}
	}
	return all
}

var qualified = regexp.MustCompile(`(?:^|[^\w.-])([a-z][a-z0-9]*)\.([A-Z]\w*)`)

// missingNames returns the qualified names of a text that our package does not declare. foreign are names
// of packages that are not ours in this text.
func missingNames(text string, declared map[string]map[string]bool, foreign map[string]bool) (missing []string) {
	for _, match := range qualified.FindAllStringSubmatch(text, -1) {
		in, name := match[1], match[2]
		if declared[in] != nil && !foreign[in] && !declared[in][name] {
			missing = append(missing, in+"."+name)
		}
	}
	return missing
}

var aPath = regexp.MustCompile(`(?:^|[^\w./-])([a-z]+(?:/[a-z][\w.-]*)+)`)

// TestPathsInComments checks the files and directories of the repository that comments name.
func TestPathsInComments(t *testing.T) {
	for _, s := range loadTree(t).sources {
		for _, group := range s.file.Comments {
			for _, name := range missingPaths(s.dir(), group.Text()) {
				t.Errorf("%s: %s does not exist", s.at(group.Pos()), name)
			}
		}
	}
}

// missingPaths returns the paths in a text that begin with a directory of the repository and exist
// neither below its root nor below dir, the directory of the text.
func missingPaths(dir, text string) (missing []string) {
	for _, match := range aPath.FindAllStringSubmatch(text, -1) {
		name := strings.TrimRight(match[1], ".")
		if top, _, _ := strings.Cut(name, "/"); !isDir(top) {
			continue
		}
		if _, err := os.Stat(name); err == nil {
			continue
		}
		if _, err := os.Stat(path.Join(dir, name)); err != nil {
			missing = append(missing, name)
		}
	}
	return missing
}

func read(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestLinkRules(t *testing.T) {
	loadTree(t)
	const page = "docs/README.md"
	for text, faults := range map[string]int{
		"[a](../README.md), [b](reference/), [c](https://example.com/x)": 0,
		"[a](gone.md) and <img src=\"gone.svg\">":                        2,
		"# A b: `c`\n\n[a](#a-b-c)":                                      0,
		"# A b\n\n[a](#a-c)":                                             1,
		"[a](../README.md#no-such-heading)":                              1,
		"```\n[a](gone.md)\n```":                                         0,
	} {
		if got := linkFaults(page, text); len(got) != faults {
			t.Errorf("%q: %q, want %d", text, got, faults)
		}
	}
}

func TestCodeSpanRules(t *testing.T) {
	const here = "`internal/repotest/docs_test.go`"
	for text, faults := range map[string]int{
		here + ": `spanFaults`, `span`; `doc` of another file":     0,
		here + ": `spanFaults`, `gone`, `alsoGone`":                2,
		"`internal/repotest/gone.go`, `docs/gone.md`, `README.md`": 2,
		"`internal/repotest: TestCodeSpanRules`":                   0,
		"`internal/repotest: TestGone`, `docs: TestCodeSpanRules`": 2,
		"```\n`internal/repotest/gone.go`\n```":                    0,
		"`internal/repotest`, `internal/gone`, `pods/eviction`":    1,
	} {
		if _, got := spanFaults(loadTree(t), ".", text); len(got) != faults {
			t.Errorf("%q: %q, want %d", text, got, faults)
		}
	}
}

func TestQualifiedNameRules(t *testing.T) {
	declared := declaredNames([]*source{parse(t, "a.go", "package a\n\nfunc Here() {}\n\nfunc here() {}\n")})
	for text, missing := range map[string]int{
		"a.Here, (a.Here) and `a.Here`, x/a.Here": 0,
		"a.Gone, (a.Gone) and `a.Gone`, x/a.Gone": 4,
		"A.Gone, a.gone, b.Gone, x.a.Gone":        0,
	} {
		if got := missingNames(text, declared, nil); len(got) != missing {
			t.Errorf("%q: %q, want %d", text, got, missing)
		}
	}
	if got := missingNames("a.Gone", declared, map[string]bool{"a": true}); len(got) != 0 {
		t.Errorf("a foreign package was taken for ours: %q", got)
	}
}

func TestPathRules(t *testing.T) {
	loadTree(t)
	for text, missing := range map[string]int{
		"See internal/repotest, docs/README.md, and pods/eviction.": 0,
		"See internal/gone and docs/gone.md.":                       2,
		"https://example.com/docs/gone":                             0,
		"The package's repotest/doc.go, below internal.":            0,
	} {
		if got := missingPaths("internal", text); len(got) != missing {
			t.Errorf("%q: %q, want %d", text, got, missing)
		}
	}
}
