// Command api writes docs/reference/api.md: the exported functions and types of all packages of the root
// module that other modules can import. Its arguments are the root directory and the file to write.
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

//go:generate go run . ../.. ../reference/api.md

// unlisted are directories with packages that only this repository uses.
var unlisted = []string{"docs", "test"}

const (
	modulePath = "github.com/millwright-go/millwright"

	preamble = `<!-- Written by docs/api: run make docs. -->
# Exported names

Functions and types by package; ` + "`go doc machine.Decide`" + ` prints the comment of one, with its fields, methods and
constants. [Releasing](../how-to/releasing.md#stability) says what stays compatible. In policies and options, nil and
zero mean the default, and ` + "`object.Off`" + ` turns off what can be turned off.
`
)

// page returns the text of the page.
func page(root string) ([]byte, error) {
	dirs, err := packages(root)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(preamble)
	for _, dir := range dirs {
		p, err := load(root, dir)
		if err != nil {
			return nil, err
		}
		write(&b, dir, p)
	}
	return b.Bytes(), nil
}

// packages returns the directories of the importable packages of the root module.
func packages(root string) ([]string, error) {
	var dirs []string
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil || rel == "." {
			return err
		}
		dir := filepath.ToSlash(rel)
		if !entry.IsDir() {
			if in := path.Dir(dir); in != "." && strings.HasSuffix(dir, ".go") && !strings.HasSuffix(dir, "_test.go") && !slices.Contains(dirs, in) {
				dirs = append(dirs, in)
			}
			return nil
		}
		base := path.Base(dir)
		_, nested := os.Stat(filepath.Join(file, "go.mod"))
		if nested == nil || base[0] == '.' || base == "internal" || base == "testdata" || base == "cmd" || slices.Contains(unlisted, dir) {
			return filepath.SkipDir
		}
		return nil
	})
	slices.Sort(dirs)
	return dirs, err
}

// load reads the documentation of a package.
func load(root, dir string) (*doc.Package, error) {
	entries, err := os.ReadDir(filepath.Join(root, dir))
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, e := range entries {
		if e.IsDir() || path.Ext(e.Name()) != ".go" || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, filepath.Join(root, dir, e.Name()), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return doc.NewFromFiles(fset, files, modulePath+"/"+dir)
}

// write writes the section of a package. Constants are not listed: go doc shows them with their types.
func write(b *bytes.Buffer, dir string, p *doc.Package) {
	var types, functions []string
	for _, f := range p.Funcs {
		functions = append(functions, f.Name)
	}
	for _, t := range p.Types {
		types = append(types, t.Name)
		for _, f := range t.Funcs {
			functions = append(functions, f.Name)
		}
	}
	slices.Sort(functions)
	fmt.Fprintf(b, "\n## `%s`\n\n%s\n\n", dir, p.Synopsis(p.Doc))
	list(b, "Functions", functions)
	list(b, "Types", types)
}

// list writes names in lines of at most 120 characters.
func list(b *bytes.Buffer, title string, names []string) {
	if len(names) == 0 {
		return
	}
	line := "- " + title + ":"
	for _, name := range names {
		if len(line)+len(name)+3 > 120 {
			b.WriteString(line + "\n")
			line = " "
		}
		line += " `" + name + "`"
	}
	b.WriteString(line + "\n")
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: api ROOT FILE")
	}
	text, err := page(args[0])
	if err != nil {
		return err
	}
	return os.WriteFile(args[1], text, 0o644)
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
}
