package api_test

import (
	"encoding/csv"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// root is the folder of the repository.
const root = "../../.."

// name is a line of testdata/mcm-names.csv, which describes its columns.
type name struct{ kind, on, name, typ, value, since, until, use, where, why string }

// These are the values of name.use.
const (
	read    = "read"
	written = "written"
	both    = "both"
	kept    = "kept"
	idle    = "not needed"
)

func (n *name) used() bool { return n.use == read || n.use == written || n.use == both }

func (n *name) String() string { return strings.TrimSpace(n.kind + " " + n.on + " " + n.name) }

// table reads the names of some kinds, or of all if none is given.
func table(t *testing.T, kinds ...string) (all []*name) {
	t.Helper()
	file, err := os.Open("testdata/mcm-names.csv")
	require.NoError(t, err)
	defer file.Close()
	lines := csv.NewReader(file)
	lines.Comment = '#'
	rows, err := lines.ReadAll()
	require.NoError(t, err)
	require.Equal(t, []string{"kind", "on", "name", "type", "default", "since", "until", "use", "where", "why"}, rows[0])
	for _, r := range rows[1:] {
		n := &name{r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9]}
		if len(kinds) == 0 || slices.Contains(kinds, n.kind) {
			all = append(all, n)
		}
	}
	require.NotEmpty(t, all)
	return all
}

// literals returns the string literals in the source of this repository, without tests, and their
// files. The gallery is left out, because its strings quote other files.
func literals(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(root, path)
		if err != nil || d.IsDir() {
			if base := d.Name(); base == "testdata" || base == ".git" || inside == filepath.Join("sim", "gallery") {
				return fs.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if l, is := node.(*ast.BasicLit); is && l.Kind == token.STRING {
				text, _ := strconv.Unquote(l.Value)
				found[text] = append(found[text], filepath.ToSlash(inside))
			}
			return true
		})
		return nil
	}))
	return found
}

// No name is in the table twice, each has a use, and a name that is not used has a reason.
func TestEveryNameHasItsUse(t *testing.T) {
	seen := map[string]bool{}
	for _, n := range table(t) {
		assert.False(t, seen[n.String()], "twice in the table: %s", n)
		seen[n.String()] = true
		assert.NotEmpty(t, n.since, n)
		switch n.use {
		case read, written, both:
			assert.NotEmpty(t, n.where, "%s is %s, but the table does not say where", n, n.use)
		case kept, idle:
			assert.Empty(t, n.where, n)
			assert.NotEmpty(t, n.why, "%s is %s, but the table does not say why", n, n.use)
		default:
			assert.Fail(t, "unknown use", "%s: %q", n, n.use)
		}
	}
}

// A name that is read or written is a literal in the source, where the table says. A name of MCM's own
// that is not used is not in the source.
func TestNamesStandInTheSource(t *testing.T) {
	source := literals(t)
	for _, n := range table(t) {
		switch {
		case n.kind == "field" || n.kind == "kind" || n.kind == "flag": // see the tests of these
		case n.used():
			assert.True(t, slices.ContainsFunc(source[n.name], func(file string) bool { return strings.HasPrefix(file, n.where) }),
				"%s is %s in %s, but the source has it in %v", n, n.use, n.where, source[n.name])
		case n.kind == "metric" || established(n.name):
			assert.Empty(t, source[n.name], "%s is %s", n, n.use)
		}
	}
}

// established reports whether a name belongs to a group of names that MCM uses. The cluster
// autoscaler's belong to it only if they are about scaling down.
func established(name string) bool {
	for _, group := range []string{"sapcloud.io", "gardener.cloud", "cluster-autoscaler.kubernetes.io/scale-down", "deployment.kubernetes.io"} {
		if strings.Contains(name, group) {
			return true
		}
	}
	return false
}

// The source has no name from MCM's groups that MCM does not have.
func TestSourceHasNoOtherNames(t *testing.T) {
	known := map[string]bool{}
	for _, n := range table(t) {
		known[n.name] = true
	}
	found := 0
	for text, files := range literals(t) {
		if established(text) {
			found++
			assert.True(t, known[text], "%q in %v is not in the table", text, files)
		}
	}
	require.Greater(t, found, 20)
}
