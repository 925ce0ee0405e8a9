package deployment_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

func replicas(n int32) func(*deployment.Spec) {
	return func(s *deployment.Spec) { s.Replicas = n }
}

// story is a transcript of what is decided, and of what happens in between.
type story struct {
	*world
	shell *shell
	text  strings.Builder
}

func newStory(t *testing.T, d *deployment.Deployment) *story {
	w := newWorld(d)
	s := &story{world: w, shell: newShell(t, w)}
	s.shell.decided = s.note
	return s
}

func (s *story) say(format string, args ...any) {
	fmt.Fprintf(&s.text, "\n-- "+format+"\n", args...)
}

// note writes down one decision.
func (s *story) note(o *deployment.Observation, p deployment.Plan) {
	line := func(what string, why any) {
		fmt.Fprintf(&s.text, "%s  %-9s %v\n", s.now.Format("15:04:05.0"), what, why)
	}
	switch write := p.Write.(type) {
	case *deployment.Update:
		line("write", p.Why)
	case *deployment.UpdateStatus:
		line("status", p.Why)
		s.noteStatus(&o.Deployment.Status, &write.Status)
	}
	if p.ReadLive {
		line("read live", p.Why)
	}
	orders := ordersOf(&p)
	for _, kind := range []string{"create", "push", "scale", "delete", "adopt", "release", "handover"} {
		for _, order := range orders[kind] {
			line(kind, order.Why)
		}
	}
	for _, order := range p.Mark {
		line("mark", order.Why)
	}
	for _, order := range p.Move {
		line("move", order.Why)
	}
	if !p.At.IsZero() {
		line("wait", fmt.Sprintf("%s: %s", p.At.Sub(s.now), p.Why))
	}
	if p.Warn != (decision.Why{}) {
		line("warn", p.Warn)
	}
}

func (s *story) noteStatus(old, to *deployment.Status) {
	fmt.Fprintf(&s.text, "%22s replicas %d, updated %d, ready %d, available %d, unavailable %d", "",
		to.Replicas, to.Updated, to.Ready, to.Available, to.Unavailable)
	if to.InPlace != (deployment.InPlaceCounts{}) {
		c := to.InPlace
		fmt.Fprintf(&s.text, "; in place: %d candidates, %d selected, %d updating, %d updated, %d failed",
			c.Candidates, c.Selected, c.Updating, c.Updated, c.Failed)
	}
	if to.Collisions != old.Collisions {
		fmt.Fprintf(&s.text, ", collisions %d", to.Collisions)
	}
	for _, f := range to.Failed {
		fmt.Fprintf(&s.text, ", failed %s: %s", f.Name, f.LastOperation.Message)
	}
	s.text.WriteString("\n")
	for _, c := range to.Conditions {
		if !slices.Contains(old.Conditions, c) {
			fmt.Fprintf(&s.text, "%22s %s=%s %s: %s\n", "", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	for _, c := range old.Conditions {
		if object.FindCondition(to.Conditions, c.Type) == nil {
			fmt.Fprintf(&s.text, "%22s %s dropped\n", "", c.Type)
		}
	}
}

// decide runs a pass and shows the sets it leaves behind.
func (s *story) decide() {
	s.shell.pass()
	if sets := s.world.String(); sets != "" {
		fmt.Fprintf(&s.text, "%10s%s\n", "", sets)
	}
}

// pass lets time pass.
func (s *story) pass(d time.Duration) { s.now = s.now.Add(d) }

// follow lets the sets follow their orders and machines come up or go, for this many rounds, with a
// decision after each.
func (s *story) follow(rounds int) {
	for range rounds {
		s.pass(time.Minute)
		s.obeyAll()
		s.liveAll()
		s.decide()
	}
}

// settle lets everything converge without writing it down.
func (s *story) settle() {
	for range 40 {
		s.pass(time.Minute)
		s.obeyAll()
		s.liveAll()
		s.shell.pass()
	}
	s.text.Reset()
	fmt.Fprintf(&s.text, "%d machines wanted, surge %s, unavailable %s\n%10s%s\n", s.deployment.Spec.Replicas,
		s.deployment.Spec.Strategy.MaxSurge, s.deployment.Spec.Strategy.MaxUnavailable, "", s.world)
}

// running names the n-th machine that is not being deleted.
func (s *story) running(n int) string {
	for _, m := range s.machines {
		if !m.Deleted() {
			if n == 0 {
				return m.Name
			}
			n--
		}
	}
	return ""
}

func TestNarratives(t *testing.T) {
	for name, tell := range stories {
		t.Run(name, func(t *testing.T) {
			testkit.Golden(t, filepath.Join("testdata", name+".txt"), tell(t).text.String())
		})
	}
}

// refuseWith makes the shell's next n orders fail.
func (s *story) refuseWith(n int) {
	s.shell.refuse = func() bool { n--; return n >= 0 }
}

// failed returns the last operation of a machine that could not be created.
func failed(message string) machine.Operation {
	return machine.Operation{
		Kind: machine.OperationCreate, State: machine.StateFailed, Stage: machine.StageCreateVM,
		Code: codes.ResourceExhausted, Message: message, Time: begin,
	}
}
