// Preview shows what a rollout will do before it begins: each change of a set's size with its reason,
// how long the rollout takes, the fewest available machines, and the most machines at a time.
//
//	go -C examples run ./preview -replicas 50 -max-surge 20% -max-unavailable 0 -create 90s -fail 5% -o $PWD/rollout.svg
//
// It changes nothing, and does not wait. The changes are computed by the reconcilers that run a real
// fleet.
//
// The exit status is 0, 1 if the preview or its output failed, or 2 if the flags make no sense.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/preview"
	"github.com/millwright-go/millwright/sim/report"
)

// These are the exit statuses.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, out, complaints io.Writer) int {
	opts, err := parse(args, out)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return complain(complaints, exitUsage, fmt.Errorf("%w (-h lists the flags)", err))
	}
	web, sets := opts.fleet()
	timeline, err := sim.Preview(context.Background(), web, sets, opts.model)
	if err != nil {
		return complain(complaints, exitFailed, err)
	}
	if err := show(out, &timeline, opts); err != nil {
		return complain(complaints, exitFailed, err)
	}
	return 0
}

// complain prints an error in one line, and returns the exit status.
func complain(w io.Writer, status int, err error) int {
	_, _ = fmt.Fprintln(w, "preview:", err) // there is no other place to report it
	return status
}

// show prints the table and the summary, and writes the chart.
func show(out io.Writer, timeline *preview.Timeline, opts *options) error {
	if err := report.Text(out, timeline, report.TextOptions{Rows: opts.rows}); err != nil {
		return err
	}
	if _, err := fmt.Fprint(out, "\n", report.Summary(timeline)); err != nil {
		return err
	}
	if opts.chart == "" {
		return nil
	}
	file, err := os.Create(opts.chart)
	if err != nil {
		return err
	}
	if err := errors.Join(report.SVG(file, timeline, report.ChartOptions{Width: opts.width}), file.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "chart:", opts.chart)
	return err
}
