package millwright_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const maxFunctionLines = 65

// rule is one house rule on the text of a file.
type rule struct {
	name    string
	applies func(*source) bool
	// faults returns one sentence for each breach, beginning with its place.
	faults func(*source) []string
}

// inCore: the file is part of a package that decides, and not its test.
func inCore(s *source) bool {
	r := rowOf(s.dir())
	return s.module == "." && !s.test() && r != nil && r.core
}

// decides: the file is part of a package that takes data and no context.
func decides(s *source) bool {
	if !inCore(s) {
		return false
	}
	r := rowOf(s.dir())
	return !r.context && path.Base(s.path) != r.contextIn
}

var rules = []rule{
	{"stateless in machine/fsm only", func(s *source) bool { return s.dir() != "machine/fsm" },
		func(s *source) []string { return importFaults(s, stateless, "is for machine/fsm alone") }},
	{"no randomness, logs or environment in the core", func(s *source) bool { return inCore(s) && s.path != logValues },
		func(s *source) []string {
			return importFaults(s, impure, "makes a decision depend on more than its arguments")
		}},
	{"no context in decisions", decides,
		func(s *source) []string { return importFaults(s, "context", "is for ports; a decision takes data") }},
	{"no clock in the core", inCore, clockFaults},
	{"no panic in the core", inCore, panicFaults},
	{"goroutines under the race detector", func(s *source) bool { return s.module != "test/kubelab" }, goroutineFaults},
	{"objects with states are written in one place", writesObjects, writeFaults},
	{"function length", (*source).written, functionFaults},
	{"doc comments", func(s *source) bool { return s.written() && s.file.Name.Name != "main" }, docFaults},
	{"sealed interfaces are checked for exhaustive switches", (*source).written, sealedFaults},
	{"package names", func(*source) bool { return true }, nameFaults},
	{"no sleeping in tests", (*source).test, sleepFaults},
}

func TestHouseRules(t *testing.T) {
	read := loadTree(t)
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, s := range read.sources {
				if !r.applies(s) {
					continue
				}
				for _, fault := range r.faults(s) {
					t.Error(fault)
				}
			}
		})
	}
}

// logValues is the one file of the core that imports log/slog: for the type that shows a secret in
// logs, and not to log.
const logValues = "machine/machine.go"

// impure are the imports that make a decision depend on more than its arguments.
const impure = "math/rand math/rand/v2 crypto/rand hash/maphash log log/slog os os/exec os/signal os/user syscall"

// importFaults reports imports among the paths in list, separated by spaces.
func importFaults(s *source, list, why string) []string {
	var found []string
	for _, spec := range s.file.Imports {
		imported := strings.Trim(spec.Path.Value, "`\"")
		if slices.Contains(strings.Fields(list), imported) {
			found = append(found, fmt.Sprintf("%s: the import of %s %s", s.at(spec.Pos()), imported, why))
		}
	}
	return found
}

// uses finds mentions of names from an imported package: calls and values.
func uses(s *source, imported string, names ...string) []*ast.SelectorExpr {
	local, ok := s.imports()[imported]
	if !ok {
		return nil
	}
	var found []*ast.SelectorExpr
	ast.Inspect(s.file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			x, ok := selector.X.(*ast.Ident)
			if ok && x.Name == local && slices.Contains(names, selector.Sel.Name) {
				found = append(found, selector)
			}
		}
		return true
	})
	return found
}

// inClockedConstructor reports whether pos is in a function New… with an argument
// now, which may be nil for the real clock.
func inClockedConstructor(s *source, pos token.Pos) bool {
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || pos < f.Pos() || pos > f.End() || !strings.HasPrefix(f.Name.Name, "New") {
			continue
		}
		for _, field := range f.Type.Params.List {
			for _, name := range field.Names {
				if name.Name == "now" {
					return true
				}
			}
		}
	}
	return false
}

func clockFaults(s *source) []string {
	var found []string
	if s.imports()["time"] == "." {
		found = append(found, s.path+": time must not be imported as '.'")
	}
	for _, use := range uses(s, "time", "Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker") {
		if use.Sel.Name == "Now" && inClockedConstructor(s, use.Pos()) {
			continue
		}
		found = append(found, fmt.Sprintf("%s: time.%s reads the clock; time is an argument here", s.at(use.Pos()), use.Sel.Name))
	}
	return found
}

func panicFaults(s *source) []string {
	var found []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if name, ok := call.Fun.(*ast.Ident); ok && name.Name == "panic" {
				found = append(found, s.at(n.Pos())+": panic; return a typed error, or a plan that says what is wrong")
			}
		}
		return true
	})
	return found
}

// goroutineFaults: scripts/test.sh uses the race detector in the directories of its race_dirs only,
// so goroutines anywhere else would run without it.
func goroutineFaults(s *source) []string {
	for _, dir := range raceDirs() {
		if s.dir() == dir || strings.HasPrefix(s.dir(), dir+"/") {
			return nil
		}
	}
	var found []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		_, starts := n.(*ast.GoStmt)
		if call, ok := n.(*ast.CallExpr); ok {
			selector, ok := call.Fun.(*ast.SelectorExpr)
			starts = ok && slices.Contains([]string{"Go", "RunParallel", "AfterFunc"}, selector.Sel.Name)
		}
		if starts {
			found = append(found, s.at(n.Pos())+": starts a goroutine; add the directory to race_dirs in scripts/test.sh")
		}
		return true
	})
	return found
}

// writesObjects: the file may write objects, and is not the one place that does.
func writesObjects(s *source) bool {
	inManager := s.dir() == "manager" || strings.HasPrefix(s.dir(), "manager/")
	return inManager && !s.test() && s.path != "manager/engine/write.go"
}

// writeFaults reports writes of objects, other than nodes and secrets, which have no states. Writes of
// metadata and spec by store.Edit are a user's, and change no state.
func writeFaults(s *source) []string {
	var found []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		selector, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		first, _ := call.Args[0].(*ast.Ident)
		var of string
		switch x := selector.X.(type) {
		case *ast.Ident:
			of = x.Name
		case *ast.SelectorExpr:
			of = x.Sel.Name
		}
		writes := slices.Contains([]string{"Update", "UpdateStatus"}, selector.Sel.Name) && first != nil && first.Name == "ctx"
		stateless := slices.Contains([]string{"nodes", "secrets"}, strings.ToLower(of))
		if writes && !stateless || selector.Sel.Name == "EditStatus" {
			found = append(found, s.at(n.Pos())+": writes an object; use engine.Objects.Write, which fires its moves")
		}
		return true
	})
	return found
}

var raceDirsLine = regexp.MustCompile(`(?m)^race_dirs="([^"]+)"$`)

func raceDirs() []string {
	text, err := os.ReadFile("scripts/test.sh")
	if err != nil {
		return nil
	}
	if match := raceDirsLine.FindSubmatch(text); match != nil {
		return strings.Fields(string(match[1]))
	}
	return nil
}

func functionFaults(s *source) []string {
	var found []string
	for _, decl := range s.file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if lines := s.line(f.End()) - s.line(f.Pos()) + 1; lines > maxFunctionLines {
			found = append(found, fmt.Sprintf("%s: %s has %d lines, more than %d", s.at(f.Pos()), f.Name.Name, lines, maxFunctionLines))
		}
	}
	return found
}

// selfExplaining are methods whose contract the standard library gives.
var selfExplaining = []string{"String", "Error", "Unwrap", "GoString", "MarshalText", "UnmarshalText", "MarshalJSON", "UnmarshalJSON"}

func docFaults(s *source) []string {
	var found []string
	missing := func(name *ast.Ident, docs ...*ast.CommentGroup) {
		if name.IsExported() && !slices.ContainsFunc(docs, func(d *ast.CommentGroup) bool { return d.Text() != "" }) {
			found = append(found, fmt.Sprintf("%s: %s has no doc comment", s.at(name.Pos()), name.Name))
		}
	}
	for _, decl := range s.file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil || exportedReceiver(decl) && !slices.Contains(selfExplaining, decl.Name.Name) {
				missing(decl.Name, decl.Doc)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					alone := decl.Doc
					if decl.Lparen.IsValid() {
						alone = nil // a comment on a group does not explain its types
					}
					missing(spec.Name, spec.Doc, spec.Comment, alone)
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						missing(name, spec.Doc, spec.Comment, decl.Doc)
					}
				}
			}
		}
	}
	return found
}

func exportedReceiver(f *ast.FuncDecl) bool {
	exported := false
	ast.Inspect(f.Recv.List[0].Type, func(n ast.Node) bool {
		if name, ok := n.(*ast.Ident); ok && !exported {
			exported = name.IsExported()
			return false
		}
		return true
	})
	return exported
}

// sealedFaults: an interface with only an unexported marker is a sum type. Without the marker
// comment, on a declaration of its own, the linter would not check switches over it.
func sealedFaults(s *source) []string {
	var found []string
	for _, decl := range s.file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.TYPE {
			continue
		}
		for _, spec := range group.Specs {
			spec, ok := spec.(*ast.TypeSpec)
			if ok && sealed(spec) && (group.Lparen.IsValid() || !marked(group.Doc)) {
				found = append(found, fmt.Sprintf("%s: the sealed interface %s needs its own declaration with the line //sumtype:decl above it", s.at(spec.Pos()), spec.Name.Name))
			}
		}
	}
	return found
}

func sealed(spec *ast.TypeSpec) bool {
	iface, ok := spec.Type.(*ast.InterfaceType)
	if !ok {
		return false
	}
	for _, method := range iface.Methods.List {
		signature, ok := method.Type.(*ast.FuncType)
		if ok && !method.Names[0].IsExported() && signature.Params.NumFields() == 0 && signature.Results.NumFields() == 0 {
			return true
		}
	}
	return false
}

func marked(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool {
		return strings.HasPrefix(c.Text, "//sumtype:decl")
	})
}

// vague are package names that say nothing about their subject.
var vague = []string{"util", "utils", "common", "helper", "helpers", "types", "data", "info"}

func nameFaults(s *source) []string {
	for _, name := range []string{path.Base(s.dir()), strings.TrimSuffix(s.file.Name.Name, "_test")} {
		if slices.Contains(vague, name) {
			return []string{fmt.Sprintf("%s: %s is no name for a package; name its subject", s.path, name)}
		}
	}
	return nil
}

func sleepFaults(s *source) []string {
	var found []string
	for _, use := range uses(s, "time", "Sleep") {
		found = append(found, s.at(use.Pos())+": time.Sleep in a test; use virtual time, or wait for a condition with a deadline")
	}
	return found
}
