package sim_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/store"
)

// TestNarratives plays each file of testdata in a world without delays, and compares its second part with
// what happens: decisions, sizes of sets, and bounds.
func TestNarratives(t *testing.T) {
	for _, f := range rolloutFiles(t) {
		t.Run(f.name, func(t *testing.T) {
			got := narrate(t, f)
			if testkit.Update() {
				text := f.text + outcomeFollows + got
				require.NoError(t, os.WriteFile(filepath.Join("testdata", f.name+".txt"), []byte(text), 0o644))
				f.outcome = got
			}
			require.Equal(t, f.outcome, got, "run with -update to write it, then read it")
		})
	}
}

// narrator writes down what a deployment decides, and the sizes of its sets.
type narrator struct {
	r    *run
	text strings.Builder
	last string // the last line of sizes that was written
	held string // the present sizes, written when time passes or something is decided
	at   string // the time of held
}

func narrate(t *testing.T, f *rolloutFile) string {
	n := &narrator{r: &run{t: t}}
	n.r.say = func(what string) { n.flush(); fmt.Fprintf(&n.text, "\n-- %s\n", what) }
	fmt.Fprintf(&n.text, "%d machines, %s, %s more and %s less allowed\n\n", f.replicas,
		f.strategy.Kind, f.strategy.MaxSurge, f.strategy.MaxUnavailable)
	n.r.start(1, f.with(sim.Faults{}), fleet(f.replicas, f.strategy), manager.Hooks{Event: n.event})
	n.r.w.Watch(n.record)
	f.play(n.r)
	n.flush()
	fmt.Fprintf(&n.text, "\nmachines made in all: %d\n", n.r.w.Made())
	n.r.w.Close()
	return n.text.String()
}

func (n *narrator) event(kind manager.Kind, _ object.Key, _ manager.EventType, reason, why string) {
	if kind != manager.KindDeployment {
		return
	}
	n.flush()
	fmt.Fprintf(&n.text, "%s  %s: %s\n", n.r.w.Now().Format("15:04:05"), reason, why)
}

// record keeps the present sizes of the sets, and writes the last ones if time has passed.
func (n *narrator) record() {
	d, err := n.r.w.Deployments().Get(ctx, web)
	if err != nil {
		return
	}
	if at := n.r.w.Now().Format("15:04:05"); at != n.at {
		n.flush()
		n.at = at
	}
	n.held = n.sizes(d)
}

// flush writes the kept sizes, unless they are the same as in the last line.
func (n *narrator) flush() {
	if n.held != n.last {
		fmt.Fprintf(&n.text, "%s    %s\n", n.at, n.held)
		n.last = n.held
	}
}

// sizes returns one line: each set by its class, with its machines as wanted/existing/available, then the
// sums and their bounds.
func (n *narrator) sizes(d *deployment.Deployment) string {
	sets, err := n.r.w.Sets().List(ctx, store.Query{})
	require.NoError(n.r.t, err)
	machines, err := n.r.w.Machines().List(ctx, store.Query{})
	require.NoError(n.r.t, err)
	slices.SortFunc(sets, func(a, b *machineset.Set) int { return strings.Compare(a.UID, b.UID) })
	var line strings.Builder
	var total, available int
	for _, s := range sets {
		there, ready := 0, 0
		for _, m := range machines {
			if m.OwnedBy(s.UID) && !m.Deleted() {
				there++
				if m.Ready() {
					ready++
				}
			}
		}
		total, available = total+there, available+ready
		if there > 0 || s.Spec.Replicas > 0 {
			fmt.Fprintf(&line, "[%s %d/%d/%d] ", s.Spec.Template.Spec.Class.Name, s.Spec.Replicas, there, ready)
		}
	}
	terminating := 0
	for _, m := range machines {
		if m.Deleted() {
			terminating++
		}
	}
	r := d.Spec.Replicas
	b := rollout.Fenceposts(d.Spec.Strategy.MaxSurge, d.Spec.Strategy.MaxUnavailable, r)
	fmt.Fprintf(&line, " %d of at most %d, %d available of at least %d", total, r+b.Surge, available, r-b.Unavailable)
	if terminating > 0 {
		fmt.Fprintf(&line, ", %d going", terminating)
	}
	if n := failing(machines); n > 0 {
		fmt.Fprintf(&line, ", %d failed", n)
	}
	return line.String()
}

func failing(machines []*machine.Machine) (n int) {
	for _, m := range machines {
		if m.Status.Phase == machine.PhaseFailed && !m.Deleted() {
			n++
		}
	}
	return n
}

// strategies are the strategies that TestInterleavings plays every file with.
var strategies = []deployment.Strategy{
	{MaxSurge: rollout.IntOrPercent{Value: 1}},
	{MaxUnavailable: rollout.IntOrPercent{Value: 1}},
	{MaxSurge: rollout.IntOrPercent{Value: 25, Percent: true}},
	{MaxUnavailable: rollout.IntOrPercent{Value: 50, Percent: true}},
	{MaxSurge: rollout.IntOrPercent{Value: 2}, MaxUnavailable: rollout.IntOrPercent{Value: 1}},
	{MaxSurge: rollout.IntOrPercent{Value: 100, Percent: true}},
	{Kind: deployment.Recreate},
	{Kind: deployment.InPlaceUpdate, MaxSurge: rollout.IntOrPercent{Value: 1}},
	{Kind: deployment.InPlaceUpdate, MaxUnavailable: rollout.IntOrPercent{Value: 1}},
	{Kind: deployment.InPlaceUpdate, MaxSurge: rollout.IntOrPercent{Value: 25, Percent: true}},
	{Kind: deployment.InPlaceUpdate, MaxUnavailable: rollout.IntOrPercent{Value: 50, Percent: true}},
}

// TestInterleavings plays each file with each strategy again and again, with calls and caches that
// lag, passes that overlap, and the faults of the file. The world checks the bounds after every
// effect (P5, P7, P13, P14). Of files that differ only in their strategy, one is played.
// Invariants: P5 P7
func TestInterleavings(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 3
	}
	played := map[string]bool{}
	for _, f := range rolloutFiles(t) {
		if played[f.withoutStrategy()] {
			continue
		}
		played[f.withoutStrategy()] = true
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(rounds * len(strategies)) {
				r := &run{t: t}
				t.Logf("seed %d", seed)
				r.start(seed, f.with(busy()), fleet(f.replicas, strategies[seed%uint64(len(strategies))]), manager.Hooks{})
				f.play(r)
				r.w.Close()
			}
		})
	}
}

// rolloutFile is a rollout in a file of testdata: what is done to a fleet, a line of ----, and what
// comes of it. testdata/README.md explains the commands. A new file needs no outcome: go test ./sim
// -run TestNarratives -update writes it.
type rolloutFile struct {
	name     string
	replicas int32
	strategy deployment.Strategy
	faults   []setting // added to those of the world in which it is played
	commands []command
	text     string // the part of the file before the outcome
	outcome  string
}

// command is one line: what a user does, or what is waited for.
type command struct{ verb, arg string }

// setting is a fault and its probability.
type setting struct {
	fault string
	value float64
}

// rolloutFaults are the faults that a file may name.
var rolloutFaults = map[string]func(*sim.Faults) *float64{
	"call":        func(f *sim.Faults) *float64 { return &f.Call },
	"lost-call":   func(f *sim.Faults) *float64 { return &f.LostCall },
	"lost-answer": func(f *sim.Faults) *float64 { return &f.LostAnswer },
	"dead-boot":   func(f *sim.Faults) *float64 { return &f.DeadBoot },
	"bad-update":  func(f *sim.Faults) *float64 { return &f.BadUpdate },
	"dead-update": func(f *sim.Faults) *float64 { return &f.DeadUpdate },
}

const outcomeFollows = "----\n"

// rolloutFiles reads all files of testdata/*.txt.
func rolloutFiles(t *testing.T) (all []*rolloutFile) {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		f, err := parseRollout(strings.TrimSuffix(filepath.Base(path), ".txt"), string(text))
		require.NoError(t, err)
		all = append(all, f)
	}
	return all
}

func parseRollout(name, text string) (*rolloutFile, error) {
	before, after, _ := strings.Cut(text, outcomeFollows)
	f := &rolloutFile{name: name, text: before, outcome: after}
	for i, line := range strings.Split(strings.TrimSuffix(before, "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		if err := f.parse(line); err != nil {
			return nil, fmt.Errorf("%s, line %d: %q: %w", name, i+1, line, err)
		}
	}
	if f.replicas == 0 {
		return nil, fmt.Errorf("%s has no line of fleet", name)
	}
	return f, nil
}

func (f *rolloutFile) parse(line string) (err error) {
	verb, arg, _ := strings.Cut(line, " ")
	switch verb {
	case "fleet":
		return f.parseFleet(strings.Fields(arg))
	case "faults":
		return f.parseFaults(strings.Fields(arg))
	case "pause", "resume", "rollback":
		if arg != "" {
			err = fmt.Errorf("nothing follows %s", verb)
		}
	case "wait":
		_, err = time.ParseDuration(arg)
	case "replicas":
		_, err = strconv.ParseInt(arg, 10, 32)
	case "class":
	case "until":
		if n, updated := strings.CutPrefix(arg, "updated "); updated {
			_, err = strconv.ParseInt(n, 10, 32)
		} else if arg != "complete" {
			err = fmt.Errorf("until complete, or until updated and a number")
		}
	default:
		err = fmt.Errorf("no such command")
	}
	f.commands = append(f.commands, command{verb, arg})
	return err
}

func (f *rolloutFile) parseFleet(words []string) error {
	if len(words) < 2 {
		return fmt.Errorf("a number and a strategy follow fleet")
	}
	n, err := strconv.ParseInt(words[0], 10, 32)
	f.replicas, f.strategy.Kind = int32(n), deployment.StrategyKind(words[1])
	for _, word := range words[2:] {
		key, value, _ := strings.Cut(word, "=")
		amount, wrong := rollout.Parse(value)
		switch {
		case wrong != nil:
			return wrong
		case key == "surge":
			f.strategy.MaxSurge = amount
		case key == "unavailable":
			f.strategy.MaxUnavailable = amount
		default:
			return fmt.Errorf("surge and unavailable follow the strategy")
		}
	}
	return err
}

func (f *rolloutFile) parseFaults(words []string) error {
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		p, err := strconv.ParseFloat(value, 64)
		if rolloutFaults[key] == nil || err != nil {
			return fmt.Errorf("%q is no fault with a probability", word)
		}
		f.faults = append(f.faults, setting{key, p})
	}
	return nil
}

// play does what the file says to the fleet of a run.
func (f *rolloutFile) play(r *run) {
	for _, c := range f.commands {
		n, _ := strconv.ParseInt(c.arg[strings.LastIndexByte(c.arg, ' ')+1:], 10, 32) // parse has checked that it is a number where one is needed
		switch c.verb {
		case "class":
			r.roll(c.arg)
		case "replicas":
			r.scale(int32(n))
		case "pause":
			r.edit("paused", func(s *deployment.Spec) { s.Paused = true })
		case "resume":
			r.edit("resumed", func(s *deployment.Spec) { s.Paused = false })
		case "rollback":
			r.edit("rolled back", func(s *deployment.Spec) { s.RollbackTo = &deployment.Rollback{} })
		case "wait":
			d, _ := time.ParseDuration(c.arg)
			r.wait(d)
		case "until":
			if c.arg == "complete" {
				r.awaitComplete()
			} else {
				r.awaitUpdated(int32(n))
			}
		}
	}
}

// with returns the given faults with those of the file.
func (f *rolloutFile) with(faults sim.Faults) sim.Faults {
	for _, s := range f.faults {
		*rolloutFaults[s.fault](&faults) = s.value
	}
	return faults
}

// withoutStrategy returns the contents of the file without its strategy, as a key.
func (f *rolloutFile) withoutStrategy() string { return fmt.Sprint(f.replicas, f.faults, f.commands) }

func TestParseRollout(t *testing.T) {
	f, err := parseRollout("one", "# a comment\nfleet 4 InPlaceUpdate surge=25% unavailable=1\nfaults call=0.5\nclass large\nuntil updated 3\n----\noutcome\n")
	require.NoError(t, err)
	require.Equal(t, deployment.Strategy{
		Kind: deployment.InPlaceUpdate, MaxSurge: rollout.IntOrPercent{Value: 25, Percent: true}, MaxUnavailable: rollout.IntOrPercent{Value: 1},
	}, f.strategy)
	require.Equal(t, []command{{"class", "large"}, {"until", "updated 3"}}, f.commands)
	require.InDelta(t, 0.5, f.with(sim.Faults{}).Call, 0)
	require.Equal(t, "outcome\n", f.outcome)
	for line, says := range map[string]string{
		"fleet":                         "a number and a strategy",
		"fleet x RollingUpdate":         "invalid syntax",
		"fleet 3 RollingUpdate more=1":  "surge and unavailable",
		"fleet 3 RollingUpdate surge=x": "surge=x",
		"faults calls=0.1":              "no fault",
		"pause now":                     "nothing follows",
		"wait long":                     "invalid duration",
		"replicas many":                 "invalid syntax",
		"until updated":                 "until complete, or",
		"until updated all":             "invalid syntax",
		"explode":                       "no such command",
		"":                              "no such command",
	} {
		_, err := parseRollout("odd", "fleet 3 Recreate\n"+line+"\n")
		require.ErrorContains(t, err, "odd, line 2", line)
		require.ErrorContains(t, err, says, line)
	}
	_, err = parseRollout("odd", "class large\n")
	require.ErrorContains(t, err, "no line of fleet")
}

// TestRolloutTable: the table in testdata/README.md links to each file, and to no other.
func TestRolloutTable(t *testing.T) {
	text, err := os.ReadFile("testdata/README.md")
	require.NoError(t, err)
	for _, f := range rolloutFiles(t) {
		require.Contains(t, string(text), "("+f.name+".txt)")
	}
	require.Equal(t, len(rolloutFiles(t)), strings.Count(string(text), ".txt)"), "a link leads nowhere")
}
