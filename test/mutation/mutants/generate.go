package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/millwright-go/millwright/test/mutation/overlay"
)

// change is a generated mistake: the text from, in a line, is replaced.
type change struct {
	overlay.Edit
	line int
	from string
}

// String returns the position and the texts of the change.
func (c change) String() string {
	return fmt.Sprintf("%s:%d: %q becomes %q", c.File, c.line, c.from, c.Text)
}

// sample draws n of the changes. The same seed draws the same ones.
func sample(all []change, n int, seed uint64) []change {
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(n, len(all))]
}

// changes returns all possible changes in trees of packages, without tests and test suites.
func changes(root string, trees []string) (all []change, err error) {
	for _, tree := range trees {
		err := fs.WalkDir(os.DirFS(root), tree, func(file string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case e.IsDir() && suite(e.Name()):
				return fs.SkipDir
			case e.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
				return nil
			}
			text, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				return err
			}
			found, err := changesOf(file, string(text))
			all = append(all, found...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// suite reports whether a directory with this name has a test suite for users, or test data.
func suite(name string) bool {
	return name == "testdata" || name == "conformance" || strings.HasSuffix(name, "test")
}

// changesOf returns all possible changes in the functions of a file.
func changesOf(file, source string) ([]change, error) {
	positions := token.NewFileSet()
	parsed, err := parser.ParseFile(positions, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	g := generator{file: file, source: source, positions: positions}
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && named(f.Recv) && named(f.Type.Params) {
			ast.Inspect(f.Body, g.visit)
		}
	}
	return g.found, nil
}

// named reports whether all parameters of a list have names, so that the function can call a variant of
// itself with them.
func named(list *ast.FieldList) bool {
	if list == nil {
		return true
	}
	for _, field := range list.List {
		if len(field.Names) == 0 {
			return false
		}
		for _, name := range field.Names {
			if name.Name == "_" {
				return false
			}
		}
	}
	return true
}

// generator collects the changes of a file.
type generator struct {
	file, source string
	positions    *token.FileSet
	found        []change
}

// visit collects the changes of a node.
func (g *generator) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		g.negate(n.Cond)
	case *ast.ForStmt:
		if n.Cond != nil {
			g.negate(n.Cond)
		}
	case *ast.CaseClause:
		g.negateCases(n)
	case *ast.BinaryExpr:
		if to, ok := neighbours[n.Op]; ok {
			g.replace(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), to)
		}
	case *ast.BasicLit:
		g.count(n)
	case *ast.ExprStmt:
		if _, ok := n.X.(*ast.CallExpr); ok {
			g.replace(n.Pos(), n.End(), "")
		}
	case *ast.AssignStmt:
		if _, field := n.Lhs[0].(*ast.SelectorExpr); field && n.Tok == token.ASSIGN {
			g.replace(n.Pos(), n.End(), "")
		}
	case *ast.ReturnStmt:
		for _, result := range n.Results {
			g.swap(result)
		}
	}
	return true
}

// neighbours maps operators to those that a developer might write by mistake.
var neighbours = map[token.Token]string{
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">",
	token.LAND: "||", token.LOR: "&&", token.ADD: "-", token.SUB: "+",
}

// count changes an integer by one, up and down.
func (g *generator) count(n *ast.BasicLit) {
	if value, err := strconv.Atoi(n.Value); n.Kind == token.INT && err == nil {
		g.replace(n.Pos(), n.End(), strconv.Itoa(value+1))
		g.replace(n.Pos(), n.End(), strconv.Itoa(value-1))
	}
}

func (g *generator) negate(condition ast.Expr) {
	g.replace(condition.Pos(), condition.End(), "!("+g.text(condition.Pos(), condition.End())+")")
}

// negateCases negates the conditions in a case of a switch without a value. A case that may be a value to
// compare with is left alone.
func (g *generator) negateCases(n *ast.CaseClause) {
	for _, e := range n.List {
		switch e := e.(type) {
		case *ast.UnaryExpr:
			if e.Op == token.NOT {
				g.negate(e)
			}
		case *ast.BinaryExpr:
			switch e.Op {
			case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ, token.LAND, token.LOR:
				g.negate(e)
			default:
			}
		}
	}
}

// swap swaps true and false.
func (g *generator) swap(result ast.Expr) {
	switch name, _ := result.(*ast.Ident); {
	case name == nil:
	case name.Name == "true":
		g.replace(name.Pos(), name.End(), "false")
	case name.Name == "false":
		g.replace(name.Pos(), name.End(), "true")
	}
}

func (g *generator) text(from, to token.Pos) string {
	return g.source[g.positions.Position(from).Offset:g.positions.Position(to).Offset]
}

// replace adds a change.
func (g *generator) replace(from, to token.Pos, text string) {
	start, end := g.positions.Position(from), g.positions.Position(to)
	g.found = append(g.found, change{
		Edit: overlay.Edit{File: g.file, Start: start.Offset, End: end.Offset, Text: text},
		line: start.Line, from: g.source[start.Offset:end.Offset],
	})
}
