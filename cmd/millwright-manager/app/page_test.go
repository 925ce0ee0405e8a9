package app

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/internal/testkit"
)

// pageName is the file that documents all settings.
const pageName = "../../../docs/reference/settings.md"

// TestPage: the page is up to date. -update writes it.
func TestPage(t *testing.T) {
	r, err := newReading(&Program{Name: "millwright-manager"}, nil, io.Discard)
	require.NoError(t, err)
	testkit.Golden(t, pageName, page(r))
}

// page returns the page: a table of settings for each group.
func page(r *reading) string {
	var b strings.Builder
	b.WriteString(`# Settings of a manager on Kubernetes

<!-- Written by go test ./app -run TestPage -update in cmd/millwright-manager. -->

Each setting is a flag (` + "`--machine-drain-timeout=1h`" + `), an environment variable
(` + "`MILLWRIGHT_MACHINE_DRAIN_TIMEOUT=1h`" + `) and a key of the YAML file that the setting
` + "`config`" + ` names (` + "`machine-drain-timeout: 1h`" + `). A flag wins over a variable, a
variable over the file, the file over the default. Lists are divided by commas;
in the file they may be lists. Durations are written as ` + "`1h30m`" + `.

A setting that can't work ends the program at once, with status 2 and one line
that names it and says where it comes from. An unknown flag and an unknown key of
the file are such mistakes; an unknown variable is a warning, since Kubernetes
sets variables for services. A provider may have settings of its own: ` + "`--help`" + `
lists those too.

Variables that begin with ` + "`MC_`" + ` are reserved by the driver contract for what it may define. None is read here,
and a provider must not use the prefix for settings of its own: ours begin with ` + "`MILLWRIGHT_`" + `.
`)
	group := ""
	for _, flag := range r.parser.Model.Flags {
		if flag.Name == "help" || flag.Name == "version" {
			continue
		}
		title := "The file"
		if flag.Group != nil {
			title = flag.Group.Title
		}
		if title != group {
			group = title
			fmt.Fprintf(&b, "\n## %s\n\n| Setting | Default | |\n| --- | --- | --- |\n", title)
		}
		value := "`" + flag.Default + "`"
		switch {
		case flag.IsBool() && !flag.HasDefault:
			value = "`false`"
		case flag.Default == "":
			value = ""
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", flag.Name, value, strings.ReplaceAll(strings.ReplaceAll(flag.Help, "<", "&lt;"), "|", `\|`))
	}
	return b.String()
}
