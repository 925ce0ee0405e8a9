package api_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// page returns the text of docs/how-to/migrating.md.
func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(root + "/docs/how-to/migrating.md")
	require.NoError(t, err)
	return string(text)
}

// quoted returns the texts between backquotes in a line.
func quoted(line string) (all []string) {
	for i, text := range strings.Split(line, "`") {
		if i%2 == 1 {
			all = append(all, text)
		}
	}
	return all
}

// row is MCM's default of a flag, and our counterpart, as the page has them.
type row struct{ defaults, here string }

// rows returns the flags in the page's tables, by MCM's program and the flag's name.
func rows(t *testing.T) map[[2]string]row {
	t.Helper()
	sections := map[string][]string{
		"Of both programs":              {"machine-controller-manager", "machine-controller"},
		"Of machine-controller-manager": {"machine-controller-manager"},
		"Of the machine controller":     {"machine-controller"},
	}
	_, settings, found := strings.Cut(page(t), "\n## Settings\n")
	require.True(t, found)
	settings, _, _ = strings.Cut(settings, "\n## ")
	all := map[[2]string]row{}
	var programs []string
	for line := range strings.Lines(settings) {
		if title, is := strings.CutPrefix(line, "### "); is {
			programs = sections[strings.TrimSpace(title)]
			require.NotEmpty(t, programs, line)
		}
		if !strings.HasPrefix(line, "| `--") {
			continue
		}
		cells := strings.Split(line, "|")
		for _, flag := range quoted(cells[1]) {
			for i, program := range programs {
				value := strings.Trim(cells[2], " `")
				if each := strings.Split(value, " and "); len(each) == len(programs) {
					value = each[i]
				}
				require.NotContains(t, all, [2]string{program, flag}, "the flag has two rows")
				all[[2]string{program, flag}] = row{value, strings.Trim(cells[3], " `")}
			}
		}
	}
	return all
}

// The page has exactly the flags of MCM's two programs, with MCM's default and our counterpart.
func TestPageHasEveryFlag(t *testing.T) {
	have := rows(t)
	for _, n := range table(t, "flag") {
		at := [2]string{n.on, n.name}
		found, there := have[at]
		if assert.True(t, there, "%s has no row", n) {
			assert.Equal(t, row{n.value, n.where}, found, n)
		}
		delete(have, at)
	}
	assert.Empty(t, have, "the page has flags that MCM does not have")
}

// Each name of MCM on the page is a name that MCM has. A name that ends with … stands for all names
// with that prefix.
func TestPageNamesWhatMCMHas(t *testing.T) {
	var known []string
	for _, n := range table(t) {
		known = append(known, n.name)
	}
	found := 0
	for line := range strings.Lines(page(t)) {
		if strings.HasPrefix(line, "    ") { // commands
			continue
		}
		for _, name := range quoted(line) {
			name = strings.TrimSuffix(name, "/v1alpha1")
			if strings.ContainsAny(name, " {") || !established(name) && !strings.HasPrefix(name, "mcm_") {
				continue
			}
			found++
			prefix, abbreviated := strings.CutSuffix(name, "…")
			assert.Condition(t, func() bool {
				for _, k := range known {
					if k == name || abbreviated && strings.HasPrefix(k, prefix) {
						return true
					}
				}
				return false
			}, "%s is not in the table", name)
		}
	}
	require.Greater(t, found, 10)
}
