package repotest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// layers lists the packages of the root module from the bottom up. A package imports only packages
// of layers above its line in this table, so packages of one layer do not know each other. What a
// lower package needs of a higher one is passed to it as data. A name that ends in "/..." stands
// for all packages below that directory. Tests may import anything.
var layers = [][]string{
	{"codes", "object", "deployment/rollout", "safety/internal/times"},
	{"decision", "store"},
	{"machine", "manager/engine", "store/storetest", "store/record", "lead"},
	{"lead/leadtest"},

	// Decisions on one kind of object.
	{"machineset", "machineclass", "machinepool", "drain", "safety"},
	{"deployment", "machine/fsm", "safety/internal/brake"},
	{
		"driver", "safety/backoff", "safety/orphan", "safety/overshoot", "safety/ownerless",
		"safety/reachability", "safety/replacement", "safety/unmanaged",
	},
	{"machinepool/pooldriver", "driver/conformance", "manager/port", "manager/internal/index", "manager/internal/answer", "manager/internal/bounds"},
	{"driver/drivertest", "manager/internal/pace", "manager/internal/secrets"},
	{"machinepool/pooldriver/pooldrivertest"},

	// The parts of the simulator that know no manager.
	{"sim/history", "sim/preview", "sim/internal/..."},
	{"sim/report"},

	// Reconcilers, which carry decisions out.
	{
		"manager/internal/sets", "manager/internal/deployments", "manager/internal/machines", "manager/internal/pools",
		"manager/internal/classes", "manager/internal/fleet", "manager/drains",
	},
	{"manager"},

	{"sim", "remote"},
	{"remote/remotetest"},
	{"sim/scenario"},
	{"sim/simtest", "sim/cmd/..."},
	{"internal/..."},
	{".", "docs/...", "test/..."},
}

// forbidden lists the packages that a package must not import, directly or not, although its layer or
// its module would allow it.
var forbidden = map[string][]string{
	"driver":                       {"deployment", "machineset", "safety"},
	"manager/internal/sets":        {"driver"},
	"manager/internal/deployments": {"driver"},
	"manager/drains":               {"deployment", "machineset", "driver"},
	"sim/preview":                  {"driver"},
	"sim/report":                   {"driver"},
	"examples/drainplan":           {"store", "driver", "manager/engine", "deployment"},
	"test/kind":                    {"machine"}, // it shows that the engine works with any kind
}

const (
	stateless = "github.com/qmuntal/stateless"
	testify   = "github.com/stretchr/testify"
	rapid     = "pgregory.net/rapid"
	bbolt     = "go.etcd.io/bbolt"
	yaml      = "go.yaml.in/yaml/v3"
	etcd      = "go.etcd.io/etcd"
	grpc      = "google.golang.org/grpc"
	zap       = "go.uber.org/zap" // the logger of etcd's client
	pgx       = "github.com/jackc/pgx/v5"
	age       = "filippo.io/age"
)

// thirdParty lists the directories of the root module that import other modules outside of tests.
var thirdParty = map[string][]string{
	"machine/fsm":       {stateless},
	"store/storetest":   {testify, rapid},
	"lead/leadtest":     {testify},
	"remote/remotetest": {testify},
	"internal/...":      {testify, rapid},
	"test/...":          {testify, rapid},
}

// required lists what the modules may require that users of the library download. A further
// requirement needs a reason that a stranger accepts. Other modules may require what they need, because
// users do not download them.
var required = map[string][]string{
	".":                 {stateless, testify, rapid},
	"adapters/bolt":     {modulePath, bbolt, testify, rapid},
	"adapters/etcd":     {modulePath, etcd + "/api/v3", etcd + "/client/v3", grpc, zap, testify, rapid},
	"adapters/postgres": {modulePath, pgx, testify, rapid},
	"adapters/age":      {modulePath, age, testify},
	"examples":          {modulePath, modulePath + "/adapters/bolt", yaml, testify, rapid},
}

// matches reports whether a pattern of the tables stands for a directory.
func matches(pattern, dir string) bool {
	above, below := strings.CutSuffix(pattern, "/...")
	return dir == above || below && strings.HasPrefix(dir, above+"/")
}

// layerOf returns the index of a directory's layer, and the pattern that stands for it; -1 if none.
func layerOf(dir string) (layer int, pattern string) {
	for i, patterns := range layers {
		for _, p := range patterns {
			if matches(p, dir) {
				return i, p
			}
		}
	}
	return -1, ""
}

// ownDir returns the directory of an imported package of this repository.
func ownDir(imported string) (dir string, ok bool) {
	if imported == modulePath {
		return ".", true
	}
	return strings.CutPrefix(imported, modulePath+"/")
}

// importFaults returns a sentence for each import of a file of the root module that the tables do
// not allow.
func importFaults(dir string, imports []string) (faults []string) {
	layer, pattern := layerOf(dir)
	if layer < 0 {
		return []string{dir + " has no layer: add it to 'layers' in internal/repotest"}
	}
	for _, imported := range imports {
		other, own := ownDir(imported)
		host, _, _ := strings.Cut(imported, "/")
		switch {
		case own:
			if of, p := layerOf(other); of < 0 || of >= layer && p != pattern {
				faults = append(faults, fmt.Sprintf("%s imports %s, which is not in a lower layer", dir, other))
			}
		case strings.Contains(host, "."): // not of the standard library
			if !mayImport(dir, imported) {
				faults = append(faults, fmt.Sprintf("%s imports %s: add it to 'thirdParty' in internal/repotest if a stranger would accept the reason", dir, imported))
			}
		}
	}
	return faults
}

func mayImport(dir, imported string) bool {
	for pattern, modules := range thirdParty {
		if matches(pattern, dir) && slices.ContainsFunc(modules, func(m string) bool { return imported == m || strings.HasPrefix(imported, m+"/") }) {
			return true
		}
	}
	return false
}

// TestImports checks that every package of the root module imports only what its layer may import.
func TestImports(t *testing.T) {
	used := map[string]bool{}
	for _, s := range loadTree(t).sources {
		if s.module != "." {
			continue
		}
		_, pattern := layerOf(s.dir())
		used[pattern] = true
		if s.isTest() {
			continue
		}
		for _, fault := range importFaults(s.dir(), slices.Collect(maps.Keys(s.imports()))) {
			t.Error(fault)
		}
	}
	for _, patterns := range layers {
		for _, p := range patterns {
			if !used[p] {
				t.Errorf("'layers' names %s, which has no Go files", p)
			}
		}
	}
}

// TestForbiddenImports checks the table forbidden. It follows imports through all packages of the
// repository.
func TestForbiddenImports(t *testing.T) {
	imports := map[string]map[string]bool{}
	for _, s := range loadTree(t).sources {
		if s.isTest() {
			continue
		}
		if imports[s.dir()] == nil {
			imports[s.dir()] = map[string]bool{}
		}
		for imported := range s.imports() {
			if other, own := ownDir(imported); own {
				imports[s.dir()][other] = true
			}
		}
	}
	for dir, others := range forbidden {
		if imports[dir] == nil {
			t.Errorf("'forbidden' names %s, which has no Go files", dir)
		}
		reached := reach(imports, dir)
		for _, other := range others {
			if imports[other] == nil {
				t.Errorf("'forbidden' names %s, which has no Go files", other)
			}
			if reached[other] {
				t.Errorf("%s imports %s, directly or not: the table 'forbidden' does not allow it", dir, other)
			}
		}
	}
}

// reach returns the directories that a directory imports, directly or not.
func reach(imports map[string]map[string]bool, from string) map[string]bool {
	reached := map[string]bool{}
	for remaining := []string{from}; len(remaining) > 0; {
		dir := remaining[0]
		remaining = remaining[1:]
		for other := range imports[dir] {
			if !reached[other] {
				reached[other] = true
				remaining = append(remaining, other)
			}
		}
	}
	return reached
}

// TestRequirements checks that the modules require only what the table required allows.
func TestRequirements(t *testing.T) {
	modules := loadTree(t).modules
	for dir, allowed := range required {
		if !slices.Contains(modules, dir) {
			t.Errorf("'required' names %s, which has no go.mod", dir)
			continue
		}
		var mod goMod
		cmd := exec.Command("go", "mod", "edit", "-json", path.Join(dir, "go.mod"))
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v", cmd, err)
		}
		if err := json.Unmarshal(out, &mod); err != nil {
			t.Fatal(err)
		}
		if len(mod.Require) == 0 {
			t.Errorf("%s/go.mod requires nothing", dir)
		}
		for _, fault := range mod.faults(allowed) {
			t.Errorf("%s/go.mod: %s", dir, fault)
		}
	}
	if _, err := os.Stat("go.work"); err == nil {
		t.Error("a go.work pulls the requirements of every module into each build")
	}
}

type goMod struct {
	Require []struct {
		Path     string
		Indirect bool
	}
	Replace []struct{ Old struct{ Path string } }
}

func (m goMod) faults(allowed []string) (faults []string) {
	for _, r := range m.Require {
		if !r.Indirect && !slices.Contains(allowed, r.Path) {
			faults = append(faults, r.Path+" is required: add it to 'required' in internal/repotest if a stranger would accept the reason")
		}
	}
	for _, r := range m.Replace {
		if !strings.HasPrefix(r.Old.Path+"/", modulePath+"/") {
			faults = append(faults, r.Old.Path+" is replaced, and users of the module would not get the replacement")
		}
	}
	return faults
}

// TestImportRules checks importFaults with imports that are refused, and similar ones that are allowed.
func TestImportRules(t *testing.T) {
	for _, c := range []struct {
		dir, imported string
		allowed       bool
	}{
		{"codes", "time", true},
		{"codes", modulePath + "/object", false},
		{"machine", modulePath + "/object", true},
		{"machine", modulePath + "/machineset", false},
		{"machineset", modulePath + "/machineclass", false},
		{"manager/engine", modulePath + "/machine", false},
		{"manager/internal/sets", modulePath + "/manager", false},
		{"manager/internal/sets", modulePath + "/manager/internal/deployments", false},
		{"sim/cmd/soak", modulePath + "/sim", true},
		{"sim/internal/groups", modulePath + "/sim/internal/cluster", true},
		{"manager", modulePath + "/adapters/bolt", false},
		{"machine/fsm", stateless, true},
		{"machine", stateless, false},
		{"store/storetest", testify + "/require", true},
		{"store", testify + "/require", false},
		{"util", "time", false},
	} {
		if allowed := len(importFaults(c.dir, []string{c.imported})) == 0; allowed != c.allowed {
			t.Errorf("%s imports %s: allowed is %t, want %t", c.dir, c.imported, allowed, c.allowed)
		}
	}
}

func TestRequirementRules(t *testing.T) {
	for text, faults := range map[string]int{
		`{"Require":[{"Path":"k8s.io/api"}]}`:                                            1,
		`{"Require":[{"Path":"pgregory.net/rapid"},{"Path":"a.org/b","Indirect":true}]}`: 0,
		`{"Replace":[{"Old":{"Path":"pgregory.net/rapid"}}]}`:                            1,
		`{"Replace":[{"Old":{"Path":"` + modulePath + `"}}]}`:                            0,
	} {
		var mod goMod
		if err := json.Unmarshal([]byte(text), &mod); err != nil {
			t.Fatal(err)
		}
		if got := mod.faults(required["."]); len(got) != faults {
			t.Errorf("%s: %q, want %d", text, got, faults)
		}
	}
}
