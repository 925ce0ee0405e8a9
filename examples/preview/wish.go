package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/sim/preview"
)

// wish is what the flags ask for.
type wish struct {
	replicas, from int // -1 means as many as replicas
	surge, lost    rollout.IntOrPercent
	model          preview.Model
	template       bool // a new one
	minReady       time.Duration
	rows           int
	chart          string
	width          int // of the chart
}

// parse reads the flags. A help text goes to out, with flag.ErrHelp.
func parse(args []string, out io.Writer) (*wish, error) {
	w := &wish{surge: rollout.IntOrPercent{Value: 25, Percent: true}, lost: rollout.IntOrPercent{Value: 25, Percent: true}}
	w.model = preview.Model{Create: 90 * time.Second, Delete: 30 * time.Second, Start: born.AddDate(0, 1, 0)}
	flags := flag.NewFlagSet("preview", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.IntVar(&w.replicas, "replicas", 10, "how many machines are wanted")
	flags.IntVar(&w.from, "from", -1, "how many `machines` there are before; 0: the deployment is new; -1: as many as wanted")
	flags.BoolVar(&w.template, "roll", true, "the template is a new one; false: the deployment is only scaled")
	flags.TextVar(&w.surge, "max-surge", w.surge, "how many more than wanted may exist, a number or a `share` such as 20%")
	flags.TextVar(&w.lost, "max-unavailable", w.lost, "how many of those wanted may be missing, a number or a `share`")
	flags.DurationVar(&w.minReady, "min-ready", 0, "how long a machine must be ready to count as available")
	flags.DurationVar(&w.model.Create, "create", w.model.Create, "how long a machine takes until its node joins")
	flags.DurationVar(&w.model.Delete, "delete", w.model.Delete, "how long the provider takes to delete a VM")
	flags.TextVar(&w.model.Fail, "fail", w.model.Fail, "which creations fail, a `share` such as 5%, or a number: the first so many")
	flags.DurationVar(&w.model.Limit, "limit", 0, "how far to look ahead; 0: 30 days")
	flags.IntVar(&w.rows, "rows", 40, "how many steps the table shows at most; 0: all")
	flags.StringVar(&w.chart, "o", "", "the `file` to write the chart to, as SVG; empty: no chart")
	flags.IntVar(&w.width, "width", 0, "the chart's width, in pixels; 0: 960")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(out)
			_, _ = fmt.Fprintln(out, "Preview shows what a rollout will do. Flags:")
			flags.PrintDefaults()
		}
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("there is nothing to be done with %q", strings.Join(flags.Args(), " "))
	}
	return w, w.check()
}

// longest is the longest time that a fleet may have been ready.
const longest = 24 * time.Hour

// check refuses what the flags allow and a preview can't do.
func (w *wish) check() error {
	if w.from == -1 {
		w.from = w.replicas
	}
	const most = preview.MaxMachines
	switch {
	case w.replicas < 0 || w.replicas > most:
		return fmt.Errorf("-replicas must be from 0 to %d", most)
	case w.from < 0 || w.from > most:
		return fmt.Errorf("-from must be from 0 to %d", most)
	case w.minReady < 0 || w.minReady > longest:
		return fmt.Errorf("-min-ready must be from 0 to %s", longest)
	case w.rows < 0:
		return errors.New("-rows must not be negative")
	}
	return w.model.Validate()
}
