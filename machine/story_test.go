package machine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
)

// story is a world that writes down what happens, one line a decision: the time since the beginning, the
// machine's phase and stage after the step, what was written or called, and why.
type story struct {
	*world
	shell *shell
	begun time.Time
	text  strings.Builder
	last  machine.Plan
	moves []machine.Move // all that were stored
}

// runStory runs a story and compares its text with its file.
func runStory(t *testing.T, name string, run func(*story)) {
	t.Run(name, func(t *testing.T) {
		s := newStory(t)
		run(s)
		testkit.Story(t, name, s.text.String())
	})
}

func newStory(t *testing.T) *story {
	w := newWorld(t)
	w.now = epoch.Truncate(time.Second)
	s := &story{world: w, begun: w.now}
	s.shell = &shell{w: w, onDecision: s.record}
	return s
}

// comment writes a line about an event outside.
func (s *story) comment(format string, args ...any) {
	fmt.Fprintf(&s.text, "%-9s -- %s\n", s.elapsed(s.now), fmt.Sprintf(format, args...))
}

func (s *story) elapsed(at time.Time) string { return "+" + at.Sub(s.begun).String() }

// record writes the line of a decision.
func (s *story) record(o *machine.Observation, plan machine.Plan, answer string) {
	for _, move := range plan.Moves {
		if answer == "" {
			s.moves = append(s.moves, move)
		}
	}
	action := "nothing to do"
	switch {
	case plan.Write != nil:
		action = writeName(plan.Write)
	case plan.Effect != nil:
		action = strings.TrimPrefix(strings.TrimPrefix(fmt.Sprintf("%T", plan.Effect), "*"), "machine.")
	case !plan.At.IsZero():
		action = "wait until " + s.elapsed(plan.At)
	}
	if answer != "" {
		action += ": " + answer
	}
	fmt.Fprintf(&s.text, "%-9s %-53s %-36s %s\n", s.elapsed(s.now), state(o.Machine), action, plan.Why)
	if plan.Warn != (decision.Why{}) && plan.Warn != plan.Why {
		fmt.Fprintf(&s.text, "%-9s warning: %s\n", "", plan.Warn)
	}
}

func writeName(w machine.Write) string {
	switch w.(type) {
	case *machine.Update:
		return "write object"
	case *machine.UpdateStatus:
		return "write status"
	case *machine.Delete:
		return "delete machine"
	}
	return ""
}

// state returns a machine's phase, and the stage and state of its last operation.
func state(m *machine.Machine) string {
	if m == nil {
		return "(gone)"
	}
	text := string(m.Status.Phase)
	if text == "" {
		text = "(new)"
	}
	op := m.Status.LastOperation
	if op.Kind != "" {
		text += " " + string(op.Kind)
	}
	if op.Stage != machine.StageNone {
		text += "/" + string(op.Stage)
	}
	if op.State == machine.StateFailed {
		text += " failed"
	}
	return text
}

// answerTo returns the answer to an effect, in a few words.
func answerTo(o *machine.Observation, effect machine.Effect) string {
	vm := func(answer *machine.VM) string {
		return strings.TrimSpace(answer.Code.Contract() + " " + answer.ProviderID)
	}
	switch effect.(type) {
	case machine.GetVM:
		return vm(o.VM)
	case machine.CreateVM:
		return vm(o.Created)
	case machine.InitializeVM:
		return vm(o.Initialized)
	case machine.UpdateVM:
		return vm(o.Updated)
	case machine.DeleteVM:
		return vm(o.VMDeleted)
	case machine.FindNode:
		if o.Node.Failure != "" {
			return "unread"
		}
		if o.Node.Node == nil {
			return "none"
		}
		return "found"
	case *machine.SyncNode:
		return o.NodeSynced.Code.Contract()
	case *machine.MarkNode:
		return o.NodeMarked.Code.Contract()
	case machine.DeleteNode:
		return o.NodeDeleted.Code.Contract()
	case *machine.DrainNode:
		return drainAnswer(o.Drain)
	case *machine.DetachVolumes:
		return drainAnswer(o.Detach)
	}
	return permission(o, effect)
}

// permission is answerTo for tokens, and for effects that ask for a permission.
func permission(o *machine.Observation, effect machine.Effect) string {
	switch effect.(type) {
	case machine.EnsureToken, machine.RenewToken:
		return o.TokenEnsured.Code.Contract()
	case machine.RemoveToken:
		return o.TokenRemoved.Code.Contract()
	case machine.AskUpdate:
		return map[bool]string{true: "now", false: "not yet"}[o.UpdateTurn.Allowed]
	case machine.AskCreate:
		return map[bool]string{true: "given", false: "not given"}[o.CreatePermit.Given]
	case machine.AskGrant:
		return map[bool]string{true: "allowed", false: "refused"}[o.Grant.Allowed]
	}
	return ""
}

// reconcile runs a pass, and another one after a conflict.
func (s *story) reconcile() {
	for passes := 0; ; passes++ {
		require.Less(s.t, passes, 100, "each pass ends with a conflict")
		s.tick()
		plan, _, err := s.shell.reconcile()
		s.last = plan
		if !errors.Is(err, errConflict) {
			return
		}
		s.shell.lag = nil
	}
}

// later lets time pass, writes a comment, and runs a pass.
func (s *story) later(d time.Duration, what string, args ...any) {
	s.advance(d)
	if what != "" {
		s.comment(what, args...)
	}
	s.reconcile()
}

// wait lets time pass until the At of the last plan, and runs a pass.
func (s *story) wait() {
	require.False(s.t, s.last.At.IsZero(), "the last plan has no At")
	s.now = s.last.At
	s.reconcile()
}

// failing makes a driver call fail from now on. codes.OK: it succeeds again.
func (s *story) failing(call codes.Call, code codes.Code, done bool) {
	s.provider.faults = func(c codes.Call) fault {
		if c == call {
			return fault{code, done}
		}
		return fault{}
	}
}

// restart starts a new process.
func (s *story) restart() {
	s.comment("the process is killed; a new one starts")
	s.shell = &shell{w: s.world, onDecision: s.record}
}

// toRunning creates the machine and brings it to Running, without any text.
func (s *story) toRunning(change ...func(*machine.Machine)) {
	s.createMachine(change...)
	s.shell.onDecision = nil
	s.shell.settle(bound)
	s.shell.onDecision = s.record
	require.Equal(s.t, machine.PhaseRunning, s.store.live().Status.Phase)
	s.begun = s.now
}

const node = "node-" + ours

// Invariants: P23
func TestStories(t *testing.T) {
	for _, stories := range allStories {
		for name, run := range stories {
			runStory(t, name, run)
		}
	}
}

var allStories = []map[string]func(*story){
	creationStories, healthStories, deletionStories, driverStories, drainStories, updateStories, hookStories, pauseStories, hotStories,
	preserveStories,
}
