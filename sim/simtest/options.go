package simtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/scenario"
)

// Options say what is tested. Only Driver or New is needed.
type Options struct {
	// Driver makes a driver for each process of the manager. It uses the provider of the world
	// (sim.World.Provider).
	Driver func(w *sim.World) driver.Driver
	// New replaces Driver for a driver with a provider of its own. It is called once for each world, at
	// the beginning.
	New func(w *sim.World) Setup
	// Class makes the classes for a driver whose VMs are not in the world's provider, as
	// sim.Options.Class does. Such VMs join no cluster. Nil: classes of the world's provider.
	Class func(name string) *machine.Class
	// NoCluster leaves the target cluster out: machines end at phase Available. Class implies it.
	NoCluster bool
	// Policies replace those of the scenarios. A nil policy replaces nothing.
	Policies manager.Policies
	// Properties must hold in every world, in addition to the invariants of package sim.
	Properties []sim.Property
	// Scenario draws the scenario of a seed. Nil: scenario.Random, without pools.
	Scenario func(seed uint64) *sim.Scenario
	// Seeds is the number of scenarios: they have the seeds 0, 1, 2 and so on, and are played on all
	// cores. Zero: 200, which takes up to a minute on two cores.
	Seeds int
	// Tries is the maximum number of scenarios that are played in search of a smaller one that breaks
	// the same rule. Zero: 200. Negative: none.
	Tries int
}

// Setup is a driver in one world, with the provider that it calls.
type Setup struct {
	// Driver makes a driver for each process of the manager. All drivers call the same provider.
	Driver func() driver.Driver
	// Left names what is left at the provider, such as "disk d-1 of machine web-x". In the end, when
	// all machines have been deleted, it must return nothing. Nil: only the VMs that the driver lists
	// are checked.
	Left func() []string
	// Exhaust uses up the quota of VMs at the provider. Creates must fail with RESOURCE_EXHAUSTED until
	// raise is called some minutes later. Nil: this is not tested.
	Exhaust func(context.Context) (raise func())
	// Properties must hold in this world, like those of Options.
	Properties []sim.Property
}

const (
	defaultSeeds = 200
	defaultTries = 200
)

// complete returns o with defaults, or an error if it is invalid.
func (o Options) complete() (Options, error) {
	switch {
	case o.Driver == nil && o.New == nil:
		return o, errors.New("simtest: Options.Driver or Options.New must be set")
	case o.Driver != nil && o.New != nil:
		return o, errors.New("simtest: Options.Driver and Options.New exclude each other")
	case o.Seeds < 0:
		return o, fmt.Errorf("simtest: Options.Seeds must not be negative, but is %d", o.Seeds)
	}
	if o.New == nil {
		o.New = func(w *sim.World) Setup {
			return Setup{Driver: func() driver.Driver { return o.Driver(w) }}
		}
	}
	if o.Scenario == nil {
		o.Scenario = withoutPools
	}
	o.Seeds, o.Tries = cmp.Or(o.Seeds, defaultSeeds), max(cmp.Or(o.Tries, defaultTries), 0)
	return o, nil
}

// withoutPools returns scenario.Random without pools, because no driver of machines is called for them.
func withoutPools(seed uint64) *sim.Scenario {
	s := scenario.Random(seed)
	s.Pools, s.Options.Pools = nil, nil
	return s
}

// scenario draws the scenario of a seed, and equips it.
func (o *Options) scenario(seed uint64) *sim.Scenario {
	s := o.Scenario(seed)
	if o.Class != nil {
		s.Options.Class = o.Class
	}
	s.Options.NoCluster = s.Options.NoCluster || o.NoCluster || s.Options.Class != nil
	makeConsistent(&s.Options.Faults)
	p := &s.Options.Manager.Policies
	p.Machine = cmp.Or(o.Policies.Machine, p.Machine)
	p.Set = cmp.Or(o.Policies.Set, p.Set)
	p.Deployment = cmp.Or(o.Policies.Deployment, p.Deployment)
	p.Pool = cmp.Or(o.Policies.Pool, p.Pool)
	p.Safety = cmp.Or(o.Policies.Safety, p.Safety)
	o.equip(s, nil)
	return s
}

// makeConsistent removes the faults with which the world's provider says something false about its VMs.
// A driver under test would pass that on, and it would count as the driver's mistake.
func makeConsistent(f *sim.Faults) {
	f.Eventually, f.Spelling = 0, 0
	f.Codes = slices.DeleteFunc(slices.Clone(f.Codes), func(c codes.Code) bool { return c == codes.NotFound })
}

// ruleLeft is the rule that Setup.Left names nothing in the end.
const ruleLeft = "left at the provider"

// equip gives a scenario the driver and the properties. A scenario may be played several times, one after
// another, in a new world each time: b is the bench of the last world. The calls to the driver are
// recorded in calls, unless it is nil.
func (o *Options) equip(s *sim.Scenario, calls *journal) {
	var b *bench
	s.Options.Driver = func(w *sim.World) driver.Driver {
		if b == nil || b.w != w {
			b = newBench(w, o.New(w), calls)
		}
		return watched{b.setup.Driver(), b}
	}
	s.Options.Properties = append(answerProperties(&b), o.Properties...)
	s.Options.Properties = append(s.Options.Properties,
		sim.Property{Name: "Setup.Properties", Check: func(w *sim.World) error { return b.check(w) }},
		sim.Property{Name: ruleLeft, Finally: func(*sim.World) error { return b.left() }},
	)
}

// bench holds the driver under test in one world, with what checks it.
type bench struct {
	w       *sim.World
	setup   Setup
	calls   *journal
	answers *answers
}

// The quota is used up twice in each world, at these times after the beginning, for the time shortage.
const (
	firstShortage  = 20 * time.Minute
	secondShortage = 80 * time.Minute
	shortage       = 10 * time.Minute
)

func newBench(w *sim.World, setup Setup, calls *journal) *bench {
	full := false
	if setup.Exhaust != nil {
		for _, at := range []time.Duration{firstShortage, secondShortage} {
			w.After(at, func() {
				raise := setup.Exhaust(context.Background())
				full = true
				w.After(shortage, func() { full = false; raise() })
			})
		}
	}
	faults := func() int {
		f := w.Stats().Faults
		return f[sim.CallFailed] + f[sim.CallAnswerLost] + f[sim.CallHung] + f[sim.CallThrottled]
	}
	return &bench{w: w, setup: setup, calls: calls, answers: newAnswers(func() bool { return full }, faults)}
}

// check checks the properties of the setup.
func (b *bench) check(w *sim.World) error {
	for _, p := range b.setup.Properties {
		if p.Check == nil {
			continue
		}
		if err := p.Check(w); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	return nil
}

// left returns an error if anything is left at the provider.
func (b *bench) left() error {
	if b.setup.Left != nil {
		if left := slices.Sorted(slices.Values(b.setup.Left())); len(left) > 0 {
			return errors.New(strings.Join(left, ", "))
		}
	}
	for _, p := range b.setup.Properties {
		if p.Finally == nil {
			continue
		}
		if err := p.Finally(b.w); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	return nil
}
