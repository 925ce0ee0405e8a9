package repotest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const modulePath = "github.com/millwright-go/millwright"

// source is one Go file of the repository, nested modules included.
type source struct {
	path   string // relative to the root directory, with slashes
	module string // directory of its module; "." for the root module
	fset   *token.FileSet
	file   *ast.File
}

func (s *source) dir() string  { return path.Dir(s.path) }
func (s *source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// at returns the file and line of a position.
func (s *source) at(pos token.Pos) string {
	return s.path + ":" + strconv.Itoa(s.fset.Position(pos).Line)
}

// imports maps the path of each import to the name it has in the file.
func (s *source) imports() map[string]string {
	names := map[string]string{}
	for _, spec := range s.file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		names[imported] = path.Base(imported)
		if spec.Name != nil {
			names[imported] = spec.Name.Name
		}
	}
	return names
}

// declares reports whether a file declares a function, method, type, constant or variable.
func (s *source) declares(name string) bool {
	for _, decl := range s.file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Name.Name == name {
				return true
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if spec.Name.Name == name {
						return true
					}
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						if n.Name == name {
							return true
						}
					}
				}
			}
		}
	}
	return false
}

func parse(t *testing.T, name, text string) *source {
	t.Helper()
	s, err := parseSource(name, ".", text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func parseSource(name, module string, text any) (*source, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, filepath.FromSlash(name), text, parser.ParseComments|parser.SkipObjectResolution)
	return &source{path: name, module: module, fset: fset, file: file}, err
}

// tree holds the files that the rules are about. They are read without the go command, so that
// files of every operating system count, and go test knows what a cached result depends on.
type tree struct {
	sources []*source
	modules []string // directories with a go.mod
	pages   []string // Markdown
}

var readTree = sync.OnceValues(func() (*tree, error) {
	t := &tree{}
	// Not in TestMain: go test learns what a cached result depends on from within tests only.
	if err := os.Chdir(filepath.Join("..", "..")); err != nil {
		return nil, err
	}
	moduleOf := map[string]string{}
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(file)
		switch {
		case entry.IsDir():
			if skipped(name) {
				return filepath.SkipDir
			}
			moduleOf[name] = moduleOf[path.Dir(name)]
			if _, err := os.Stat(filepath.Join(file, "go.mod")); err == nil {
				moduleOf[name] = name
				t.modules = append(t.modules, name)
			}
		case path.Ext(name) == ".md":
			t.pages = append(t.pages, name)
		case path.Ext(name) == ".go":
			s, err := parseSource(name, moduleOf[path.Dir(name)], nil)
			if err != nil {
				return err
			}
			t.sources = append(t.sources, s)
		}
		return nil
	})
	return t, err
})

// skipped reports whether the go command ignores a directory.
func skipped(dir string) bool {
	base := path.Base(dir)
	return dir != "." && (base[0] == '.' || base[0] == '_' || base == "testdata" || base == "vendor")
}

// loadTree makes the root of the repository the working directory, and reads the repository once for
// all tests.
func loadTree(t *testing.T) *tree {
	t.Helper()
	read, err := readTree()
	if err != nil {
		t.Fatal(err)
	}
	if len(read.sources) < 2 || len(read.pages) < 2 || len(read.modules) < 2 || read.modules[0] != "." {
		t.Fatalf("%d Go files, %d pages, modules %v: this is not the repository", len(read.sources), len(read.pages), read.modules)
	}
	return read
}
