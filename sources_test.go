package millwright_test

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

// modulePath is the path of the root module.
const modulePath = "github.com/millwright-go/millwright"

// source is one Go file of the tree, nested modules included.
type source struct {
	path   string // from the root of the repository, with slashes
	module string // directory of its module; "." for the root module
	fset   *token.FileSet
	file   *ast.File
}

func (s *source) dir() string     { return path.Dir(s.path) }
func (s *source) test() bool      { return strings.HasSuffix(s.path, "_test.go") }
func (s *source) generated() bool { return ast.IsGenerated(s.file) }

// written reports whether people maintain the file as part of the product.
func (s *source) written() bool { return !s.test() && !s.generated() }

func (s *source) line(pos token.Pos) int { return s.fset.Position(pos).Line }

// at returns where in the tree something is.
func (s *source) at(pos token.Pos) string {
	return s.path + ":" + strconv.Itoa(s.line(pos))
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

func parseSource(name, module string, text any) (*source, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, filepath.FromSlash(name), text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &source{path: name, module: module, fset: fset, file: file}, nil
}

// tree is all that the rules look at. It is read file by file, and not through the go command, so
// that files for other systems count too, and so that go test knows what a cached result depends
// on.
type tree struct {
	sources []*source
	modules []string // directories with a go.mod
	goWork  []string // go.work files
	pages   []string // Markdown
}

var readTree = sync.OnceValues(func() (*tree, error) {
	t := &tree{}
	moduleOf := map[string]string{}
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(file)
		if entry.IsDir() {
			if skipped(name) {
				return filepath.SkipDir
			}
			moduleOf[name] = moduleOf[path.Dir(name)]
			if _, err := os.Stat(filepath.Join(file, "go.mod")); err == nil {
				moduleOf[name] = name
				t.modules = append(t.modules, name)
			}
			return nil
		}
		if path.Base(name) == "go.work" {
			t.goWork = append(t.goWork, name)
		}
		if path.Ext(name) == ".md" {
			t.pages = append(t.pages, name)
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		s, err := parseSource(name, moduleOf[path.Dir(name)], nil)
		t.sources = append(t.sources, s)
		return err
	})
	return t, err
})

// skipped reports whether the go command ignores a directory.
func skipped(dir string) bool {
	base := path.Base(dir)
	return dir != "." && (base[0] == '.' || base[0] == '_' || base == "testdata" || base == "vendor")
}

// loadTree reads the tree once for all tests.
func loadTree(t *testing.T) *tree {
	t.Helper()
	read, err := readTree()
	if err != nil {
		t.Fatalf("reading the tree: %v", err)
	}
	if len(read.sources) < 2 || len(read.modules) == 0 || read.modules[0] != "." {
		t.Fatalf("the walk missed the tree: %d sources, modules %v", len(read.sources), read.modules)
	}
	return read
}
