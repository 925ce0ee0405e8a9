// Package overlay puts many mistakes into one build. A mistake changes the body of a function, or the value
// of a variable of the package. The build has the original function and a variant for each mistake in it.
// An environment variable chooses which of them runs, so a hundred mistakes need only one build.
package overlay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// Variable is the environment variable with the number of the mistake that is switched on, from 1. If it
// is unset or 0, the original code runs.
const Variable = "MILLWRIGHT_MISTAKE"

// Edit replaces the bytes [Start, End) of a file by Text.
type Edit struct {
	File       string // relative to the root of the module, with slashes
	Start, End int
	Text       string
}

// Replacing returns the edit that replaces the text from by the text to in a file, without what they
// have in common at the beginning and the end. It fails unless the file has from exactly once.
func Replacing(root, file, from, to string) (Edit, error) {
	source, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return Edit{}, err
	}
	if n := bytes.Count(source, []byte(from)); n != 1 || from == to {
		return Edit{}, fmt.Errorf("%s: the file has the text to change %d times, not once: %q", file, n, from)
	}
	at := bytes.Index(source, []byte(from))
	same := 0
	for same < min(len(from), len(to)) && from[same] == to[same] {
		same++
	}
	at, from, to = at+same, from[same:], to[same:]
	for from != "" && to != "" && from[len(from)-1] == to[len(to)-1] {
		from, to = from[:len(from)-1], to[:len(to)-1]
	}
	return Edit{file, at, at + len(from), to}, nil
}

// Write writes the files that Files returns and an overlay file for the go command to dir. It returns
// the path of the overlay file.
func Write(root, dir string, edits []Edit) (string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	texts, err := Files(root, edits)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file, text := range texts {
		name := filepath.Join(dir, fmt.Sprintf("file%d.go", len(replace)))
		replace[filepath.Join(root, file)] = name
		if err := os.WriteFile(name, text, 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, text, 0o600)
}

// Files returns the new texts of the changed files and of zz_mistake.go in their packages, by path relative
// to the root of the module. Edit i is mistake number i+1. Files fails if an edit is neither in the body of
// one function nor in the value of one variable of the package, or if that function has a parameter
// without a name.
func Files(root string, edits []Edit) (map[string][]byte, error) {
	texts := map[string][]byte{}
	for _, file := range files(edits) {
		source, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return nil, err
		}
		text, name, err := withSwitches(source, file, edits)
		if err != nil {
			return nil, err
		}
		texts[file] = text
		texts[path.Join(path.Dir(file), "zz_mistake.go")] = fmt.Appendf(nil, chooser, name, Variable)
	}
	return texts, nil
}

// chooser is the text of zz_mistake.go, which is added to each package with mistakes.
const chooser = `package %s

import (
	"os"
	"strconv"
)

var mistake__, _ = strconv.Atoi(os.Getenv(%q))
`

// files returns the files of the edits, sorted.
func files(edits []Edit) []string {
	seen := map[string]bool{}
	var list []string
	for _, e := range edits {
		if !seen[e.File] {
			seen[e.File] = true
			list = append(list, e.File)
		}
	}
	sort.Strings(list)
	return list
}

// variants collects the code that is added to a file for its mistakes.
type variants struct {
	source []byte
	at     func(token.Pos) int                // returns the offset of a position
	cases  map[*ast.FuncDecl]*strings.Builder // of the switch at the beginning of a function
	end    strings.Builder                    // code for the end of the file
}

// withSwitches returns the file with a switch at the beginning of each function with mistakes, which calls
// the function's variants. The variants are at the end of the file. name is the name of the package.
func withSwitches(source []byte, file string, edits []Edit) (text []byte, name string, err error) {
	positions := token.NewFileSet()
	parsed, err := parser.ParseFile(positions, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, "", err
	}
	v := variants{source: source, cases: map[*ast.FuncDecl]*strings.Builder{}}
	v.at = func(p token.Pos) int { return positions.Position(p).Offset }
	for i, e := range edits {
		if e.File != file {
			continue
		}
		if err := v.add(parsed, e, i+1); err != nil {
			return nil, "", fmt.Errorf("%s: %w", file, err)
		}
	}
	var out bytes.Buffer
	last := 0
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || v.cases[f] == nil {
			continue
		}
		body := v.at(f.Body.Lbrace) + 1
		out.Write(source[last:body])
		fmt.Fprintf(&out, "\n\tswitch mistake__ {%s\n\t}\n", v.cases[f])
		last = body
	}
	out.Write(source[last:])
	out.WriteString(v.end.String())
	return out.Bytes(), parsed.Name.Name, nil
}

// add adds the code for an edit: a variant of the function, or an init function that sets the variable.
func (v *variants) add(file *ast.File, e Edit, number int) error {
	if name, value := variable(file, e, v.at); name != "" {
		fmt.Fprintf(&v.end, "\nfunc init() {\n\tif mistake__ == %d {\n\t\t%s = %s%s%s\n\t}\n}\n", number, name,
			v.source[v.at(value.Pos()):e.Start], e.Text, v.source[e.End:v.at(value.End())])
		return nil
	}
	f := enclosing(file, e, v.at)
	if f == nil {
		return fmt.Errorf("bytes %d to %d are neither in the body of one function nor in the value of one variable", e.Start, e.End)
	}
	call, err := callOf(f, number)
	if err != nil {
		return err
	}
	if v.cases[f] == nil {
		v.cases[f] = &strings.Builder{}
	}
	fmt.Fprintf(v.cases[f], "\n\tcase %d: %s", number, call)
	fmt.Fprintf(&v.end, "\n%s%s%s%s%s\n", v.source[v.at(f.Pos()):v.at(f.Name.End())], suffix(number),
		v.source[v.at(f.Name.End()):e.Start], e.Text, v.source[e.End:v.at(f.End())])
	return nil
}

// variable returns the variable of the package, and its value, if the edit is in the value of a variable.
func variable(file *ast.File, e Edit, at func(token.Pos) int) (string, ast.Expr) {
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, s := range g.Specs {
			spec := s.(*ast.ValueSpec)
			for i, value := range spec.Values {
				if len(spec.Names) == len(spec.Values) && at(value.Pos()) <= e.Start && e.End <= at(value.End()) {
					return spec.Names[i].Name, value
				}
			}
		}
	}
	return "", nil
}

// suffix is appended to the name of a function for its variant.
func suffix(number int) string { return "__" + strconv.Itoa(number) }

// enclosing returns the function whose body has the edit, or nil.
func enclosing(file *ast.File, e Edit, at func(token.Pos) int) *ast.FuncDecl {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if ok && f.Body != nil && at(f.Body.Lbrace) < e.Start && e.End <= at(f.Body.Rbrace) {
			return f
		}
	}
	return nil
}

// callOf returns the statements that call a variant of f and return its results.
func callOf(f *ast.FuncDecl, number int) (string, error) {
	var target string
	if f.Recv != nil {
		names := f.Recv.List[0].Names
		if len(names) == 0 || names[0].Name == "_" {
			return "", fmt.Errorf("the receiver of %s has no name", f.Name.Name)
		}
		target = names[0].Name + "."
	}
	var arguments []string
	for _, field := range f.Type.Params.List {
		if len(field.Names) == 0 {
			return "", fmt.Errorf("a parameter of %s has no name", f.Name.Name)
		}
		for _, name := range field.Names {
			if name.Name == "_" {
				return "", fmt.Errorf("a parameter of %s has no name", f.Name.Name)
			}
			argument := name.Name
			if _, variadic := field.Type.(*ast.Ellipsis); variadic {
				argument += "..."
			}
			arguments = append(arguments, argument)
		}
	}
	call := fmt.Sprintf("%s%s%s(%s)", target, f.Name.Name, suffix(number), strings.Join(arguments, ", "))
	if f.Type.Results == nil {
		return call + "; return", nil
	}
	return "return " + call, nil
}
