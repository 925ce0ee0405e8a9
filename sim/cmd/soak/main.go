// Command soak plays scenarios of package sim in which anything may fail, for a given time or a given
// number of scenarios, on all cores. With -shrinking, fleets are scaled down during rollouts instead,
// and nothing fails.
//
//	go run ./sim/cmd/soak -for 5m -seed 1
//
// It reports progress on standard error, and on standard output a summary: steps, faults by kind, kills,
// violations. It stops at the first violation, unless -all is given. If there was a violation, it ends by
// looking for a smaller scenario that breaks the same rule, prints what happens in that, and writes it to
// a file that -replay plays again.
//
// The exit status is 1 if anything was violated, and 2 for a mistake of the user, such as an unknown flag.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/scenario"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// Exit statuses.
const (
	exitViolated = 1
	exitMistake  = 2
)

// settings are the values of the flags; see parse.
type settings struct {
	limit     time.Duration // of the run; zero: none
	seed      uint64
	scenarios uint64 // zero: no limit but the time
	workers   int
	settle    time.Duration // Scenario.Limit
	replay    string
	dir       string
	shrink    int // how many scenarios to try in search of a smaller one
	pools     bool
	shrinking time.Duration // latency of scenario.ScaleDown; zero: other scenarios
	all       bool
	moves     bool
	open      bool
}

// draw returns the scenario of a seed, as the flags say.
func (s *settings) draw(seed uint64) *sim.Scenario {
	switch {
	case s.shrinking > 0:
		return scenario.ScaleDown(seed, s.shrinking)
	case s.pools:
		return scenario.RandomPools(seed)
	case s.moves:
		return scenario.Moves(seed)
	case s.open:
		return scenario.Open(seed)
	}
	return scenario.Random(seed)
}

// defaultTime is how long a soak takes by default.
const defaultTime = time.Minute

func parse(args []string, errs io.Writer) (*settings, error) {
	s := &settings{}
	f := flag.NewFlagSet("soak", flag.ContinueOnError)
	f.SetOutput(errs)
	f.DurationVar(&s.limit, "for", 0, "how long to go on (default 1m, unless -scenarios is given)")
	f.Uint64Var(&s.seed, "seed", 1, "of the first scenario; the others follow")
	f.Uint64Var(&s.scenarios, "scenarios", 0, "how many to live through; 0: as many as there is time for")
	f.IntVar(&s.workers, "workers", runtime.NumCPU(), "how many at a time")
	f.DurationVar(&s.settle, "settle", 0, "how long a world may take to converge, in its own time (default 48h)")
	f.IntVar(&s.shrink, "shrink", 2000, "how many scenarios to try in search of a smaller one that fails")
	f.BoolVar(&s.pools, "pools", false, "have pools in all scenarios, and fewer machines (default: pools in one of five)")
	f.DurationVar(&s.shrinking, "shrinking", 0, "scale fleets down amid rollouts, with this latency and no other faults; 0: storms")
	f.BoolVar(&s.all, "all", false, "go on after a violation, and count them")
	f.BoolVar(&s.moves, "moves", false, "have machines updated in place and interrupted on their way from set to set")
	f.BoolVar(&s.open, "open", false, "have other programs and people change nodes, machines and classes, beside the faults")
	f.StringVar(&s.dir, "dir", ".", "where a scenario is written that fails")
	f.StringVar(&s.replay, "replay", "", "play the scenario in this file, and tell what happens")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case f.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case s.limit < 0 || s.settle < 0 || s.shrink < 0 || s.shrinking < 0 || s.workers < 1:
		return nil, errors.New("-for, -settle, -shrink and -shrinking must not be negative, -workers at least 1")
	case several(s.pools, s.shrinking > 0, s.moves, s.open):
		return nil, errors.New("-pools, -shrinking, -moves and -open exclude each other")
	}
	if s.limit == 0 && s.scenarios == 0 {
		s.limit = defaultTime
	}
	return s, nil
}

// several reports whether more than one of its arguments is true.
func several(set ...bool) bool {
	n := 0
	for _, is := range set {
		if is {
			n++
		}
	}
	return n > 1
}

func run(args []string, out, errs io.Writer) int {
	s, err := parse(args, errs)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	violated := false
	switch {
	case err != nil:
	case s.replay != "":
		violated, err = s.play(out)
	default:
		violated, err = s.soak(out, errs)
	}
	switch {
	case err != nil:
		_, _ = fmt.Fprintf(errs, "soak: %v\n", err)
		return exitMistake
	case violated:
		return exitViolated
	}
	return 0
}
