// Command bolt-salvage copies what can be read from a damaged store to a new one.
//
//	bolt-salvage FILE NEW-FILE
//
// docs/how-to/bolt.md says when to use it.
package main

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/millwright-go/millwright/adapters/bolt"
)

const usage = `usage: bolt-salvage FILE NEW-FILE

Copies every object that can be read from FILE, a damaged store of millwright, to NEW-FILE, and
prints what it left out. FILE is not changed. NEW-FILE must not exist yet. It holds all secrets in clear.
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run returns the exit status: 0 if there is a new file, even if it lacks objects; 1 if there is none; 2
// if the arguments are wrong.
func run(args []string, out, errors io.Writer) int {
	flags := flag.NewFlagSet("bolt-salvage", flag.ContinueOnError)
	flags.SetOutput(errors)
	flags.Usage = func() { _, _ = io.WriteString(errors, usage) }
	if err := flags.Parse(args); err != nil || flags.NArg() != 2 {
		if err == nil {
			flags.Usage()
		}
		return 2
	}
	exported, err := bolt.Salvage(flags.Arg(0), flags.Arg(1))
	for _, damage := range exported.Damaged {
		_, _ = fmt.Fprintln(out, "left out:", damage)
	}
	if err != nil {
		_, _ = fmt.Fprintln(errors, "bolt-salvage:", err)
		return 1
	}
	for _, kind := range slices.Sorted(maps.Keys(exported.Objects)) {
		_, _ = fmt.Fprintln(out, "copied:", exported.Objects[kind], "of kind", kind)
	}
	return 0
}
