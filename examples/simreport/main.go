// Simreport rolls a fleet in a simulated world with many faults, and reports the run as text and as
// a page for a browser.
//
//	go -C examples run ./simreport -machines 20 -seed 7 -html $PWD/rollout.html
//
// The exit status is 0, 1 if the fleet did not converge or a file could not be written, or 2 if the
// flags make no sense.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/millwright-go/millwright/sim/history"
	"github.com/millwright-go/millwright/sim/report"
)

// These are the exit statuses.
const (
	exitFailed = 1
	exitUsage  = 2
)

// options are the values of the flags.
type options struct {
	machines int
	seed     uint64
	html     string
	svg      string
	width    int // of the chart, in pixels
	rows     int
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, out, complaints io.Writer) int {
	opts, err := parse(args, out)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return complain(complaints, exitUsage, fmt.Errorf("%w (-h lists the flags)", err))
	}
	h, failed := opts.simulate()
	if h == nil {
		return complain(complaints, exitFailed, failed)
	}
	if err := errors.Join(failed, opts.show(out, h)); err != nil {
		return complain(complaints, exitFailed, err)
	}
	return 0
}

// complain prints an error, and returns the exit status.
func complain(w io.Writer, status int, err error) int {
	_, _ = fmt.Fprintln(w, "simreport:", err) // there is no other place to report it
	return status
}

// parse reads the flags. If help is asked for, it prints the help to out and returns flag.ErrHelp.
func parse(args []string, out io.Writer) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("simreport", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.IntVar(&o.machines, "machines", 20, "how many machines the fleet has, from 1 to 500")
	flags.Uint64Var(&o.seed, "seed", 7, "the seed of all random choices")
	flags.StringVar(&o.html, "html", "", "the `file` to write a page to; empty: no page")
	flags.StringVar(&o.svg, "svg", "", "the `file` to write the chart alone to; empty: none")
	flags.IntVar(&o.width, "width", 0, "the width of the chart alone, in pixels; 0: 960")
	flags.IntVar(&o.rows, "rows", 40, "about how many rows the table has")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(out)
			_, _ = fmt.Fprintln(out, "Simreport rolls a simulated fleet and reports how it went. Flags:")
			flags.PrintDefaults()
		}
		return nil, err
	}
	switch {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("there is nothing to be done with %q", flags.Arg(0))
	case o.machines < 1 || o.machines > 500:
		return nil, fmt.Errorf("%d machines are not from 1 to 500", o.machines)
	case o.rows < 1:
		return nil, fmt.Errorf("%d rows are no table", o.rows)
	}
	return o, nil
}

// show prints the table, and writes the files that the flags ask for.
func (opts *options) show(out io.Writer, h *history.History) error {
	if err := report.HistoryText(out, h, report.TextOptions{Rows: opts.rows}); err != nil {
		return err
	}
	title := fmt.Sprintf("%d machines, while much goes wrong", opts.machines)
	return errors.Join(
		write(out, "page", opts.html, func(w io.Writer) error { return report.HTML(w, h, report.PageOptions{Title: title, Rows: opts.rows}) }),
		write(out, "chart", opts.svg, func(w io.Writer) error {
			return report.HistorySVG(w, h, report.ChartOptions{Title: title, Width: opts.width})
		}),
	)
}

// write writes a file, and prints its name. An empty name means no file.
func write(out io.Writer, what, name string, content func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := errors.Join(content(file), file.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, what+":", name)
	return err
}
