package repotest

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// The core are the packages with decisions: the directories in core, without those in notCore. The results
// of its functions depend on their arguments alone: time is an argument, and they do not panic on stored
// data.
var (
	core = []string{
		"codes/...", "object/...", "decision/...", "machine/...", "machineset/...", "machineclass/...", "machinepool/...",
		"deployment/...", "drain/...", "driver/...", "safety/...", "store/...",
	}
	notCore = []string{
		"machine/fsm", "store/storetest", "driver/conformance", "driver/drivertest", "machinepool/pooldriver/pooldrivertest",
	}
	// ports are packages of the core that may import context, because their functions make calls.
	ports = []string{"codes", "driver", "machinepool/pooldriver", "store"}
)

func in(dir string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, dir) })
}

func (s *source) inCore() bool {
	return s.module == "." && !s.isTest() && in(s.dir(), core) && !in(s.dir(), notCore)
}

// impure are packages of the standard library that make a result depend on more than its arguments.
var impure = strings.Fields("math/rand math/rand/v2 crypto/rand hash/maphash log log/slog os os/exec os/signal os/user syscall")

// slogFile may import log/slog, for the interface that hides a secret from logs.
const slogFile = "machine/machine.go"

// TestCoreIsPure keeps clocks, randomness, logs, the environment and panics out of decisions.
func TestCoreIsPure(t *testing.T) {
	checked := 0
	for _, s := range loadTree(t).sources {
		if s.inCore() {
			checked++
			for _, fault := range purityFaults(s) {
				t.Error(fault)
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d files of the core were checked", checked)
	}
}

func purityFaults(s *source) (faults []string) {
	for imported, as := range s.imports() {
		hidesClock := imported == "time" && as == "." // readsClock would not find the calls
		if slices.Contains(impure, imported) && s.path != slogFile || imported == "context" && !in(s.dir(), ports) || hidesClock {
			faults = append(faults, fmt.Sprintf("%s imports %s: a decision depends on its arguments alone", s.path, imported))
		}
	}
	for _, decl := range s.file.Decls {
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if readsClock(s, n) && !(n.Sel.Name == "Now" && takesClock(decl)) {
					faults = append(faults, fmt.Sprintf("%s: time.%s: time is an argument", s.at(n.Pos()), n.Sel.Name))
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "panic" {
					faults = append(faults, s.at(n.Pos())+": panic: return an error, or a plan that says what is wrong")
				}
			}
			return true
		})
	}
	return faults
}

var clocks = strings.Fields("Now Since Until Sleep After AfterFunc Tick NewTimer NewTicker")

func readsClock(s *source, n *ast.SelectorExpr) bool {
	x, ok := n.X.(*ast.Ident)
	return ok && x.Name == s.imports()["time"] && slices.Contains(clocks, n.Sel.Name)
}

// takesClock reports whether a declaration is a constructor with a parameter now. Such a constructor may use
// time.Now if the argument is nil.
func takesClock(decl ast.Decl) bool {
	f, ok := decl.(*ast.FuncDecl)
	return ok && strings.HasPrefix(f.Name.Name, "New") && slices.ContainsFunc(f.Type.Params.List, func(field *ast.Field) bool {
		return slices.ContainsFunc(field.Names, func(n *ast.Ident) bool { return n.Name == "now" })
	})
}

// TestOnePlaceWritesObjects: below manager, only engine.Objects writes objects with phases, because it
// fires their moves. Nodes and secrets have no phases.
func TestOnePlaceWritesObjects(t *testing.T) {
	for _, s := range loadTree(t).sources {
		if matches("manager/...", s.dir()) && !s.isTest() && s.path != "manager/engine/write.go" {
			for _, fault := range writeFaults(s) {
				t.Error(fault)
			}
		}
	}
}

func writeFaults(s *source) (faults []string) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		var receiver string
		switch x := method.X.(type) {
		case *ast.Ident:
			receiver = x.Name
		case *ast.SelectorExpr:
			receiver = x.Sel.Name
		}
		first, _ := call.Args[0].(*ast.Ident)
		update := slices.Contains([]string{"Update", "UpdateStatus"}, method.Sel.Name) && first != nil && first.Name == "ctx"
		if update && !slices.Contains([]string{"nodes", "secrets"}, strings.ToLower(receiver)) || method.Sel.Name == "EditStatus" {
			faults = append(faults, s.at(n.Pos())+": writes an object: use engine.Objects, which fires its moves")
		}
		return true
	})
	return faults
}

// TestNoSleepInTests: tests use virtual time, or wait for a condition.
func TestNoSleepInTests(t *testing.T) {
	for _, s := range loadTree(t).sources {
		if s.isTest() && sleeps(s) {
			t.Errorf("%s calls time.Sleep: use virtual time, or wait for a condition with a deadline", s.path)
		}
	}
}

func sleeps(s *source) (found bool) {
	local, imported := s.imports()["time"]
	ast.Inspect(s.file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok && imported && selector.Sel.Name == "Sleep" {
			x, ok := selector.X.(*ast.Ident)
			found = found || ok && x.Name == local
		}
		return true
	})
	return found
}

// TestExamples: the packages of the core, and those that carry plans out, have an example that runs as a
// test.
func TestExamples(t *testing.T) {
	has := map[string]bool{}
	for _, s := range loadTree(t).sources {
		has[s.dir()] = has[s.dir()] || hasExample(s)
	}
	for dir := range has {
		inTable := in(dir, core) && !in(dir, notCore) || in(dir, []string{"machine/fsm", "manager", "manager/engine"})
		if inTable && !strings.Contains(dir, "internal/") && !has[dir] {
			t.Errorf("%s has no Example with an output", dir)
		}
	}
}

// hasExample reports whether a test file has an example that go test runs: one with an output.
func hasExample(s *source) bool {
	return s.isTest() && slices.ContainsFunc(s.file.Decls, func(decl ast.Decl) bool {
		f, ok := decl.(*ast.FuncDecl)
		return ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Example") && slices.ContainsFunc(s.file.Comments, func(c *ast.CommentGroup) bool {
			output, ok := strings.CutPrefix(c.Text(), "Output:")
			return f.Pos() < c.Pos() && c.End() < f.End() && ok && strings.TrimSpace(output) != ""
		})
	})
}

func TestPurityRules(t *testing.T) {
	const clocked = "package m\nimport \"time\"\nfunc NewX(now func() time.Time) { _ = time.Now }\n"
	for _, c := range []struct {
		path, text string
		faults     int
	}{
		{"machine/a.go", "package m\nimport \"time\"\nvar t = time.Now()\n", 1},
		{"store/a.go", "package m\nimport clock \"time\"\nfunc f() { clock.Sleep(1) }\n", 1},
		{"store/a.go", "package m\nimport . \"time\"\nfunc f() { Sleep(1) }\n", 1},
		{"store/a.go", clocked, 0},
		{"store/a.go", strings.Replace(clocked, "now func() time.Time", "", 1), 1},
		{"machine/a.go", "package m\nimport \"time\"\nvar t = time.Unix(0, 0)\n", 0},
		{"drain/a.go", "package m\nimport _ \"math/rand/v2\"\n", 1},
		{"driver/a.go", "package m\nimport _ `log/slog`\n", 1},
		{"deployment/rollout/a.go", "package m\nimport _ \"context\"\n", 1},
		{"driver/a.go", "package m\nimport _ \"context\"\n", 0},
		{"object/a.go", "package m\nfunc f() { panic(1) }\n", 1},
	} {
		s := parse(t, c.path, c.text)
		if got := purityFaults(s); !s.inCore() || len(got) != c.faults {
			t.Errorf("%s: %q, want %d of\n%s", c.path, got, c.faults, c.text)
		}
	}
	for _, path := range []string{"manager/a.go", "machine/a_test.go", "machine/fsm/a.go"} {
		if parse(t, path, "package m\n").inCore() {
			t.Errorf("%s is in the core", path)
		}
	}
	for text, faults := range map[string]int{
		"p.Machines.UpdateStatus(ctx, m)": 1,
		"machines.Update(ctx, m)":         1,
		"store.EditStatus(ctx, c, k, f)":  1,
		"p.Nodes.UpdateStatus(ctx, n)":    0,
		"driver.Update(request, m)":       0,
		"store.Edit(ctx, c, k, f)":        0,
	} {
		if got := writeFaults(parse(t, "manager/a.go", "package m\nfunc f() { "+text+" }\n")); len(got) != faults {
			t.Errorf("%s: %q, want %d", text, got, faults)
		}
	}
	for text, want := range map[string]bool{
		"import \"time\"\nfunc f() { time.Sleep(1) }": true,
		"import \"time\"\nfunc f() { time.Now() }":    false,
		"func f() { time.Sleep(1) }":                  false,
	} {
		if got := sleeps(parse(t, "machine/a_test.go", "package m\n"+text)); got != want {
			t.Errorf("sleeps is %t, want %t: %s", got, want, text)
		}
	}
	for text, want := range map[string]bool{
		"func ExampleT_f() {\n\tprintln(1)\n\t// Output:\n\t// 1\n}\n":     true,
		"func Example() {\n\tprintln(1)\n}\n":                              false,
		"func Example() {\n\tprintln(1)\n\t// Output:\n}\n":                false,
		"func TestExample() {\n\t// Output:\n\t// 1\n}\n":                  false,
		"func Example() {\n\tprintln(1)\n}\n\n// Output:\n// 1\nvar a int": false,
	} {
		if got := hasExample(parse(t, "m/a_test.go", "package m\n"+text)); got != want {
			t.Errorf("hasExample is %t, want %t: %s", got, want, text)
		}
	}
}
