// Command hunt plays random scenarios of package sim, one seed after another, until one of them
// violates an invariant: storms, in which anything may fail, and rushes, in which everything is late.
// The tests of package gallery build it together with deliberate mistakes in the library, and require
// that it finds them.
//
// It prints the number of steps, and the violation. The exit status is 0 if there was no violation, 3 if
// there was one or a scenario could not be played, and 2 for an invalid flag.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/scenario"
)

// exitViolation is the exit status if there was a violation.
const exitViolation = 3

func main() {
	storms := flag.Uint64("storms", 100, "how many storms are played at most")
	kind := flag.String("kind", "", "pools: every storm has pools; open: other programs and people make changes, too; empty: storms and rushes")
	flag.Parse()
	draw := stormOrRush
	switch *kind {
	case "":
	case "pools":
		draw = scenario.RandomPools
	case "open":
		draw = scenario.Open
	default:
		fmt.Fprintf(os.Stderr, "unknown kind %q\n", *kind)
		os.Exit(2)
	}
	os.Exit(hunt(*storms, draw))
}

// hunt plays storms on all processors. It prints the violation with the lowest seed, and returns the exit
// status.
func hunt(storms uint64, draw func(seed uint64) *sim.Scenario) int {
	results := make([]*sim.Result, storms)
	var next, found atomic.Uint64
	found.Store(storms)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for seed := next.Add(1) - 1; seed < found.Load(); seed = next.Add(1) - 1 {
				r, err := sim.Play(draw(seed))
				if err != nil {
					r.Violation = &sim.Violation{Rule: "played", Seed: seed, What: err.Error()}
				}
				results[seed] = &r
				if r.Violation != nil {
					lower(&found, seed)
				}
			}
		})
	}
	wg.Wait()
	steps := 0
	for seed := range storms {
		r := results[seed]
		steps += r.Stats.Steps
		if r.Violation != nil {
			fmt.Printf("%d steps, storm %d: %v\n", steps, seed, r.Violation)
			return exitViolation
		}
	}
	fmt.Printf("%d steps, %d storms, nothing seen\n", steps, storms)
	return 0
}

// stormOrRush returns a storm for two of three seeds, and a rush for the third.
func stormOrRush(seed uint64) *sim.Scenario {
	if seed%3 == 2 {
		return scenario.Rush(seed)
	}
	return scenario.Random(seed)
}

// lower sets v to n if n is less.
func lower(v *atomic.Uint64, n uint64) {
	for old := v.Load(); n < old && !v.CompareAndSwap(old, n); old = v.Load() {
	}
}
