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

// options are the values of the flags.
type options struct {
	replicas, from     int // from: -1 means as many as replicas
	surge, unavailable rollout.IntOrPercent
	model              preview.Model
	newTemplate        bool
	minReady           time.Duration
	rows               int
	chart              string
	width              int // of the chart, in pixels
}

// parse reads the flags. A help text goes to out, with flag.ErrHelp.
func parse(args []string, out io.Writer) (*options, error) {
	o := &options{surge: rollout.IntOrPercent{Value: 25, Percent: true}, unavailable: rollout.IntOrPercent{Value: 25, Percent: true}}
	o.model = preview.Model{Create: 90 * time.Second, Delete: 30 * time.Second, Start: fleetCreated.AddDate(0, 1, 0)}
	flags := flag.NewFlagSet("preview", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.IntVar(&o.replicas, "replicas", 10, "how many machines are wanted")
	flags.IntVar(&o.from, "from", -1, "how many `machines` there are before; 0: the deployment is new; -1: as many as wanted")
	flags.BoolVar(&o.newTemplate, "roll", true, "the template is a new one; false: the deployment is only scaled")
	flags.TextVar(&o.surge, "max-surge", o.surge, "how many more than wanted may exist, a number or a `share` such as 20%")
	flags.TextVar(&o.unavailable, "max-unavailable", o.unavailable, "how many of those wanted may be missing, a number or a `share`")
	flags.DurationVar(&o.minReady, "min-ready", 0, "how long a machine must be ready to count as available")
	flags.DurationVar(&o.model.Create, "create", o.model.Create, "how long a machine takes until its node joins")
	flags.DurationVar(&o.model.Delete, "delete", o.model.Delete, "how long the provider takes to delete a VM")
	flags.TextVar(&o.model.Fail, "fail", o.model.Fail, "which creations fail: a `share` such as 5%, or a number n: the first n")
	flags.DurationVar(&o.model.Limit, "limit", 0, "how far to look ahead; 0: 30 days")
	flags.IntVar(&o.rows, "rows", 40, "how many steps the table shows at most; 0: all")
	flags.StringVar(&o.chart, "o", "", "the `file` to write the chart to, as SVG; empty: no chart")
	flags.IntVar(&o.width, "width", 0, "the chart's width, in pixels; 0: 960")
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
	return o, o.check()
}

// longest is the longest -min-ready. The fleet must be older when the preview begins.
const longest = 24 * time.Hour

// check returns an error if a preview can't have these options.
func (o *options) check() error {
	if o.from == -1 {
		o.from = o.replicas
	}
	const maxMachines = preview.MaxMachines
	switch {
	case o.replicas < 0 || o.replicas > maxMachines:
		return fmt.Errorf("-replicas must be from 0 to %d", maxMachines)
	case o.from < 0 || o.from > maxMachines:
		return fmt.Errorf("-from must be from 0 to %d", maxMachines)
	case o.minReady < 0 || o.minReady > longest:
		return fmt.Errorf("-min-ready must be from 0 to %s", longest)
	case o.rows < 0:
		return errors.New("-rows must not be negative")
	}
	return o.model.Validate()
}
