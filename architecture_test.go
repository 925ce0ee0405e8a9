package millwright_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// row says what one package may reach through its imports, apart from the standard library. In the
// root module that is directly or not, in a nested one directly. Tests are free.
type row struct {
	dir string
	// below: packages under dir follow this row too, unless they have one.
	below bool
	// core: decides or defines; the rules on purity hold.
	core bool
	// context: a core package whose signatures carry a context.
	context bool
	// contextIn: the one file of a package that decides which may take a context. It holds what
	// asks for many decisions in one call, and must end when the caller has had enough.
	contextIn string
	// reaches lists directories of the root module. anything stands for all of them.
	reaches []string
	// modules lists third-party modules.
	modules []string
}

const (
	stateless = "github.com/qmuntal/stateless"
	bbolt     = "go.etcd.io/bbolt"
	rapid     = "pgregory.net/rapid"
	testify   = "github.com/stretchr/testify"
	xsys      = "golang.org/x/sys"
	yaml      = "go.yaml.in/yaml/v3"
)

// testingModules are what a conformance suite may import.
var testingModules = []string{
	testify, rapid, "github.com/stretchr/objx", "github.com/davecgh/go-spew",
	"github.com/pmezard/go-difflib", yaml, "gopkg.in/yaml.v3",
}

const anything = "..."

var (
	kinds  = []string{"codes", "object", "decision", "machine", "machineset", "deployment", "deployment/rollout", "machinepool", "machineclass"}
	core   = slices.Concat(braked, subjects, []string{"drain", "driver", "machinepool/pooldriver", "store"})
	shells = append(slices.Clone(core), "machine/fsm", "manager")

	// subjects are the packages below safety, and subject is what each of them stands on. None of
	// them reaches another one.
	subjects = []string{
		"safety/backoff", "safety/orphan", "safety/overshoot", "safety/ownerless", "safety/reachability", "safety/replacement", "safety/unmanaged",
	}
	subject = append(slices.Clone(kinds), "safety", "safety/internal/times")
	// braked is what a subject stands on that limits how many go within a period.
	braked = append(slices.Clone(subject), "safety/internal/brake")

	// kindsRest is what the reconcilers of one kind stand on. None of them reaches another kind's.
	kindsRest = append(slices.Clone(subject), "safety/overshoot", "store", "manager/engine", "manager/internal/bounds", "manager/internal/index")
)

// architecture is the import table: every directory with Go files in the modules of requirable has
// its row here. What a lower package needs from a higher one enters it as data.
var architecture = []row{
	{dir: "."},

	{dir: "codes", core: true, context: true},
	{dir: "object", core: true},
	{dir: "decision", core: true, reaches: []string{"codes", "object"}},
	{dir: "deployment/rollout", core: true},
	{dir: "machine", core: true, reaches: []string{"decision", "codes", "object"}},
	{dir: "machineset", core: true, reaches: []string{"machine", "decision", "codes", "object"}},
	{dir: "deployment", core: true, reaches: []string{"deployment/rollout", "machineset", "machine", "decision", "codes", "object"}},
	{dir: "machineclass", core: true, reaches: []string{"machine", "decision", "codes", "object"}},
	{dir: "machinepool", core: true, reaches: []string{"deployment/rollout", "machine", "decision", "codes", "object"}},
	{dir: "drain", core: true, reaches: []string{"machine", "decision", "codes", "object"}},
	{dir: "driver", core: true, context: true, reaches: []string{"machine", "drain", "decision", "codes", "object"}},
	{dir: "machinepool/pooldriver", core: true, context: true, reaches: []string{"machinepool", "deployment/rollout", "driver", "machine", "drain", "decision", "codes", "object"}},
	{dir: "safety", core: true, reaches: []string{"deployment/rollout", "machine", "decision", "codes", "object"}},
	{dir: "safety/internal/times", core: true},
	{dir: "safety/internal/brake", core: true, reaches: []string{"safety", "safety/internal/times", "deployment/rollout", "machine", "decision", "codes", "object"}},
	{dir: "safety/backoff", core: true, reaches: subject},
	{dir: "safety/orphan", core: true, reaches: braked},
	{dir: "safety/overshoot", core: true, reaches: subject},
	{dir: "safety/ownerless", core: true, reaches: braked},
	{dir: "safety/reachability", core: true, reaches: subject},
	{dir: "safety/replacement", core: true, reaches: braked},
	{dir: "safety/unmanaged", core: true, reaches: subject},
	{dir: "store", core: true, context: true, reaches: []string{"object"}},

	{dir: "machine/fsm", reaches: kinds, modules: []string{stateless}},
	{dir: "store/storetest", reaches: []string{"store", "object"}, modules: testingModules},
	{
		dir:     "driver/drivertest",
		reaches: []string{"driver/conformance", "driver", "machine", "drain", "decision", "codes", "object"},
		modules: testingModules,
	},

	{dir: "driver/conformance", reaches: []string{"driver", "machine", "drain", "decision", "codes", "object"}, modules: testingModules},
	{
		dir: "machinepool/pooldriver/pooldrivertest",
		reaches: []string{
			"machinepool/pooldriver", "machinepool", "deployment/rollout", "driver/drivertest", "driver/conformance", "driver", "machine", "drain", "decision", "codes", "object",
		},
		modules: testingModules,
	},

	{dir: "manager/engine", reaches: []string{"store", "decision", "codes", "object"}},
	{dir: "manager/internal/index", reaches: append(slices.Clone(kinds), "store")},
	{dir: "manager/internal/secrets", reaches: append(slices.Clone(kinds), "store", "manager/internal/index")},
	{dir: "manager/internal/pace", reaches: append(slices.Clone(subject), "store", "safety/backoff", "manager/internal/index")},
	{dir: "manager/internal/bounds", reaches: append(slices.Clone(subject), "safety/overshoot", "store", "manager/engine")},
	{dir: "manager/sets", reaches: kindsRest},
	{dir: "manager/deployments", reaches: append(slices.Clone(kindsRest), "manager/internal/secrets")},
	{
		dir:     "manager/pools",
		reaches: append(slices.Clone(kindsRest), "driver", "drain", "machinepool/pooldriver", "manager/internal/answer", "manager/internal/secrets", "safety/backoff", "manager/internal/pace"),
	},
	{
		dir: "manager/fleet",
		reaches: append(
			slices.Clone(kindsRest), "safety/orphan", "safety/ownerless", "safety/reachability", "safety/unmanaged", "safety/internal/brake",
			"driver", "drain", "machinepool/pooldriver", "manager/internal/answer", "manager/internal/secrets",
			"safety/backoff", "manager/internal/pace",
		),
	},
	{
		dir: "manager/machines",
		reaches: append(
			slices.Clone(kindsRest), "safety/backoff", "safety/orphan", "safety/replacement", "safety/internal/brake",
			"driver", "drain", "manager/internal/answer", "manager/internal/secrets", "manager/internal/pace",
		),
	},
	{dir: "manager/drains", reaches: []string{"manager/engine", "drain", "store", "machine", "decision", "codes", "object"}},
	{dir: "manager/internal/answer", reaches: []string{"machine", "decision", "codes", "object"}},
	{dir: "manager/classes", reaches: append(slices.Clone(kindsRest), "driver", "drain", "manager/internal/secrets")},
	{dir: "manager", below: true, reaches: shells, modules: []string{stateless}},
	{dir: "sim", below: true, reaches: append(slices.Clone(shells), "driver/drivertest", "driver/conformance"), modules: []string{stateless, rapid}},
	{dir: "sim/history"},
	{dir: "sim/internal/clock"},
	{dir: "sim/internal/cluster", reaches: []string{"drain", "machine", "decision", "codes", "object"}},
	{dir: "sim/internal/groups", reaches: []string{"machinepool/pooldriver", "machinepool", "deployment/rollout", "driver/drivertest", "driver/conformance", "driver", "drain", "machine", "decision", "codes", "object"}},
	{dir: "sim/preview", reaches: []string{"safety", "deployment", "deployment/rollout", "machineset", "machine", "decision", "codes", "object"}},
	{dir: "sim/report", reaches: []string{"sim/history", "sim/preview", "safety", "deployment", "deployment/rollout", "machineset", "machine", "decision", "codes", "object"}},
	{dir: "adapters/bolt", below: true, reaches: shells, modules: []string{bbolt}},
	{dir: "examples", below: true, reaches: []string{anything}},
	{dir: "examples/drainplan", reaches: []string{"drain", "machine", "decision", "codes", "object"}, modules: []string{yaml}},
	{dir: "docs", below: true, reaches: []string{anything}, modules: []string{stateless}},
	// A kind of somebody else's needs no more than this.
	{dir: "test/kind", reaches: []string{"manager/engine", "store", "decision", "codes", "object"}},
	{dir: "internal/testkit", modules: testingModules},
	{dir: "test", below: true, reaches: []string{anything}, modules: append(slices.Clone(testingModules), stateless)},
}

// rowOf returns the row for a directory: its own, or the nearest one above that covers what is
// below it.
func rowOf(dir string) *row {
	for at := dir; ; at = path.Dir(at) {
		for i := range architecture {
			if r := &architecture[i]; r.dir == at && (at == dir || r.below) {
				return r
			}
		}
		if at == "." {
			return nil
		}
	}
}

// allows reports whether a package in dir may reach the directory other.
func (r *row) allows(dir, other string) bool {
	if dir == other || slices.Contains(r.reaches, anything) || slices.Contains(r.reaches, other) {
		return true
	}
	if slices.Contains(r.reaches, "manager") && strings.HasPrefix(other, "manager/") {
		return true // what it is composed of
	}
	return r.below && (other == r.dir || strings.HasPrefix(other, r.dir+"/"))
}

// TestEveryPackageHasARow: a new package can't escape the import rules.
func TestEveryPackageHasARow(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range loadTree(t).sources {
		if requirable[s.module] == nil || seen[s.dir()] {
			continue
		}
		seen[s.dir()] = true
		if rowOf(s.dir()) == nil {
			t.Errorf("%s is a new package directory without import rules: add it to the table 'architecture' in architecture_test.go, with what it may reach", s.dir())
		}
	}
}

// TestNothingReachesUpwards: a table that lets a package import another must let it import all that
// the other imports, and never the reverse.
func TestNothingReachesUpwards(t *testing.T) {
	for _, r := range architecture {
		for _, other := range r.reaches {
			if other == anything {
				continue
			}
			o := rowOf(other)
			if o == nil {
				t.Errorf("%s may reach %s, which has no row", r.dir, other)
				continue
			}
			if other != r.dir && o.allows(other, r.dir) {
				t.Errorf("%s and %s may reach each other", r.dir, other)
			}
			for _, further := range o.reaches {
				if !r.allows(r.dir, further) {
					t.Errorf("%s may reach %s, but not %s, which that may reach", r.dir, other, further)
				}
			}
		}
	}
}

// listed is what the go command says about a package.
type listed struct {
	ImportPath string
	Standard   bool
	Module     *struct{ Path string }
	Deps       []string
	Error      *struct{ Err string }
}

// TestImports checks every package of the root module against its row, on both systems that the
// library supports.
func TestImports(t *testing.T) {
	for _, system := range []string{"linux", "darwin"} {
		t.Run(system, func(t *testing.T) {
			packages := goList(t, system)
			checked := 0
			for _, p := range packages {
				if p.Error != nil {
					t.Errorf("%s cannot be loaded: %s", p.ImportPath, p.Error.Err)
				}
				dir, ours := ownDir(p)
				if !ours {
					continue
				}
				checked++
				r := rowOf(dir)
				if r == nil {
					continue // TestEveryPackageHasARow says it
				}
				for _, fault := range r.faults(dir, p.Deps, packages) {
					t.Error(fault)
				}
			}
			if checked == 0 {
				t.Error("go list named no package of this module")
			}
		})
	}
}

// TestNestedImports holds every package of the nested modules of requirable to its row. It reads the
// files and does not ask go list, which would download what those modules require. What an import
// of ours reaches in turn is in the row too: see TestNothingReachesUpwards.
func TestNestedImports(t *testing.T) {
	checked := map[string]int{}
	for _, s := range loadTree(t).sources {
		r := rowOf(s.dir())
		if s.module == "." || requirable[s.module] == nil || s.test() || r == nil {
			continue
		}
		checked[s.module]++
		for _, fault := range r.importFaults(s) {
			t.Error(fault)
		}
	}
	for module := range requirable {
		if module != "." && checked[module] == 0 {
			t.Errorf("no file of module %s was checked", module)
		}
	}
}

// importFaults lists which imports of a file its row does not allow.
func (r *row) importFaults(s *source) []string {
	packages := map[string]*listed{}
	for imported := range s.imports() {
		first, _, _ := strings.Cut(imported, "/")
		p := &listed{ImportPath: imported, Standard: !strings.Contains(first, ".")}
		for _, m := range r.modules {
			if imported == m || strings.HasPrefix(imported, m+"/") {
				p.Module = &struct{ Path string }{m}
			}
		}
		packages[imported] = p
	}
	return r.faults(s.dir(), slices.Sorted(maps.Keys(packages)), packages)
}

// faults lists which of a package's dependencies its row does not allow.
func (r *row) faults(dir string, deps []string, packages map[string]*listed) []string {
	var found []string
	for _, dep := range deps {
		d := packages[dep]
		if d == nil || d.Standard {
			continue
		}
		if other, ours := ownDir(d); ours {
			if !r.allows(dir, other) {
				found = append(found, fmt.Sprintf("%s reaches %s, which its row in architecture_test.go does not allow", dir, other))
			}
			continue
		}
		if d.Module == nil || !slices.Contains(r.modules, d.Module.Path) {
			found = append(found, fmt.Sprintf("%s reaches %s, a third-party package which its row in architecture_test.go does not allow", dir, dep))
		}
	}
	return found
}

// ownDir is the directory of a package of the root module, or of one whose module is not known.
func ownDir(p *listed) (dir string, ours bool) {
	if p.ImportPath == modulePath {
		return ".", true
	}
	dir, under := strings.CutPrefix(p.ImportPath, modulePath+"/")
	return dir, under && (p.Module == nil || p.Module.Path == modulePath)
}

// goList loads the packages of the root module and all they depend on.
func goList(t *testing.T, system string) map[string]*listed {
	t.Helper()
	t.Setenv("GOOS", system)
	out := goCommand(t, "list", "-e", "-deps", "-json=ImportPath,Standard,Module,Deps,Error", "./...")
	packages := map[string]*listed{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		p := &listed{}
		err := decoder.Decode(p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		if err != nil {
			t.Fatalf("output of go list: %v", err)
		}
		packages[p.ImportPath] = p
	}
}

func goCommand(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return out
}

// requirable are the modules that each go.mod may require directly, by its directory. Another one
// needs a reason a stranger accepts.
var requirable = map[string][]string{
	".":             {stateless, testify, rapid},
	"adapters/bolt": {modulePath, bbolt, testify, rapid},
	"examples":      {modulePath, modulePath + "/adapters/bolt", yaml, testify, rapid},
	"test/kind":     {modulePath, testify},
}

// unbounded are the other modules: what they require reaches no user of the ones above.
var unbounded = []string{"adapters/kubernetes", "adapters/kubernetes/tools", "test/kubelab", "tools"}

// indirect are the modules that the requirements of the root module bring along.
var indirect = []string{yaml}

type goMod struct {
	Require []struct {
		Path     string
		Indirect bool
	}
	Replace []struct{ Old struct{ Path string } }
	Tool    []struct{ Path string }
}

// faults lists what the go.mod in a directory must not say.
func (m *goMod) faults(dir string) []string {
	var found []string
	for _, r := range m.Require {
		switch {
		case strings.HasPrefix(r.Path, "k8s.io/"), strings.HasPrefix(r.Path, "sigs.k8s.io/"):
			found = append(found, r.Path+" is required: Kubernetes belongs into adapters/kubernetes/go.mod")
		case !r.Indirect && !slices.Contains(requirable[dir], r.Path):
			found = append(found, r.Path+" is required directly and not among 'requirable' in architecture_test.go")
		case r.Indirect && dir == "." && !slices.Contains(indirect, r.Path):
			found = append(found, r.Path+" is required indirectly and not among 'indirect' in architecture_test.go")
		}
	}
	for _, r := range m.Replace {
		if dir == "." || !strings.HasPrefix(r.Old.Path+"/", modulePath+"/") {
			found = append(found, r.Old.Path+" is replaced: users of the module would not get the replacement")
		}
	}
	for _, r := range m.Tool {
		found = append(found, r.Path+" is a tool: it belongs into tools/go.mod")
	}
	return found
}

// TestModules holds each go.mod to what it may require.
func TestModules(t *testing.T) {
	tree := loadTree(t)
	for _, dir := range tree.modules {
		if requirable[dir] == nil {
			if !slices.Contains(unbounded, dir) {
				t.Errorf("%s is a new module: add it to 'requirable' in architecture_test.go, with what it may require", dir)
			}
			continue
		}
		var mod goMod
		file := path.Join(dir, "go.mod")
		if err := json.Unmarshal(goCommand(t, "mod", "edit", "-json", file), &mod); err != nil {
			t.Fatal(err)
		}
		if len(mod.Require) == 0 {
			t.Errorf("no requirement found in %s", file)
		}
		for _, fault := range mod.faults(dir) {
			t.Errorf("%s: %s", file, fault)
		}
	}
	for dir := range requirable {
		if !slices.Contains(tree.modules, dir) {
			t.Errorf("%s has no go.mod", dir)
		}
	}
	for _, file := range tree.goWork {
		t.Errorf("%s: no go.work; it would pull the dependencies of every module into the first build", file)
	}
}

func TestModuleRulesBite(t *testing.T) {
	for _, c := range []struct{ dir, text, want string }{
		{".", `{"Require":[{"Path":"k8s.io/api","Indirect":true}]}`, "Kubernetes"},
		{".", `{"Require":[{"Path":"sigs.k8s.io/yaml"}]}`, "Kubernetes"},
		{"examples", `{"Require":[{"Path":"k8s.io/api","Indirect":true}]}`, "Kubernetes"},
		{".", `{"Require":[{"Path":"github.com/google/uuid"}]}`, "not among 'requirable'"},
		{".", `{"Require":[{"Path":"go.etcd.io/bbolt"}]}`, "not among 'requirable'"},
		{".", `{"Require":[{"Path":"go.yaml.in/yaml/v3"}]}`, "not among 'requirable'"},
		{".", `{"Require":[{"Path":"golang.org/x/sys","Indirect":true}]}`, "not among 'indirect'"},
		{"adapters/bolt", `{"Require":[{"Path":"golang.org/x/term"}]}`, "not among 'requirable'"},
		{".", `{"Replace":[{"Old":{"Path":"pgregory.net/rapid"}}]}`, "replaced"},
		{"adapters/bolt", `{"Replace":[{"Old":{"Path":"go.etcd.io/bbolt"}}]}`, "replaced"},
		{"examples", `{"Tool":[{"Path":"example.com/lint"}]}`, "tools/go.mod"},

		{".", `{"Require":[{"Path":"pgregory.net/rapid"},{"Path":"go.yaml.in/yaml/v3","Indirect":true}]}`, ""},
		{"adapters/bolt", `{"Require":[{"Path":"go.etcd.io/bbolt"},{"Path":"golang.org/x/sys","Indirect":true}]}`, ""},
		{"examples", `{"Replace":[{"Old":{"Path":"github.com/millwright-go/millwright/adapters/bolt"}}]}`, ""},
	} {
		var mod goMod
		if err := json.Unmarshal([]byte(c.text), &mod); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(mod.faults(c.dir), "; "); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%s, %s: got %q, want %q", c.dir, c.text, got, c.want)
		}
	}
}

func TestNestedImportRulesBite(t *testing.T) {
	for _, c := range []struct {
		dir, imported string
		allowed       bool
	}{
		{"adapters/bolt", "os", true},
		{"adapters/bolt", bbolt + "/errors", true},
		{"adapters/bolt", xsys + "/unix", false},
		{"adapters/bolt", modulePath + "/manager", true},
		{"adapters/bolt", modulePath + "/sim", false},
		{"adapters/bolt", modulePath + "/examples/pool", false},
		{"examples/quickstart", modulePath + "/sim", true},
		{"examples/quickstart", modulePath + "/adapters/bolt", true},
		{"examples/quickstart", xsys + "/unix", false},
		{"examples/quickstart", yaml, false},
		{"examples/quickstart", "k8s.io/api/core/v1", false},
		{"test/kind", modulePath + "/manager/engine", true},
		{"test/kind", modulePath + "/manager", false},
		{"examples/drainplan", yaml, true},
		{"examples/drainplan", modulePath + "/manager", false},
	} {
		s, err := parseSource(c.dir+"/a.go", "", fmt.Sprintf("package a\nimport _ %q\n", c.imported))
		if err != nil {
			t.Fatal(err)
		}
		if allowed := len(rowOf(c.dir).importFaults(s)) == 0; allowed != c.allowed {
			t.Errorf("%s imports %s: allowed is %t, want %t", c.dir, c.imported, allowed, c.allowed)
		}
	}
}

func TestImportRulesBite(t *testing.T) {
	packages := map[string]*listed{}
	for _, dir := range append(slices.Clone(shells), "sim", "store/storetest", "manager/engine", "manager/sets", "manager/deployments") {
		packages[dir] = &listed{ImportPath: modulePath + "/" + dir}
	}
	packages["time"] = &listed{ImportPath: "time", Standard: true}
	for _, third := range []string{stateless, bbolt, "k8s.io/api"} {
		packages[third] = &listed{ImportPath: third, Module: &struct{ Path string }{third}}
	}
	for _, c := range []struct {
		dir, dep string
		allowed  bool
	}{
		{"codes", "time", true},
		{"codes", "object", false},
		{"object", "codes", false},
		{"deployment/rollout", "object", false},
		{"machine", "object", true},
		{"machine", "machineset", false},
		{"machine", "machine/fsm", false},
		{"machineset", "machine", true},
		{"machineset", "deployment", false},
		{"deployment", "deployment/rollout", true},
		{"deployment", "drain", false},
		{"drain", "machineset", false},
		{"machinepool", "machine", true},
		{"driver", "drain", true},
		{"driver", "store", false},
		{"driver", "machinepool", false},
		{"machinepool", "machinepool/pooldriver", false},
		{"machinepool/pooldriver", "driver", true},
		{"safety", "machine", true},
		{"safety", "deployment", false},
		{"safety", "safety/orphan", false},
		{"safety/overshoot", "deployment", true},
		{"safety/overshoot", "safety", true},
		{"safety/overshoot", "safety/orphan", false},
		{"safety/orphan", "safety/internal/brake", true},
		{"safety/orphan", "driver", false},
		{"store", "object", true},
		{"store", "machine", false},
		{"store", "store/storetest", false},
		{"machine/fsm", stateless, true},
		{"machine", stateless, false},
		{"manager", "machine/fsm", true},
		{"manager", stateless, true},
		{"manager", bbolt, false},
		{"manager", "sim", false},
		{"manager/engine", "store", true},
		{"manager/engine", "machine", false},
		{"manager/engine", "manager", false},
		{"manager/sets", "manager/engine", true},
		{"manager/sets", "manager", false},
		{"manager/sets", "manager/deployments", false},
		{"manager/sets", "driver", false},
		{"sim", "manager/sets", true},
		{"sim/fault", "sim", true},
		{"sim/report", "deployment", true},
		{"sim/report", "sim", false},
		{"sim/report", "manager", false},
		{"sim/report", stateless, false},
		{"sim", bbolt, false},
	} {
		r := rowOf(c.dir)
		if r == nil {
			t.Errorf("%s has no row", c.dir)
			continue
		}
		if allowed := len(r.faults(c.dir, []string{c.dep}, packages)) == 0; allowed != c.allowed {
			t.Errorf("%s reaches %s: allowed is %t, want %t", c.dir, c.dep, allowed, c.allowed)
		}
	}
	for _, dir := range []string{"util", "machine/extra", "adapters/other", "internal/thing", "cmd"} {
		if rowOf(dir) != nil {
			t.Errorf("%s has a row; a new directory must be added by hand", dir)
		}
	}
}
