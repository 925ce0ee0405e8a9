package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/millwright-go/millwright/test/mutation/overlay"
)

// compiling returns those of the changes that compile.
func compiling(root string, all []change) ([]change, error) {
	texts, err := overlay.Files(root, edits(all))
	if err != nil {
		return nil, err
	}
	listed, err := list(root)
	if err != nil {
		return nil, err
	}
	broken := map[int]bool{} // numbers of mistakes that don't compile
	for _, p := range listed {
		if err := p.check(texts, listed, broken); err != nil {
			return nil, err
		}
	}
	var good []change
	for i, c := range all {
		if !broken[i+1] {
			good = append(good, c)
		}
	}
	return good, nil
}

func edits(all []change) []overlay.Edit {
	var list []overlay.Edit
	for _, c := range all {
		list = append(list, c.Edit)
	}
	return list
}

// listed is a package in the output of go list.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	Module                  *struct{ Path, Dir string }
	dir                     string // relative to the root of the module
}

// list lists the packages of the module and their dependencies, also those of zz_mistake.go, with their
// export data.
func list(root string) (map[string]*listed, error) {
	c := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Module", "./...", "os", "strconv")
	c.Dir, c.Stderr = root, os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, err
	}
	all := map[string]*listed{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if p.Module != nil {
			p.dir = strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, p.Module.Path), "/")
		}
		all[p.ImportPath] = &p
	}
}

// check adds to broken the mistakes in a package that don't compile.
func (p *listed) check(texts map[string][]byte, all map[string]*listed, broken map[int]bool) error {
	switches, changed := texts[path.Join(p.dir, "zz_mistake.go")]
	if !changed || p.Module == nil {
		return nil
	}
	positions := token.NewFileSet()
	var files []*ast.File
	parse := func(name string, text any) error {
		f, err := parser.ParseFile(positions, name, text, parser.SkipObjectResolution)
		files = append(files, f)
		return err
	}
	err := parse("zz_mistake.go", switches)
	for _, name := range p.GoFiles {
		var text any
		if changed, ok := texts[path.Join(p.dir, name)]; ok {
			text = changed
		}
		err = errors.Join(err, parse(filepath.Join(p.Dir, name), text))
	}
	if err != nil {
		return err
	}
	exports := func(name string) (io.ReadCloser, error) {
		if all[name] == nil {
			return nil, fs.ErrNotExist
		}
		return os.Open(all[name].Export)
	}
	conf := types.Config{Importer: importer.ForCompiler(positions, "gc", exports)}
	conf.Error = func(err error) {
		var found types.Error
		if errors.As(err, &found) {
			broken[numberAt(files, found.Pos)] = true
		}
	}
	_, _ = conf.Check(p.ImportPath, positions, files, nil)
	return nil
}

// numberAt returns the number of the mistake whose function is at a position, or 0.
func numberAt(files []*ast.File, at token.Pos) int {
	for _, file := range files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Pos() <= at && at < f.End() {
				_, digits, _ := strings.Cut(f.Name.Name, "__")
				number, _ := strconv.Atoi(digits)
				return number
			}
		}
	}
	return 0
}
