package millwright_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// withoutLoops are the directories whose packages have no loops of files, beside those below manager.
var withoutLoops = []string{"manager", "sim", "sim/internal/cluster", "sim/scenario"}

// TestNoLoopsOfFiles: inside each of these packages, no file refers to one that refers to it, directly or
// not. So each package can be read from the ground up.
func TestNoLoopsOfFiles(t *testing.T) {
	files := map[string][]*ast.File{}
	fset := token.NewFileSet()
	for _, s := range loadTree(t).sources {
		if s.test() || s.module != "." || !slices.Contains(withoutLoops, s.dir()) && !strings.HasPrefix(s.dir(), "manager/") {
			continue
		}
		file, err := parser.ParseFile(fset, s.path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files[s.dir()] = append(files[s.dir()], file)
	}
	arrows := 0
	for dir, of := range files {
		between := arrowsOf(fset, of)
		for _, to := range between {
			arrows += len(to)
		}
		if loop := loopOf(between); loop != "" {
			t.Errorf("%s: %s: a loop of files; move what is named to the lower one, or to a file below both", dir, loop)
		}
	}
	if len(files) < 11 || arrows < 700 {
		t.Errorf("%d packages with %d arrows between files were read: there are more", len(files), arrows)
	}
}

// TestLoopsOfFilesBite has packages with and without a loop.
func TestLoopsOfFilesBite(t *testing.T) {
	for _, c := range []struct{ a, b, c, want string }{
		{"type A struct{ b B }", "type B int", "func c(A, B) {}", ""},
		{"type A struct{ b B }", "type B int\nfunc (b B) m(A) {}", "", "a.go -> b.go (B) -> a.go (A)"},
		{"type A struct{ n int }", "type B struct{ *A }\nfunc (b B) m() {}", "func c(b B) { b.n = 1 }", ""},
		{"type A struct{ n int }\nfunc a() { c() }", "type B struct{ *A }", "func c() { var b B; b.n = 1 }", "a.go -> c.go (c) -> a.go (n)"},
		{"import \"x/y\"\ntype A struct{ *y.T }\nfunc (a A) m() { a.k() }", "func (A) k() {}", "func c(y int) { _ = y }", "a.go -> b.go (k) -> a.go (A)"},
	} {
		fset := token.NewFileSet()
		var files []*ast.File
		for name, text := range map[string]string{"a.go": c.a, "b.go": c.b, "c.go": c.c} {
			file, err := parser.ParseFile(fset, name, "package p\n"+text, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
		if got := loopOf(arrowsOf(fset, files)); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// nothing is an importer of packages with nothing in them.
type nothing struct{}

func (nothing) Import(imported string) (*types.Package, error) {
	p := types.NewPackage(imported, path.Base(imported))
	p.MarkComplete()
	return p, nil
}

// arrowsOf returns which file of a package refers to which other, and one name that it takes. What the package
// imports is left out, which is a mistake to the type checker and none here.
func arrowsOf(fset *token.FileSet, files []*ast.File) map[string]map[string]string {
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: nothing{}, Error: func(error) {}}
	checked, _ := config.Check("p", fset, files, &info)
	fileOf := func(pos token.Pos) string { return path.Base(fset.Position(pos).Filename) }
	arrows := map[string]map[string]string{}
	for ident, used := range info.Uses {
		if _, imported := used.(*types.PkgName); imported || used.Pkg() != checked || !used.Pos().IsValid() {
			continue
		}
		from, to := fileOf(ident.Pos()), fileOf(used.Pos())
		if from == to {
			continue
		}
		if arrows[from] == nil {
			arrows[from] = map[string]string{}
		}
		if before, has := arrows[from][to]; !has || used.Name() < before {
			arrows[from][to] = used.Name()
		}
	}
	return arrows
}

// loopOf returns the first loop; empty: there is none.
func loopOf(arrows map[string]map[string]string) string {
	done := map[string]bool{}
	var way []string
	var visit func(file string) string
	visit = func(file string) string {
		if at := slices.Index(way, file); at >= 0 {
			loop := file
			for i := at; i < len(way); i++ {
				to := file
				if i+1 < len(way) {
					to = way[i+1]
				}
				loop += fmt.Sprintf(" -> %s (%s)", to, arrows[way[i]][to])
			}
			return loop
		}
		if done[file] {
			return ""
		}
		way = append(way, file)
		for _, to := range slices.Sorted(maps.Keys(arrows[file])) {
			if loop := visit(to); loop != "" {
				return loop
			}
		}
		way = way[:len(way)-1]
		done[file] = true
		return ""
	}
	for _, file := range slices.Sorted(maps.Keys(arrows)) {
		if loop := visit(file); loop != "" {
			return loop
		}
	}
	return ""
}
