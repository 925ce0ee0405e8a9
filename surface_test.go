package millwright_test

import (
	"fmt"
	"go/ast"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// surfacePage says of each exported name of the core who may rely on it.
const surfacePage = "docs/reference/api.md"

// surfaceRoots are the directories whose packages make up the core, with all below them but the
// conformance suites.
var surfaceRoots = []string{
	"codes", "object", "decision", "machine", "machineset", "machinepool", "machineclass", "deployment", "drain", "safety",
	"driver", "store", "manager",
}

var conformanceSuites = []string{"driver/drivertest", "driver/conformance", "store/storetest", "machinepool/pooldriver/pooldrivertest"}

// surface holds the exported names of a package, each with the number of names that it stands for:
// itself, its exported methods, and its exported fields.
type surface map[string]int

// exports returns the surface of each package of the core.
func exports(sources []*source) map[string]surface {
	all := map[string]surface{}
	for _, s := range sources {
		root, _, _ := strings.Cut(s.dir(), "/")
		if s.test() || s.module != "." || !slices.Contains(surfaceRoots, root) || slices.Contains(conformanceSuites, s.dir()) {
			continue
		}
		if all[s.dir()] == nil {
			all[s.dir()] = surface{}
		}
		for _, d := range s.file.Decls {
			all[s.dir()].add(d)
		}
	}
	for _, of := range all {
		maps.DeleteFunc(of, func(name string, _ int) bool { return !ast.IsExported(name) }) // methods of other types
	}
	return all
}

func (of surface) add(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if !d.Name.IsExported() {
			return
		}
		if d.Recv == nil {
			of[d.Name.Name]++
			return
		}
		of[typeName(d.Recv.List[0].Type)]++
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					of[name.Name]++
				}
			case *ast.TypeSpec:
				of[spec.Name.Name] += 1 + members(spec.Type)
			}
		}
	}
}

// typeName returns the name of a receiver's or an embedded type.
func typeName(of ast.Expr) string {
	for {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.IndexExpr:
			of = t.X
		case *ast.IndexListExpr:
			of = t.X
		case *ast.SelectorExpr:
			return t.Sel.Name
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

// members counts the exported fields of a struct, or the methods of an interface.
func members(of ast.Expr) (n int) {
	var list *ast.FieldList
	switch t := of.(type) {
	case *ast.StructType:
		list = t.Fields
	case *ast.InterfaceType:
		list = t.Methods
	default:
		return 0
	}
	for _, field := range list.List {
		if len(field.Names) == 0 && ast.IsExported(typeName(field.Type)) {
			n++ // embedded
		}
		for _, name := range field.Names {
			if name.IsExported() {
				n++
			}
		}
	}
	return n
}

var (
	surfaceSection = regexp.MustCompile("(?m)^## `([a-z/]+)`$")
	surfaceGroup   = regexp.MustCompile(`(?m)^- (stable|experimental|internal), (\d+) names, (\d+) with methods and fields:((?:\n  [^\n]*)*)`)
	surfaceName    = regexp.MustCompile("`(\\w+)`")
)

// TestSurface: each exported name of the core is on docs/reference/api.md, in one group. The page says how many
// names a group has, with their methods and fields. So nothing becomes public, and nothing public
// grows, without a change of the page.
func TestSurface(t *testing.T) {
	text, err := os.ReadFile(surfacePage)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range surfaceFaults(string(text), exports(loadTree(t).sources)) {
		t.Errorf("%s: %s", surfacePage, fault)
	}
}

// surfaceFaults compares a page with the packages.
func surfaceFaults(page string, all map[string]surface) (faults []string) {
	seen := map[string]bool{}
	at := surfaceSection.FindAllStringSubmatchIndex(page, -1)
	for i, section := range at {
		end := len(page)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		name := page[section[2]:section[3]]
		if all[name] == nil || seen[name] {
			faults = append(faults, name+" is no package of the core, or has two sections")
			continue
		}
		seen[name] = true
		faults = append(faults, sectionFaults(name, page[section[1]:end], all[name])...)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !seen[name] && len(all[name]) > 0 {
			faults = append(faults, fmt.Sprintf("package %s has no section", name))
		}
	}
	return faults
}

// sectionFaults compares the section of a package with what it exports.
func sectionFaults(name, section string, of surface) (faults []string) {
	listed := map[string]bool{}
	for _, group := range surfaceGroup.FindAllStringSubmatch(section, -1) {
		names, with := 0, 0
		for _, found := range surfaceName.FindAllStringSubmatch(group[4], -1) {
			at := name + "." + found[1]
			if of[found[1]] == 0 || listed[found[1]] {
				faults = append(faults, at+" is not exported, or is listed twice")
			}
			listed[found[1]] = true
			names, with = names+1, with+of[found[1]]
		}
		if want := fmt.Sprintf("%d names, %d with methods and fields", names, with); want != group[2]+" names, "+group[3]+" with methods and fields" {
			faults = append(faults, fmt.Sprintf("%s, %s, has %s: is that meant? Then change the line, and docs for users with it", name, group[1], want))
		}
	}
	for _, found := range slices.Sorted(maps.Keys(of)) {
		if !listed[found] {
			faults = append(faults, fmt.Sprintf("%s.%s is exported and is in no group: unexport it, or add it and say who needs it", name, found))
		}
	}
	return faults
}

// TestSurfaceBites: what the test is for is found.
func TestSurfaceBites(t *testing.T) {
	const text = "package codes\n\ntype Code int\n\nfunc (Code) String() string\n\nfunc (*hidden) Close()\n\ntype Call struct{ Name string; at int }\n"
	parsed, err := parseSource("codes/codes.go", ".", text)
	if err != nil {
		t.Fatal(err)
	}
	all := exports([]*source{parsed})
	const good = "# API\n\n## `codes`\n\n- stable, 1 names, 2 with methods and fields:\n  `Code`\n- internal, 1 names, 2 with methods and fields:\n  `Call`\n"
	for page, fault := range map[string]string{
		good: "",
		strings.Replace(good, "2 with", "1 with", 1):           "codes, stable, has 1 names, 2 with",
		strings.Replace(good, "`Call`", "", 1):                 "codes.Call is exported and is in no group",
		strings.Replace(good, "`Call`", "`Call`\n  `Code`", 1): "codes.Code is not exported, or is listed twice",
		strings.Replace(good, "`Call`", "`Call` `Lost`", 1):    "codes.Lost is not exported",
		strings.Replace(good, "## `codes`", "## `cods`", 1):    "package codes has no section",
		good + "\n## `codes`\n":                                "has two sections",
	} {
		faults := strings.Join(surfaceFaults(page, all), "\n")
		if (fault == "") != (faults == "") || !strings.Contains(faults, fault) {
			t.Errorf("want %q, have %q, of\n%s", fault, faults, page)
		}
	}
}
