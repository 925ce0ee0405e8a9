package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/scenario"
)

// summary prints what has happened in all scenarios together.
func summary(out io.Writer, s *settings, t *tally, took time.Duration) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(what string, n any) { _, _ = fmt.Fprintf(w, "%s\t%v\t\n", what, n) }
	line("first seed", s.seed)
	line("scenarios", t.scenarios)
	line("seconds", fmt.Sprintf("%.0f", took.Seconds()))
	line("steps", t.stats.Steps)
	line("passes", t.stats.Passes)
	line("calls to the provider", sum(t.stats.Calls))
	line("codes it refused them with", codesOf(&t.stats))
	line("calls about groups", sum(t.stats.PoolCalls))
	for _, call := range machinepool.Calls() {
		line(call.String(), t.stats.PoolCalls[call])
	}
	line("codes they were refused with", poolCodes(&t.stats))
	line("VMs collected", t.stats.Collected)
	for f := range sim.AllFaults() {
		line(f.String(), t.stats.Faults[f])
	}
	for _, action := range slices.Sorted(maps.Keys(t.stats.Actions)) {
		line("step: "+string(action), t.stats.Actions[action])
	}
	line("kills", t.stats.Kills())
	line("violations", t.violated)
	return w.Flush()
}

func sum[C comparable](calls map[C]int) (n int) {
	for _, of := range calls {
		n += of
	}
	return n
}

// poolCodes returns the same as codesOf for calls about groups.
func poolCodes(s *sim.Stats) string {
	seen := map[codes.Code]bool{}
	for r := range s.PoolRefusals {
		seen[r.Code] = true
	}
	return pairs(len(seen), len(s.PoolRefusals))
}

func pairs(codes, calls int) string { return fmt.Sprintf("%d, in %d pairs with calls", codes, calls) }

// codesOf returns in words with how many codes calls were refused, and how many pairs of call and code
// occurred.
func codesOf(s *sim.Stats) string {
	seen := map[codes.Code]bool{}
	for r := range s.Refusals {
		seen[r.Code] = true
	}
	return pairs(len(seen), len(s.Refusals))
}

// explain makes a failed scenario smaller, writes it to a file, and prints what happens in it.
func (s *settings) explain(out, errs io.Writer, t *tally) error {
	_, _ = fmt.Fprintf(out, "\nviolated: %v\n", t.violation)
	_, _ = fmt.Fprintln(errs, "looking for a smaller scenario that breaks the same rule")
	small := scenario.Shrink(t.failed, t.violation.Rule, s.shrink)
	text, err := json.MarshalIndent(small, "", "  ")
	if err != nil {
		return err
	}
	file := filepath.Join(s.dir, fmt.Sprintf("violation-%d.json", t.failed.Options.Seed))
	if err := os.WriteFile(file, append(text, '\n'), 0o600); err != nil {
		return err
	}
	if err := printTrace(out, small); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "\nto have seed %d itself again:\n  go run ./sim/cmd/soak -seed %d -scenarios 1%s\n", t.failed.Options.Seed, t.failed.Options.Seed, s.flags())
	_, err = fmt.Fprintf(out, "to have what is left of it again:\n  go run ./sim/cmd/soak -replay %s\n", file)
	return err
}

// flags returns the flags on which the scenario of a seed depends.
func (s *settings) flags() (text string) {
	if s.settle != 0 {
		text = fmt.Sprintf(" -settle %s", s.settle)
	}
	if s.pools {
		text += " -pools"
	}
	if s.shrinking > 0 {
		text += fmt.Sprintf(" -shrinking %s", s.shrinking)
	}
	if s.moves {
		text += " -moves"
	}
	if s.open {
		text += " -open"
	}
	return text
}

// printTrace prints a summary of a scenario, and what happens in it.
func printTrace(out io.Writer, s *sim.Scenario) error {
	lines, err := scenario.Trace(s)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "\n%s\n\n", scenario.Summary(s))
	_, err = fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}

// play plays the scenario in a file, and prints what happens in it.
func (s *settings) play(out io.Writer) (violated bool, err error) {
	text, err := os.ReadFile(s.replay)
	if err != nil {
		return false, err
	}
	found := &sim.Scenario{}
	if err := json.Unmarshal(text, found); err != nil {
		return false, fmt.Errorf("%s: %w", s.replay, err)
	}
	if err := printTrace(out, found); err != nil {
		return false, fmt.Errorf("%s: %w", s.replay, err)
	}
	r, err := sim.Play(found)
	if err != nil {
		return false, err
	}
	if r.Violation == nil {
		_, err = fmt.Fprintln(out, "\nnothing is violated")
		return false, err
	}
	_, err = fmt.Fprintf(out, "\nviolated: %v\n", r.Violation)
	return true, err
}
