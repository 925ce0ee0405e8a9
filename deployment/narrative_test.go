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
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

func replicas(n int32) func(*deployment.Spec) {
	return func(s *deployment.Spec) { s.Replicas = n }
}

// scenario is a world with a transcript of all decisions, and of what happens in between.
type scenario struct {
	*world
	shell *shell
	text  strings.Builder
}

func newScenario(t *testing.T, d *deployment.Deployment) *scenario {
	w := newWorld(d)
	s := &scenario{world: w, shell: newShell(t, w)}
	s.shell.decided = s.note
	return s
}

// comment writes down what happens.
func (s *scenario) comment(format string, args ...any) {
	fmt.Fprintf(&s.text, "\n-- "+format+"\n", args...)
}

// note writes down one decision.
func (s *scenario) note(o *deployment.Observation, p deployment.Plan) {
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

func (s *scenario) noteStatus(old, to *deployment.Status) {
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

// decide runs a pass and writes down the sets after it.
func (s *scenario) decide() {
	s.shell.pass()
	if sets := s.world.String(); sets != "" {
		fmt.Fprintf(&s.text, "%10s%s\n", "", sets)
	}
}

// pass advances the clock.
func (s *scenario) pass(d time.Duration) { s.now = s.now.Add(d) }

// runRounds lets the controllers of sets act and machines come up or disappear, for a number of rounds, with a
// pass after each.
func (s *scenario) runRounds(rounds int) {
	for range rounds {
		s.pass(time.Minute)
		s.runSetControllers()
		s.advanceMachines()
		s.decide()
	}
}

// settle lets everything converge without writing it down.
func (s *scenario) settle() {
	for range 40 {
		s.pass(time.Minute)
		s.runSetControllers()
		s.advanceMachines()
		s.shell.pass()
	}
	s.text.Reset()
	fmt.Fprintf(&s.text, "%d machines wanted, surge %s, unavailable %s\n%10s%s\n", s.deployment.Spec.Replicas,
		s.deployment.Spec.Strategy.MaxSurge, s.deployment.Spec.Strategy.MaxUnavailable, "", s.world)
}

// running names the n-th machine that is not being deleted.
func (s *scenario) running(n int) string {
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

func TestScenarios(t *testing.T) {
	for name, run := range scenarios {
		t.Run(name, func(t *testing.T) {
			testkit.Golden(t, filepath.Join("testdata", name+".txt"), run(t).text.String())
		})
	}
}

// refuseWith makes the shell's next n orders fail.
func (s *scenario) refuseWith(n int) {
	s.shell.refuse = func() bool { n--; return n >= 0 }
}

// failed returns the last operation of a machine that could not be created.
func failed(message string) machine.Operation {
	return machine.Operation{
		Kind: machine.OperationCreate, State: machine.StateFailed, Stage: machine.StageCreateVM,
		Code: codes.ResourceExhausted, Message: message, Time: begin,
	}
}

// scenarios show the behaviour, with one golden file each.
var scenarios = map[string]func(*testing.T) *scenario{
	"first-set":                     firstSet,
	"roll-with-surge":               rollWithSurge,
	"roll-with-unavailable":         rollWithUnavailable,
	"roll-stuck":                    rollStuck,
	"roll-stopped":                  rollStopped,
	"roll-reverted":                 rollReverted,
	"roll-unhealthy-first":          rollUnhealthyFirst,
	"roll-new-template-meanwhile":   rollAgain,
	"scale-up-and-down":             scaleUpAndDown,
	"scale-to-zero-and-back":        scaleToZero,
	"scale-down-while-rolling":      scaleDownWhileRolling,
	"min-ready":                     minReady,
	"node-template-changed":         nodeTemplate,
	"neither-surge-nor-unavailable": bothZero,
	"more-than-100-percent":         over100,
	"spec-invalid":                  specInvalid,
	"selecting-all":                 selectingAll,
	"adopt":                         adopt,
	"release":                       release,
	"name-taken-by-another":         nameTaken,
	"name-taken-while-creating":     nameTakenMeanwhile,
	"name-free-again":               nameFree,
	"set-deleted-by-hand":           setDeleted,
	"order-refused":                 orderRefused,
	"machines-failing":              machinesFailing,
	"size-repaired":                 sizeRepaired,
	"status-throttled":              statusThrottled,
	"deletion":                      deletion,
}

// settled returns a scenario in which the deployment has all its machines.
func settled(t *testing.T, d *deployment.Deployment) *scenario {
	s := newScenario(t, d)
	s.settle()
	return s
}

func firstSet(t *testing.T) *scenario {
	s := newScenario(t, web(3))
	s.decide()
	s.comment("the set makes its machines")
	s.pass(10 * time.Second)
	s.runSetControllers()
	s.decide()
	s.comment("they come up")
	s.pass(time.Minute)
	s.advanceMachines()
	s.decide()
	s.comment("nothing happens")
	s.pass(10 * time.Minute)
	s.decide()
	return s
}

func rollWithSurge(t *testing.T) *scenario {
	s := settled(t, web(3))
	s.comment("another class is wanted")
	s.edit(class("large"))
	s.decide()
	s.runRounds(6)
	return s
}

func rollWithUnavailable(t *testing.T) *scenario {
	d := web(4)
	d.Spec.Strategy.MaxSurge = rollout.IntOrPercent{}
	d.Spec.Strategy.MaxUnavailable = rollout.IntOrPercent{Value: 50, Percent: true}
	s := settled(t, d)
	s.comment("another class is wanted")
	s.edit(class("large"))
	s.decide()
	s.runRounds(5)
	return s
}

func rollStuck(t *testing.T) *scenario {
	s := settled(t, web(2))
	s.comment("a class is wanted whose machines never come up")
	s.edit(class("broken"))
	s.decide()
	for range 2 {
		s.pass(time.Minute)
		s.runSetControllers()
		s.decide()
	}
	return s
}

func rollStopped(t *testing.T) *scenario {
	d := web(4)
	d.Spec.Strategy = deployment.DefaultStrategy()
	d.Spec.Strategy.StopAfter.Value = 1
	s := settled(t, d)
	s.comment("another class is wanted; the first machine that fails is to stop the rollout")
	s.edit(class("large"))
	s.decide()
	s.pass(time.Minute)
	s.runSetControllers()
	s.decide()
	s.comment("one of the new machines does not join in time")
	for _, m := range s.machines {
		if m.Spec.Class.Name == "large" {
			s.setPhase(m.Name, machine.PhaseFailed)
		}
	}
	s.pass(20 * time.Minute)
	s.decide()
	s.comment("its set deletes it, and makes none; the old machines stay")
	s.runSetControllers()
	s.pass(time.Minute)
	s.decide()
	s.comment("the class is put back")
	s.edit(class("small"))
	s.decide()
	s.runRounds(4)
	return s
}

func rollReverted(t *testing.T) *scenario {
	s := settled(t, web(3))
	s.comment("another class is wanted")
	s.edit(class("large"))
	s.decide()
	s.runRounds(2)
	s.comment("no, it is not")
	s.edit(class("small"))
	s.decide()
	s.runRounds(3)
	return s
}

func rollUnhealthyFirst(t *testing.T) *scenario {
	d := web(4)
	d.Spec.Strategy.MaxUnavailable = rollout.IntOrPercent{Value: 1}
	s := settled(t, d)
	s.comment("a machine becomes unhealthy, and another class is wanted")
	s.setPhase(s.running(2), machine.PhaseUnknown)
	s.edit(class("large"))
	s.decide()
	s.comment("the old set gives up the unhealthy machine, the new ones come up")
	s.runRounds(2)
	return s
}

func rollAgain(t *testing.T) *scenario {
	s := settled(t, web(3))
	s.edit(class("large"))
	s.decide()
	s.comment("the set has announced a machine, and a third class is wanted")
	s.runSetController(s.sets[1])
	s.edit(class("huge"))
	s.decide()
	s.comment("the machine announced is made although nobody wants it any more")
	s.runSetController(s.sets[1])
	s.decide()
	s.runRounds(2)
	return s
}

func scaleUpAndDown(t *testing.T) *scenario {
	s := settled(t, web(3))
	s.comment("5 machines are wanted")
	s.edit(replicas(5))
	s.decide()
	s.runRounds(1)
	s.comment("2 machines are wanted")
	s.edit(replicas(2))
	s.decide()
	s.runRounds(1)
	return s
}

func scaleToZero(t *testing.T) *scenario {
	s := settled(t, web(2))
	s.comment("none is wanted")
	s.edit(replicas(0))
	s.decide()
	s.runRounds(2)
	s.comment("2 are wanted again, and nothing else is different")
	s.edit(replicas(2))
	s.decide()
	s.runRounds(1)
	return s
}

func scaleDownWhileRolling(t *testing.T) *scenario {
	d := web(8)
	d.Spec.Strategy.MaxSurge = rollout.IntOrPercent{Value: 25, Percent: true}
	s := settled(t, d)
	s.comment("another class is wanted")
	s.edit(class("large"))
	s.decide()
	s.runRounds(2)
	s.comment("and 4 machines only")
	s.edit(replicas(4))
	s.decide()
	s.runRounds(4)
	return s
}

func minReady(t *testing.T) *scenario {
	d := web(2)
	d.Spec.MinReady = 30 * time.Second
	s := newScenario(t, d)
	s.decide()
	s.comment("the machines are there and run")
	s.runSetControllers()
	s.advanceMachines()
	s.pass(10 * time.Second)
	s.decide()
	s.comment("the time has come")
	s.pass(s.shell.last.At.Sub(s.now))
	s.decide()
	return s
}

func nodeTemplate(t *testing.T) *scenario {
	s := settled(t, web(3))
	s.comment("nodes should carry another label, and creation may take longer")
	s.pass(time.Minute)
	s.edit(func(spec *deployment.Spec) {
		spec.Template.Spec.NodeTemplate.Labels = map[string]string{"pool": "a"}
		spec.Template.Spec.Config.CreationTimeout = time.Hour
	})
	s.decide()
	return s
}

func bothZero(t *testing.T) *scenario {
	d := web(2)
	d.Spec.Strategy = deployment.Strategy{Kind: deployment.RollingUpdate}
	s := settled(t, d)
	s.comment("another class is wanted")
	s.edit(class("large"))
	s.decide()
	s.runRounds(3)
	return s
}

func over100(t *testing.T) *scenario {
	d := web(2)
	d.Spec.Strategy.MaxSurge = rollout.IntOrPercent{Value: 200, Percent: true}
	s := settled(t, d)
	s.comment("another class is wanted")
	s.edit(class("large"))
	s.decide()
	s.runRounds(2)
	return s
}

func specInvalid(t *testing.T) *scenario {
	s := settled(t, web(3))
	s.comment("fewer than no machines are wanted")
	s.edit(replicas(-1))
	s.decide()
	s.comment("a machine goes meanwhile")
	s.pass(time.Minute)
	s.deleteMachine(s.running(0))
	s.decide()
	s.comment("3 are wanted again")
	s.pass(time.Minute)
	s.edit(replicas(3))
	s.decide()
	return s
}

func selectingAll(t *testing.T) *scenario {
	d := web(3)
	d.Spec.Selector = object.Selector{}
	s := newScenario(t, d)
	s.orphan("stray", "small", 2)
	s.decide()
	s.comment("nothing happens")
	s.pass(time.Minute)
	s.decide()
	return s
}

// orphan creates a set without an owner, with n running machines.
func (s *scenario) orphan(name, class string, n int) *machineset.Set {
	spec := web(0).Spec.Template
	spec.Spec.Class.Name = class
	set := &machineset.Set{}
	set.Namespace, set.Name, set.Labels = namespace, name, map[string]string{"app": "web"}
	set.Instructions.Reservation = machineset.Reservation{Settled: int64(n), Reserved: int64(n)}
	set.Spec = machineset.Spec{Replicas: int32(n), Selector: web(0).Spec.Selector.Clone(), Template: spec}
	stored, err := s.createSet(set)
	if err != nil {
		s.shell.t.Fatalf("orphan %s: %v", name, err)
	}
	for i := range n {
		s.addMachine(stored, stored.MachineName(int64(i+1)), machine.PhaseRunning)
	}
	return stored
}

func adopt(t *testing.T) *scenario {
	s := newScenario(t, web(3))
	s.deployment.CreatedAt = begin.Add(time.Minute) // it comes to machines that are there
	s.orphan("web-legacy", "small", 2)
	s.orphan("web-older", "tiny", 1)
	s.decide()
	s.runRounds(2)
	return s
}

func release(t *testing.T) *scenario {
	s := settled(t, web(2))
	s.comment("somebody takes the label off the set that the deployment selects")
	s.changeSet(s.sets[0].Name, func(set *machineset.Set) { set.Labels = map[string]string{"app": "kept aside"} })
	s.decide()
	s.runRounds(2)
	return s
}

func nameTaken(t *testing.T) *scenario {
	probe := settled(t, web(1))
	s := newScenario(t, web(1))
	taken := s.orphan(probe.sets[0].Name, "small", 0)
	s.changeSet(taken.Name, func(set *machineset.Set) {
		set.Owner = &object.Owner{Kind: "Other", Name: "other", UID: "other"}
	})
	s.comment("a set that belongs to something else has the name")
	s.decide()
	s.runRounds(1)
	return s
}

func nameTakenMeanwhile(t *testing.T) *scenario {
	s := newScenario(t, web(1))
	s.comment("a create by a process that is gone arrives between the live read and the create")
	s.shell.issue = func(kind string, order deployment.Order, _ *deployment.Deployment) {
		if kind == "create" {
			s.shell.issue = nil
			if _, err := s.createSet(order.Set); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.decide()
	s.pass(s.shell.last.At.Sub(s.now))
	s.decide()
	return s
}

func nameFree(t *testing.T) *scenario {
	s := newScenario(t, web(1))
	s.comment("the name is answered to be taken, but nothing is found under it")
	s.shell.issue = func(kind string, order deployment.Order, _ *deployment.Deployment) {
		if kind == "create" {
			s.shell.issue = nil
			s.shell.queue = append(s.shell.queue, func() bool {
				s.dropSet(order.Set.Name)
				s.shell.replace(s.shell.o.Sets[0].Set.UID, nil)
				s.shell.o.Taken = &deployment.Taken{Name: order.Set.Name}
				return true
			})
		}
	}
	s.decide()
	s.pass(s.shell.last.At.Sub(s.now))
	s.decide()
	return s
}

func setDeleted(t *testing.T) *scenario {
	s := settled(t, web(2))
	s.comment("somebody deletes the set")
	if err := s.deleteSet(s.sets[0].Name, s.sets[0].UID); err != nil {
		t.Fatal(err)
	}
	s.pass(time.Minute)
	s.decide()
	s.runRounds(3)
	return s
}

func orderRefused(t *testing.T) *scenario {
	s := settled(t, web(3))
	s.comment("5 machines are wanted, and the store refuses")
	s.edit(replicas(5))
	s.refuseWith(2)
	s.decide()
	s.comment("again")
	s.pass(s.shell.last.At.Sub(s.now))
	s.decide()
	s.comment("and again")
	s.pass(s.shell.last.At.Sub(s.now))
	s.decide()
	return s
}

func machinesFailing(t *testing.T) *scenario {
	s := newScenario(t, web(2))
	s.decide()
	s.runSetControllers()
	s.comment("the provider has no room, the set says so")
	for _, m := range s.machines {
		s.changeMachine(m.Name, func(m *machine.Machine) {
			m.Status.Phase, m.Status.LastOperation = machine.PhaseCrashLoopBackOff, failed("no room")
		})
	}
	s.changeSet(s.sets[0].Name, func(set *machineset.Set) {
		set.Status.Conditions = []object.Condition{{
			Type: machineset.ConditionReplicaFailure, Status: object.True, Reason: "CreateFailed", Message: "2 machines: no room", Since: begin,
		}}
	})
	s.pass(time.Minute)
	s.decide()
	s.comment("room is made")
	s.changeSet(s.sets[0].Name, func(set *machineset.Set) { set.Status.Conditions = nil })
	for _, m := range s.machines {
		s.changeMachine(m.Name, func(m *machine.Machine) { m.Status.LastOperation = machine.Operation{} })
		s.setPhase(m.Name, machine.PhaseRunning)
	}
	s.pass(time.Minute)
	s.decide()
	return s
}

func sizeRepaired(t *testing.T) *scenario {
	s := settled(t, web(2))
	s.comment("somebody gives the set a size that means nothing")
	s.changeSet(s.sets[0].Name, func(set *machineset.Set) { set.Spec.Replicas = -7 })
	s.decide()
	return s
}

func statusThrottled(t *testing.T) *scenario {
	s := settled(t, web(2))
	s.comment("a machine becomes unhealthy, and another one 300 ms later")
	s.pass(time.Minute)
	s.setPhase(s.running(0), machine.PhaseUnknown)
	s.decide()
	s.pass(300 * time.Millisecond)
	s.setPhase(s.running(1), machine.PhaseUnknown)
	s.decide()
	s.comment("the interval is over")
	s.pass(700 * time.Millisecond)
	s.decide()
	return s
}

func deletion(t *testing.T) *scenario {
	s := settled(t, web(2))
	s.edit(class("large"))
	s.decide()
	s.comment("the deployment is deleted")
	s.pass(time.Minute)
	s.deleteDeployment()
	s.decide()
	s.comment("the sets delete their machines")
	s.pass(time.Minute)
	s.runSetControllers()
	s.decide()
	s.comment("these go, and then the sets")
	s.pass(time.Minute)
	s.advanceMachines()
	s.runSetControllers()
	s.decide()
	return s
}
