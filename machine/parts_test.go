package machine_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPartsAskOnlyPartsAboveThem holds the parts of a decision to the order of parts.go, and
// each to as many methods as can be read at once.
func TestPartsAskOnlyPartsAboveThem(t *testing.T) {
	const most = 60
	files := map[string]*ast.File{}
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		files[name], err = parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
	}
	var parts []string
	for _, d := range files["parts.go"].Decls {
		parts = append(parts, d.(*ast.GenDecl).Specs[0].(*ast.TypeSpec).Name.Name)
	}
	methods, asked := map[string]int{}, 0
	for _, f := range files {
		for _, d := range f.Decls {
			method, ok := d.(*ast.FuncDecl)
			if !ok || method.Recv == nil {
				continue
			}
			asking := receiver(method)
			methods[asking]++
			floor := slices.Index(parts, asking)
			if floor < 0 && asking != "situation" {
				continue
			}
			for _, part := range partsIn(method.Body, parts) {
				require.LessOrEqual(t, slices.Index(parts, part), floor, "%s.%s asks %s", asking, method.Name.Name, part)
				asked++
			}
		}
	}
	require.GreaterOrEqual(t, asked, 30)
	for name, n := range methods {
		require.LessOrEqual(t, n, most, name)
	}
	for _, part := range parts {
		require.Positive(t, methods[part], part)
	}
}

// receiver is the name of the type that a method belongs to.
func receiver(method *ast.FuncDecl) string {
	typ := method.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	return typ.(*ast.Ident).Name
}

// partsIn lists the parts that a body makes, by a literal or by a conversion.
func partsIn(body ast.Node, parts []string) (made []string) {
	ast.Inspect(body, func(n ast.Node) bool {
		var typ ast.Expr
		switch n := n.(type) {
		case *ast.CompositeLit:
			typ = n.Type
		case *ast.CallExpr:
			typ = n.Fun
		}
		if name, ok := typ.(*ast.Ident); ok && slices.Contains(parts, name.Name) {
			made = append(made, name.Name)
		}
		return true
	})
	return made
}
