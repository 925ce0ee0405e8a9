package machinepool_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

// scenario runs one process in a world, and writes down each decision in a line.
type scenario struct {
	*shell
	t    *testing.T
	text strings.Builder
}

func (s *scenario) comment(format string, args ...any) {
	fmt.Fprintf(&s.text, "%-8s -- %s\n", "+"+s.w.now.Sub(start).String(), fmt.Sprintf(format, args...))
}

func (s *scenario) line(format string, args ...any) {
	fmt.Fprintf(&s.text, "%-8s    %s\n", "+"+s.w.now.Sub(start).String(), fmt.Sprintf(format, args...))
}

// writePlan writes down one plan.
func (s *scenario) writePlan(plan machinepool.Plan) {
	switch {
	case plan.Write != nil:
		what := "update"
		if u, ok := plan.Write.(*machinepool.UpdateStatus); ok {
			what = "status"
			if plan.Move != (machine.Move{}) {
				what = fmt.Sprintf("status %s -> %s", plan.Move.From, plan.Move.To)
			}
			if op := u.Status.LastOperation; op.State == machine.StateFailed {
				what += " (" + op.Code.Contract() + ")"
			}
		}
		s.line("%s: %s", what, plan.Why)
	case plan.Effect != nil:
		s.line("%s: %s", describe(plan.Effect), plan.Why)
	default:
		wait := "on the next change"
		if !plan.At.IsZero() {
			wait = "in " + plan.At.Sub(s.w.now).Round(time.Second).String()
		}
		s.line("look again %s: %s", wait, plan.Why)
	}
	if plan.Warn != (decision.Why{}) {
		s.line("  warning: %s", plan.Warn)
	}
}

func describe(e machinepool.Effect) string {
	v := reflect.Indirect(reflect.ValueOf(e))
	name := v.Type().Name()
	if v.NumField() == 0 || name == "DrainNodes" || name == "Renew" {
		return name
	}
	return fmt.Sprintf("%s(%v)", name, v.Field(0).Interface())
}

// look makes one pass and writes down the state of the pool.
func (s *scenario) look() {
	how, err := s.pass()
	require.NoError(s.t, err, s.text.String())
	switch how {
	case died:
		s.restart()
		s.line("the process dies")
	case conflict:
		s.line("conflict: the pass begins again")
	case vanished:
		s.line("the pool is gone")
	case waits:
	}
	p := s.w.pool()
	s.line("= %s: replicas %d, ready %d, available %d, unavailable %d%s", phase(p.Status.Phase), p.Status.Replicas,
		p.Status.Ready, p.Status.Available, p.Status.Unavailable, failure(p))
	require.Empty(s.t, s.w.violation, s.text.String())
}

func phase(p machinepool.Phase) string {
	if p == "" {
		return "(none)"
	}
	return string(p)
}

func failure(p *machinepool.Pool) string {
	if p.Status.FailureReason == "" {
		return ""
	}
	return fmt.Sprintf("; %s: %s", p.Status.FailureReason, p.Status.FailureMessage)
}

func (s *scenario) after(d time.Duration) {
	s.w.advance(d)
	s.look()
}

// running lets the pool come up, without writing that down.
func (s *scenario) running() {
	onPlan := s.onPlan
	s.onPlan = nil
	require.NoError(s.t, s.until(2*time.Minute, func() { s.w.supply(); s.w.join() }))
	require.True(s.t, s.w.settled(), "%+v", s.w.pool().Status)
	s.onPlan, s.calls = onPlan, nil
	s.comment("the pool runs with %d instances", len(s.w.ids()))
}

// fails makes the next call of that name fail.
func (s *scenario) fails(name string, code codes.Code, message string) {
	s.fault = func(call string) *machine.Outcome {
		if call != name {
			return nil
		}
		s.fault = nil
		return &machine.Outcome{Code: code, Message: message}
	}
}

// playScenario compares what a scenario writes down with testdata/stories/<name>.txt.
func playScenario(t *testing.T, name string, play func(*scenario)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		s := &scenario{t: t, shell: &shell{w: newWorld()}}
		s.onPlan = s.writePlan
		play(s)
		testkit.Story(t, name, s.text.String())
	})
}

// TestCreation has scenarios of groups that are created, phase by phase.
func TestCreation(t *testing.T) {
	playScenario(t, "creation", func(s *scenario) {
		s.look()
		s.comment("the provider has made the group, and no instance yet")
		s.w.group.ready = true
		s.after(15 * time.Second)
		s.comment("the instances are there")
		s.w.supply()
		s.after(15 * time.Second)
		s.comment("all of them have joined")
		s.w.join()
		s.look()
		s.after(time.Minute)
	})
	playScenario(t, "bootstrap data that come late", func(s *scenario) {
		name := "boot"
		s.w.edit(func(p *machinepool.Pool) { p.Spec.Template.Bootstrap.DataSecret = nil })
		s.w.boot = &machinepool.BootstrapAnswer{}
		s.look()
		s.comment("the name is set, the data are still being made")
		s.w.edit(func(p *machinepool.Pool) { p.Spec.Template.Bootstrap.DataSecret = &name })
		s.look()
		s.comment("they are found, but not declared ready")
		s.w.boot = &machinepool.BootstrapAnswer{Found: true}
		s.look()
		s.comment("they are ready")
		s.w.boot = &machinepool.BootstrapAnswer{Found: true, Ready: true}
		s.look()
	})
	playScenario(t, "nothing to bootstrap", func(s *scenario) {
		none := ""
		s.w.edit(func(p *machinepool.Pool) { p.Spec.Template.Bootstrap.DataSecret = &none })
		s.w.boot = nil
		s.look()
	})
	playScenario(t, "class that comes late", func(s *scenario) {
		class := s.w.class
		s.w.class = nil
		s.w.edit(func(p *machinepool.Pool) { p.Spec.Template.Class.Name = "" })
		s.look()
		s.comment("the class is named, and does not exist")
		s.w.edit(func(p *machinepool.Pool) { p.Spec.Template.Class.Name = "small" })
		s.look()
		s.comment("it exists")
		s.w.class = class
		s.look()
	})
	playScenario(t, "group that is there already", func(s *scenario) {
		s.w.carry(machinepool.CreateGroup{Replicas: 3}, nil)
		s.w.supply()
		s.w.join()
		s.look()
		s.after(15 * time.Second)
	})
	playScenario(t, "create that fails and then succeeds", func(s *scenario) {
		s.fails("CreateGroup", codes.Unavailable, "the provider is down")
		s.look()
		s.comment("too early")
		s.after(5 * time.Second)
		s.after(time.Second)
	})
	playScenario(t, "crash after the create", func(s *scenario) {
		n := 0
		s.kill = func() bool { n++; return len(s.calls) == 2 && s.w.group != nil }
		s.look()
		s.kill = nil
		s.comment("another process")
		s.after(time.Second)
		s.after(15 * time.Second)
	})
	playScenario(t, "zero replicas", func(s *scenario) {
		s.w.scaleTo(0)
		s.look()
		s.w.supply()
		s.after(15 * time.Second)
	})
	playScenario(t, "minimum ready time", func(s *scenario) {
		s.w.edit(func(p *machinepool.Pool) { p.Spec.MinReady = 30 * time.Second })
		s.look()
		s.w.supply()
		s.w.advance(15 * time.Second)
		s.w.join()
		s.look()
		s.comment("a look too early changes nothing")
		s.after(30 * time.Second)
		s.after(time.Second)
	})
	playScenario(t, "token lapses before all have joined", func(s *scenario) {
		s.look()
		s.w.supply()
		s.after(9 * time.Minute)
		s.comment("five minutes are left of the token")
		s.after(time.Minute)
		s.w.join()
		s.after(15 * time.Second)
		s.comment("nobody needs it any more")
		s.after(20 * time.Minute)
		s.comment("until the pool grows")
		s.w.scaleTo(4)
		s.look()
	})
	playScenario(t, "token that cannot be renewed", func(s *scenario) {
		s.w.boot.TokenExpires = start
		s.fails("Renew", codes.PermissionDenied, "may not write secrets")
		s.look()
		s.after(3*time.Minute + time.Second)
	})
}

// TestRunning has scenarios of running pools.
func TestRunning(t *testing.T) {
	playScenario(t, "node that is not ready for a while", func(s *scenario) {
		s.running()
		id := s.w.ids()[0]
		s.w.ready(id, object.False)
		s.look()
		s.w.ready(id, object.True)
		s.after(time.Second)
	})
	playScenario(t, "instance that the provider replaces", func(s *scenario) {
		s.running()
		s.w.drop(s.w.ids()[1])
		s.look()
		s.w.supply()
		s.after(15 * time.Second)
		s.w.join()
		s.look()
	})
	playScenario(t, "group that somebody deletes", func(s *scenario) {
		s.running()
		s.w.group, s.w.nodes = nil, map[string]*machine.Node{}
		s.look()
		s.comment("45 s later")
		s.w.advance(45 * time.Second)
		s.after(15 * time.Second)
		s.after(15 * time.Second)
	})
	playScenario(t, "group that is not found for a moment", func(s *scenario) {
		s.running()
		s.lie = func(g *machinepool.Group) {
			*g = machinepool.Group{Outcome: machine.Outcome{Code: codes.NotFound}, At: g.At}
		}
		s.after(time.Minute)
		s.lie = nil
		s.after(15 * time.Second)
	})
	playScenario(t, "group that is not ready any more", func(s *scenario) {
		s.running()
		s.w.group.ready = false
		s.after(time.Minute)
		s.w.group.ready = true
		s.after(15 * time.Second)
	})
	playScenario(t, "failure of the provider and recovery", func(s *scenario) {
		s.running()
		s.w.group.failure = "the image is gone"
		s.after(time.Minute)
		s.comment("nothing has changed")
		s.after(15 * time.Second)
		s.w.group.failure = ""
		s.after(15 * time.Second)
	})
	playScenario(t, "template changes", func(s *scenario) {
		s.running()
		s.w.edit(func(p *machinepool.Pool) { p.Spec.Template.NodeTemplate.Labels = map[string]string{"zone": "b"} })
		s.look()
		s.after(15 * time.Second)
		s.comment("the class changes, and the provider refuses what it says now")
		changed := *s.w.class
		changed.Generation++
		s.w.class = &changed
		s.fails("UpdateGroup", codes.InvalidArgument, "no such image")
		s.look()
		s.after(time.Minute)
		s.comment("the class is mended")
		mended := *s.w.class
		mended.Generation++
		s.w.class = &mended
		s.look()
		s.after(15 * time.Second)
	})
	playScenario(t, "provider cannot be reached", func(s *scenario) {
		s.running()
		s.fault = func(string) *machine.Outcome {
			return &machine.Outcome{Code: codes.Unavailable, Message: "no route"}
		}
		s.after(time.Minute)
		s.comment("nodes are still looked at")
		s.w.ready(s.w.ids()[0], object.False)
		s.after(6 * time.Second)
		s.fault = nil
		s.w.ready(s.w.ids()[0], object.True)
		s.after(30 * time.Second)
	})
	playScenario(t, "spec that cannot be acted upon", func(s *scenario) {
		s.running()
		s.w.scaleTo(-1)
		s.look()
		s.after(time.Minute)
		s.w.scaleTo(3)
		s.look()
	})
	playScenario(t, "frozen", func(s *scenario) {
		s.running()
		s.w.scaleTo(5)
		o := s.observe()
		o.Frozen = true
		plan, err := machinepool.Decide(o, s.w.policy, s.w.now)
		require.NoError(t, err)
		s.writePlan(plan)
	})
	playScenario(t, "Failed although nobody says so", func(s *scenario) {
		s.running()
		s.w.edit(func(p *machinepool.Pool) { p.Status.Phase = "Melted" })
		s.look()
		s.w.edit(func(p *machinepool.Pool) { p.Status.Phase = machinepool.PhaseDeleting })
		s.look()
	})
	playScenario(t, "deletion in a phase that makes no sense", func(s *scenario) {
		s.running()
		s.w.edit(func(p *machinepool.Pool) { p.Status.Phase = "Melted" })
		s.w.remove()
		s.look()
	})
}

// unset removes the name of the bootstrap data from the template.
func (s *scenario) unset() {
	s.w.edit(func(p *machinepool.Pool) { p.Spec.Template.Bootstrap.DataSecret = nil })
}

// TestPhases has scenarios of rare transitions between phases.
func TestPhases(t *testing.T) {
	playScenario(t, "deletion before the pool was looked at", func(s *scenario) {
		s.w.edit(func(p *machinepool.Pool) { p.Finalizers = []string{machinepool.Finalizer} })
		s.w.remove()
		s.look()
	})
	playScenario(t, "deletion while bootstrap data are waited for", func(s *scenario) {
		s.unset()
		s.look()
		s.w.remove()
		s.look()
	})
	playScenario(t, "deletion before all have joined", func(s *scenario) {
		s.look()
		s.w.supply()
		s.after(15 * time.Second)
		s.w.remove()
		s.look()
	})
	playScenario(t, "spec that cannot be acted upon while bootstrap data are waited for", func(s *scenario) {
		s.unset()
		s.look()
		s.w.scaleTo(-1)
		s.look()
		s.comment("it is mended")
		s.w.scaleTo(3)
		s.look()
	})
	// An update before the bootstrap data exist would tell the provider that there are none.
	playScenario(t, "group that is there before its bootstrap data", func(s *scenario) {
		s.w.carry(machinepool.CreateGroup{Replicas: 3}, nil)
		s.w.supply()
		s.unset()
		s.look()
		s.comment("the name is set, and the data are there")
		name := "boot"
		s.w.edit(func(p *machinepool.Pool) { p.Spec.Template.Bootstrap.DataSecret = &name })
		s.look()
	})
	// The first create takes effect late. The second adopts its group, which has the old template.
	playScenario(t, "template changed between two creates", func(s *scenario) {
		s.fails("CreateGroup", codes.DeadlineExceeded, "no answer")
		s.look()
		s.comment("the template is changed")
		s.w.edit(func(p *machinepool.Pool) { p.Spec.Template.NodeTemplate.Labels = map[string]string{"zone": "b"} })
		s.after(5 * time.Second)
		s.after(time.Second)
	})
	playScenario(t, "other bootstrap data that come late", func(s *scenario) {
		s.running()
		boot, other := s.w.boot, "boot-2"
		s.w.boot = &machinepool.BootstrapAnswer{}
		s.w.edit(func(p *machinepool.Pool) { p.Spec.Template.Bootstrap.DataSecret = &other })
		s.look()
		s.comment("they are there; until then new machines booted from the old ones")
		s.w.boot = boot
		s.after(15 * time.Second)
	})
	playScenario(t, "bootstrap data that go before the group is ready", func(s *scenario) {
		s.look()
		s.comment("somebody deletes the secret")
		s.w.boot = &machinepool.BootstrapAnswer{}
		s.after(15 * time.Second)
	})
	playScenario(t, "group and bootstrap data that somebody deletes before all have joined", func(s *scenario) {
		s.look()
		s.w.supply()
		s.after(15 * time.Second)
		s.comment("group and secret are gone")
		s.w.group, s.w.boot = nil, &machinepool.BootstrapAnswer{}
		s.after(15 * time.Second)
		s.after(time.Minute)
	})
	playScenario(t, "group and bootstrap data that somebody deletes", func(s *scenario) {
		s.running()
		s.comment("their nodes are still there")
		s.w.group, s.w.boot = nil, &machinepool.BootstrapAnswer{}
		s.after(time.Minute)
		s.after(time.Minute)
	})
	playScenario(t, "failure that is over while a node is not ready", func(s *scenario) {
		s.running()
		s.w.group.failure = "the image is gone"
		s.after(time.Minute)
		s.comment("the provider is well again, and a node is not")
		s.w.group.failure = ""
		s.w.ready(s.w.ids()[0], object.False)
		s.after(15 * time.Second)
	})
}

var (
	toldMove  = regexp.MustCompile(`(?m)^\S+ +status (\w*) -> (\w+)(?: \(|:)`)
	toldPhase = regexp.MustCompile(`(?m)^\S+ +(?:-- )?= (\w+):`)
)

// TestEveryTransitionHasAStory: each transition of the phase table occurs in a golden file, so that a change
// of the table, or of the conditions of its transitions, shows there.
// Invariants: P32
func TestEveryTransitionHasAStory(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "stories", "*.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	moves, phases := map[[2]string]bool{}, map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range toldMove.FindAllStringSubmatch(string(text), -1) {
			moves[[2]string{m[1], m[2]}] = true
		}
		for _, m := range toldPhase.FindAllStringSubmatch(string(text), -1) {
			phases[m[1]] = true
		}
	}
	table := machinepool.PhaseTable()
	known := map[[2]string]bool{}
	for _, e := range table.Transitions() {
		known[[2]string{e.From, e.To}] = true
		assert.True(t, moves[[2]string{e.From, e.To}], "no story has %q -> %q", e.From, e.To)
	}
	for m := range moves {
		assert.True(t, known[m], "a story has %q -> %q, which the table has not", m[0], m[1])
	}
	for _, state := range table.States() {
		assert.True(t, state == "" || state == machine.Unrecognized || phases[state], "no story rests in phase %s", state)
	}
}
