package millwright_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

// name is an exported name of a package of the core.
type name struct{ dir, name string }

// relied are the functions that a program needs which calls decisions with a shell of its own, and fires
// the same moves.
var relied = []name{
	{"machine", "Decide"}, {"machineset", "Decide"}, {"deployment", "Decide"}, {"machinepool", "Decide"}, {"drain", "Decide"},
	{"machine", "PhaseTable"}, {"machine", "DeletionTable"}, {"machine", "UpdateTable"}, {"machine", "GuardOf"}, {"machinepool", "PhaseTable"},
	{"machine/fsm", "New"}, {"machine/fsm", "Machines"}, {"machine/fsm", "Pools"},
}

func (n name) String() string { return n.dir + "." + n.name }

// reach follows names from the signatures of functions.
type reach struct {
	types     map[name]*ast.TypeSpec
	funcs     map[name]*ast.FuncType
	in        map[name]*source
	consts    map[name][]string // by their type
	sealing   map[name][]string // by directory and unexported method: the types that have it
	reached   map[name]name     // by what each was reached
	remaining []name
}

func newReach(sources []*source) *reach {
	r := &reach{
		types: map[name]*ast.TypeSpec{}, funcs: map[name]*ast.FuncType{}, in: map[name]*source{},
		consts: map[name][]string{}, sealing: map[name][]string{}, reached: map[name]name{},
	}
	for _, s := range sources {
		if s.test() || s.module != "." {
			continue
		}
		for _, d := range s.file.Decls {
			r.declare(s, d)
		}
	}
	return r
}

func (r *reach) declare(s *source, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		at := name{s.dir(), d.Name.Name}
		if d.Recv == nil {
			r.funcs[at], r.in[at] = d.Type, s
		} else if !d.Name.IsExported() {
			r.sealing[at] = append(r.sealing[at], typeName(d.Recv.List[0].Type))
		}
	case *ast.GenDecl:
		var of ast.Expr // of constants, which the next ones repeat
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				at := name{s.dir(), spec.Name.Name}
				r.types[at], r.in[at] = spec, s
			case *ast.ValueSpec:
				if spec.Type != nil || len(spec.Values) > 0 {
					of = spec.Type
				}
				if typ, ok := of.(*ast.Ident); ok && d.Tok == token.CONST {
					for _, n := range spec.Names {
						at := name{s.dir(), typ.Name}
						r.consts[at] = append(r.consts[at], n.Name)
					}
				}
			}
		}
	}
}

// follow returns all exported types, and constants of these types, that are reached from the signature of
// a function: by parameters and results, exported fields, elements, methods of interfaces, and the
// types that a sealed interface has.
func (r *reach) follow(from name) {
	r.visit(from, r.in[from], r.funcs[from])
	for len(r.remaining) > 0 {
		next := r.remaining[0]
		r.remaining = r.remaining[1:]
		for _, constant := range r.consts[next] {
			if at := (name{next.dir, constant}); ast.IsExported(constant) {
				r.reached[at] = next
			}
		}
		r.visit(next, r.in[next], r.types[next].Type)
	}
}

// visit reaches what an expression names.
func (r *reach) visit(by name, s *source, at ast.Node) {
	ast.Inspect(at, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncType:
			for _, list := range []*ast.FieldList{n.TypeParams, n.Params, n.Results} {
				for i := 0; list != nil && i < len(list.List); i++ {
					r.visit(by, s, list.List[i].Type)
				}
			}
			return false
		case *ast.Field:
			if len(n.Names) > 0 && !slices.ContainsFunc(n.Names, (*ast.Ident).IsExported) {
				if _, method := n.Type.(*ast.FuncType); method {
					for _, one := range r.sealing[name{by.dir, n.Names[0].Name}] {
						r.reach(by, name{by.dir, one})
					}
				}
				return false
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				r.reach(by, name{r.dirOf(s, x.Name), n.Sel.Name})
			}
			return false
		case *ast.Ident:
			r.reach(by, name{s.dir(), n.Name})
		}
		return true
	})
}

// dirOf returns the directory of the package that a file has imported under that name.
func (r *reach) dirOf(s *source, local string) string {
	for imported, as := range s.imports() {
		if as == local {
			return strings.TrimPrefix(imported, "github.com/millwright-go/millwright/")
		}
	}
	return ""
}

func (r *reach) reach(by, to name) {
	if _, known := r.reached[to]; r.types[to] == nil || known || !ast.IsExported(to.name) {
		return
	}
	r.reached[to] = by
	r.remaining = append(r.remaining, to)
}

// TestDecisionsAreStable: a program that calls a decision by itself relies on all that its signature leads
// to: the observation, the plan with its writes and effects, and their fields. So all of that is stable, and
// so are the state machines.
func TestDecisionsAreStable(t *testing.T) {
	text, err := os.ReadFile(surfacePage)
	if err != nil {
		t.Fatal(err)
	}
	r := newReach(loadTree(t).sources)
	for _, of := range relied {
		r.reached[of] = of
		r.follow(of)
	}
	stable := stableNames(string(text))
	var faults []string
	for at, by := range r.reached {
		if !stable[at] {
			faults = append(faults, fmt.Sprintf("%s is not stable, and %s, which a program needs that calls a decision, leads to it", at, by))
		}
	}
	slices.Sort(faults)
	for _, fault := range faults {
		t.Errorf("%s: %s", surfacePage, fault)
	}
	for _, must := range []name{{"machine", "CreateVM"}, {"machine", "Plan"}, {"decision", "Move"}, {"machine", "TokenNeeded"}, {"machineset", "Order"}} {
		if _, reached := r.reached[must]; !reached {
			t.Errorf("%s is not reached", must)
		}
	}
}

// stableNames are the names that the page calls stable.
func stableNames(page string) map[name]bool {
	stable := map[name]bool{}
	at := surfaceSection.FindAllStringSubmatchIndex(page, -1)
	for i, section := range at {
		end := len(page)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		for _, group := range surfaceGroup.FindAllStringSubmatch(page[section[1]:end], -1) {
			if group[1] != "stable" {
				continue
			}
			for _, found := range surfaceName.FindAllStringSubmatch(group[4], -1) {
				stable[name{page[section[2]:section[3]], found[1]}] = true
			}
		}
	}
	return stable
}
