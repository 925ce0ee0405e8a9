package machineset_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// scenario runs one process in a world, and writes down what happens.
type scenario struct {
	t *testing.T
	w *world
	p *process
	b strings.Builder // what is compared with the golden file
}

// playScenario compares what a scenario writes down with testdata/<name>.golden.
func playScenario(t *testing.T, name string, replicas int32, play func(*scenario)) {
	t.Run(name, func(t *testing.T) {
		s := &scenario{t: t, w: newWorld(newSet(replicas))}
		s.w.now = morning.Add(250 * time.Millisecond)
		s.p = newProcess(s.w, machineset.DefaultPolicy())
		s.p.trace = func(verb, name, why string) {
			switch {
			case verb == "wait" && !s.p.plan.At.IsZero():
				verb, name = "wait", "until "+s.p.plan.At.Format("15:04:05")
			case verb == "wait":
				name = "for a change"
			}
			s.line(verb, name, why)
		}
		play(s)
		testkit.Golden(t, filepath.Join("testdata", name+".golden"), s.b.String())
	})
}

func (s *scenario) line(verb, name, text string) {
	line := fmt.Sprintf("%s  %-7s %s", s.w.now.Format("15:04:05"), verb, text)
	if name != "" {
		line = fmt.Sprintf("%s  %-7s %s: %s", s.w.now.Format("15:04:05"), verb, name, text)
	}
	s.b.WriteString(strings.TrimRight(line, " ") + "\n")
}

// comment writes down what happens to the set from outside.
func (s *scenario) comment(format string, args ...any) {
	fmt.Fprintf(&s.b, "\n# %s\n", fmt.Sprintf(format, args...))
}

// pass makes one pass and writes down what the set says afterwards.
func (s *scenario) pass() {
	s.t.Helper()
	require.True(s.t, s.p.run())
	require.NoError(s.t, s.p.err)
	s.state()
}

func (s *scenario) state() {
	set := s.w.set
	if set == nil {
		s.b.WriteString("          the set is gone\n")
		return
	}
	st := &set.Status
	fmt.Fprintf(&s.b, "          status: %d machines, %d fully labeled, %d ready, %d available, generation %d; names: %d settled, %d reserved\n",
		st.Replicas, st.FullyLabeled, st.Ready, st.Available, st.ObservedGeneration,
		set.Instructions.Reservation.Settled, set.Instructions.Reservation.Reserved)
	for _, c := range st.Conditions {
		fmt.Fprintf(&s.b, "          condition %s %s, %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	for _, f := range st.Failed {
		fmt.Fprintf(&s.b, "          failed machine %s %s of %s: %s %s\n", f.Name, f.ProviderID, f.Owner, f.LastOperation.Code, f.LastOperation.Message)
	}
	if op := &st.LastOperation; op.Kind != "" {
		fmt.Fprintf(&s.b, "          last operation %s %s %s\n", op.Kind, op.State, op.Message)
	}
}

// after lets time go by and makes another pass.
func (s *scenario) after(d time.Duration) {
	s.t.Helper()
	s.w.advance(d)
	s.pass()
}

// runAll creates all machines and has them run, without writing that down.
func (s *scenario) runAll() {
	s.t.Helper()
	trace := s.p.trace
	s.p.trace = nil
	for range 3 {
		require.True(s.t, s.p.run())
		s.markRunning(machineNames(s.w.all())...)
		s.w.advance(time.Minute)
	}
	s.p.trace = trace
	s.comment("%d machines run", len(s.w.all()))
	s.state()
}

func machineNames(machines []*machine.Machine) []string {
	var out []string
	for _, m := range machines {
		out = append(out, m.Name)
	}
	return out
}

// markRunning sets the phase of machines to Running.
func (s *scenario) markRunning(names ...string) {
	for _, name := range names {
		s.w.phase(name, machine.PhaseRunning)
	}
}

func (s *scenario) name(ordinal int64) string { return newSet(0).MachineName(ordinal) }

func (s *scenario) scale(replicas int32) {
	s.comment("scaled to %d", replicas)
	s.w.edit(func(set *machineset.Set) { set.Spec.Replicas = replicas })
}

// faults has the next calls of a verb meet these faults, one each.
func (s *scenario) faults(verb string, next ...fault) {
	s.p.fault = func(called string) fault {
		if called != verb || len(next) == 0 {
			return fine
		}
		f := next[0]
		next = next[1:]
		return f
	}
}

// orphan puts a machine without an owner into the store.
func (s *scenario) orphan(name string, labels map[string]string) {
	m := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: namespace, Name: name}, Labels: labels}}
	m.Spec.Class.Name = "small"
	s.w.createMachine(m)
}

// TestCreation shows how machines are created.
func TestCreation(t *testing.T) {
	playScenario(t, "create-five", 5, func(s *scenario) {
		s.pass()
		s.comment("all five run")
		s.w.advance(2 * time.Minute)
		s.markRunning(machineNames(s.w.all())...)
		s.pass()
	})
	playScenario(t, "create-in-bursts", 7, func(s *scenario) {
		s.p.policy.Burst = 3
		s.pass()
	})
	playScenario(t, "create-refused", 5, func(s *scenario) {
		s.comment("the store refuses the third create")
		s.faults("create", fine, fine, refuse)
		s.pass()
		s.comment("too early")
		s.after(2 * time.Second)
		s.comment("refused again, so the next wait is twice as long")
		s.faults("create", refuse)
		s.after(4 * time.Second)
		s.comment("the store has recovered")
		s.after(11 * time.Second)
	})
	playScenario(t, "create-unheard", 3, func(s *scenario) {
		s.comment("the first create takes effect, but its answer is lost")
		s.faults("create", lose)
		s.pass()
		s.after(6 * time.Second)
	})
	playScenario(t, "minimum-ready-time", 1, func(s *scenario) {
		s.w.edit(func(set *machineset.Set) { set.Spec.MinReady = 30 * time.Second })
		s.pass()
		s.comment("it runs")
		s.w.advance(time.Minute)
		s.markRunning(s.name(1))
		s.pass()
		s.comment("a look too early changes nothing")
		s.after(29 * time.Second)
		s.after(2 * time.Second)
	})
	playScenario(t, "status-not-twice-a-second", 2, func(s *scenario) {
		s.pass()
		s.markRunning(s.name(1))
		s.pass()
		s.after(time.Second)
	})
}

// TestCrashes shows that nothing is created twice.
func TestCrashes(t *testing.T) {
	playScenario(t, "crash-after-reservation", 3, func(s *scenario) {
		s.comment("the process dies at its second create")
		s.faults("create", fine, crash)
		s.pass()
		s.comment("another takes over")
		s.after(20 * time.Second)
	})
	playScenario(t, "crash-before-settlement", 2, func(s *scenario) {
		s.comment("the process dies before it can note that all went well")
		s.faults("update", fine, fine, crash)
		s.pass()
		s.comment("another sees the machines in its cache")
		s.after(20 * time.Second)
	})
	playScenario(t, "late-create", 3, func(s *scenario) {
		s.comment("the second create is still under way when the process dies")
		s.p.delay = func() time.Duration { return 90 * time.Second }
		s.faults("create", fine, lateCrash)
		s.pass()
		s.comment("another takes over: the late create will find its name taken")
		s.after(20 * time.Second)
		s.comment("it has come in")
		s.after(80 * time.Second)
	})
	playScenario(t, "late-create-overtakes", 2, func(s *scenario) {
		s.comment("a create comes in between a live read and a create under the same name")
		s.faults("create", crash)
		s.pass()
		s.p.fault = func(verb string) fault {
			if verb == "create" && s.w.machines[s.name(1)] == nil {
				s.w.createMachine(s.p.plan.Create[0].Machine)
			}
			return fine
		}
		s.after(20 * time.Second)
	})
	playScenario(t, "nobody-for-a-long-time", 3, func(s *scenario) {
		s.comment("the process dies, and for three minutes there is no other")
		s.faults("create", fine, crash)
		s.pass()
		s.comment("too late to use the names, too early to be sure that nothing comes of them")
		s.after(3 * time.Minute)
		s.after(s.p.wait.At.Sub(s.w.now))
	})
	playScenario(t, "name-taken", 2, func(s *scenario) {
		s.orphan(s.name(1), map[string]string{"pool": "something else"})
		s.pass()
	})
	playScenario(t, "stale-cache", 3, func(s *scenario) {
		s.pass()
		s.comment("a process whose cache shows the set before all this")
		s.p.cached = func(_, newest int) int { return 1 }
		s.p.floor = 0
		s.pass()
		s.comment("and one whose cache shows the machines of that time")
		n := 0
		s.p.cached = func(_, newest int) int {
			n++
			if n%2 == 1 {
				return newest
			}
			return 1
		}
		s.pass()
	})
	playScenario(t, "shrunk-meanwhile", 4, func(s *scenario) {
		s.comment("the process dies at its second create, and the set is scaled down")
		s.faults("create", fine, crash)
		s.pass()
		s.scale(2)
		s.after(10 * time.Second)
		s.scale(4)
		s.comment("the names are still there to be used")
		s.after(10 * time.Second)
	})
}

// TestAdoptAndRelease shows which machines a set adopts, releases and updates.
func TestAdoptAndRelease(t *testing.T) {
	playScenario(t, "adopt", 3, func(s *scenario) {
		s.orphan("stray", map[string]string{"pool": "web"})
		s.orphan("going", map[string]string{"pool": "web"})
		s.w.change("going", func(m *machine.Machine) { m.DeletedAt = s.w.now })
		s.orphan("other", map[string]string{"pool": "db"})
		s.pass()
	})
	playScenario(t, "release", 2, func(s *scenario) {
		s.runAll()
		s.comment("the first is taken out by its label, to be looked into")
		s.w.change(s.name(1), func(m *machine.Machine) { m.Labels["pool"] = "quarantine" })
		s.pass()
	})
	playScenario(t, "release-by-requirement", 2, func(s *scenario) {
		s.w.edit(func(set *machineset.Set) {
			set.Spec.Selector.Requirements = []object.Requirement{{Key: "broken", Operator: object.DoesNotExist}}
		})
		s.runAll()
		s.comment("the second has all labels of the template, and one that the selector forbids")
		s.w.change(s.name(2), func(m *machine.Machine) { m.Labels["broken"] = "yes" })
		s.pass()
	})
	playScenario(t, "push", 2, func(s *scenario) {
		s.runAll()
		s.comment("the node template gets another label")
		s.w.edit(func(set *machineset.Set) { set.Spec.Template.Spec.NodeTemplate.Labels["zone"] = "b" })
		s.pass()
		s.comment("the configuration changes")
		s.w.edit(func(set *machineset.Set) { set.Spec.Template.Spec.Config.DrainTimeout = time.Hour })
		s.pass()
		s.comment("another class is a matter for a rollout, not for this")
		s.w.edit(func(set *machineset.Set) { set.Spec.Template.Spec.Class.Name = "large" })
		s.after(time.Minute)
	})
	playScenario(t, "push-refused", 2, func(s *scenario) {
		s.runAll()
		s.comment("the node template changes, the store refuses it for one machine; and one more is wanted")
		s.w.edit(func(set *machineset.Set) {
			set.Spec.Template.Spec.NodeTemplate.Taints = []object.Taint{{Key: "busy", Effect: object.NoSchedule}}
			set.Spec.Replicas = 3
		})
		s.faults("push", refuse)
		s.pass()
		s.after(6 * time.Second)
	})
}

// TestMachineDeletion shows which machines are deleted, and when.
func TestMachineDeletion(t *testing.T) {
	playScenario(t, "scale-down", 6, func(s *scenario) {
		s.runAll()
		s.comment("one does not run, one may go first, one rather not")
		s.w.phase(s.name(5), machine.PhaseUnknown)
		s.w.change(s.name(4), func(m *machine.Machine) { m.Annotations[priorityKey] = "1" })
		s.w.change(s.name(1), func(m *machine.Machine) { m.Annotations[priorityKey] = "9" })
		s.pass()
		s.scale(2)
		s.pass()
		s.comment("they are gone")
		s.w.removeDeleted()
		s.after(time.Minute)
	})
	playScenario(t, "scale-down-while-one-is-going", 4, func(s *scenario) {
		s.runAll()
		s.comment("one is deleted by hand, and the set scaled to the three that are left")
		s.w.deleteMachine(s.name(2), s.w.machines[s.name(2)].UID)
		s.scale(3)
		s.pass()
	})
	playScenario(t, "delete-refused", 4, func(s *scenario) {
		s.runAll()
		s.scale(2)
		s.comment("the store refuses the first delete; the second is not its business")
		s.faults("delete", refuse)
		s.pass()
		s.after(6 * time.Second)
	})
	playScenario(t, "failed-replaced", 3, func(s *scenario) {
		s.runAll()
		s.comment("one fails for good, another is being tried again")
		s.w.phase(s.name(2), machine.PhaseFailed)
		s.w.phase(s.name(3), machine.PhaseCrashLoopBackOff)
		s.pass()
		s.comment("the failed one is gone, the other runs")
		s.w.removeDeleted()
		s.markRunning(s.name(3), s.name(4))
		s.after(time.Minute)
	})
	playScenario(t, "scaled-down-with-a-failed-one", 5, func(s *scenario) {
		s.runAll()
		s.comment("one of five fails, and three are wanted")
		s.w.phase(s.name(4), machine.PhaseFailed)
		s.scale(3)
		s.pass()
		s.comment("both are gone")
		s.w.removeDeleted()
		s.after(time.Minute)
	})
	playScenario(t, "set-deleted", 3, func(s *scenario) {
		s.runAll()
		s.w.phase(s.name(2), machine.PhaseFailed)
		s.delete()
		s.pass()
		s.comment("two of the machines are gone")
		s.w.vanish(s.name(1))
		s.w.vanish(s.name(2))
		s.after(time.Minute)
		s.comment("the last one too")
		s.w.removeDeleted()
		s.after(time.Minute)
	})
	playScenario(t, "set-deleted-without-its-machines", 2, func(s *scenario) {
		s.runAll()
		s.w.edit(func(set *machineset.Set) { set.Finalizers = append(set.Finalizers, object.OrphanDependents) })
		s.delete()
		s.pass()
		s.comment("nobody owns the machines any more, and the garbage collector is done with the set")
		s.w.change(s.name(1), func(m *machine.Machine) { m.Owner = nil })
		s.w.change(s.name(2), func(m *machine.Machine) { m.Owner = nil })
		s.w.edit(func(set *machineset.Set) { set.RemoveFinalizer(object.OrphanDependents) })
		s.pass()
	})
	playScenario(t, "set-deleted-during-creation", 2, func(s *scenario) {
		s.comment("the process dies with a create under way")
		s.p.delay = func() time.Duration { return 110 * time.Second }
		s.faults("create", lateCrash)
		s.pass()
		s.delete()
		s.after(10 * time.Second)
		s.comment("the create has come in")
		s.after(100 * time.Second)
		s.comment("its machine is gone, and others might still come")
		s.w.removeDeleted()
		s.after(time.Second)
		s.after(s.p.wait.At.Sub(s.w.now))
	})
}

func (s *scenario) delete() {
	s.comment("the set is deleted")
	s.w.edit(func(set *machineset.Set) { set.DeletedAt = s.w.now.Truncate(time.Second) })
}

// TestNoCreation shows when a set creates no machines.
// Invariants: P25
func TestNoCreation(t *testing.T) {
	playScenario(t, "frozen", 3, func(s *scenario) {
		s.runAll()
		s.comment("frozen; one fails")
		s.p.frozen = true
		s.w.phase(s.name(2), machine.PhaseFailed)
		s.pass()
		s.comment("scaled down all the same")
		s.scale(1)
		s.after(2 * time.Second)
		s.comment("thawed, and scaled up")
		s.p.frozen = false
		s.scale(2)
		s.after(time.Minute)
	})
	playScenario(t, "frozen-during-creation", 3, func(s *scenario) {
		s.comment("the process dies at its second create, and the fleet is frozen")
		s.faults("create", fine, crash)
		s.pass()
		s.p.frozen = true
		s.after(20 * time.Second)
		s.comment("thawed in time")
		s.p.frozen = false
		s.after(20 * time.Second)
	})
	playScenario(t, "refused-then-frozen", 1, func(s *scenario) {
		s.faults("create", refuse)
		s.pass()
		s.comment("frozen: nobody knows whether it would succeed now")
		s.p.frozen = true
		s.after(time.Minute)
		s.comment("thawed")
		s.p.frozen = false
		s.after(30 * time.Second)
	})
	playScenario(t, "refused-then-changed", 1, func(s *scenario) {
		s.faults("create", refuse)
		s.pass()
		s.comment("its owner corrects the template: no need to wait")
		s.w.edit(func(set *machineset.Set) { set.Spec.Template.Spec.Class.Name = "large" })
		s.after(time.Second)
	})
	playScenario(t, "scale-up-disabled", 1, func(s *scenario) {
		s.runAll()
		s.w.edit(func(set *machineset.Set) {
			set.Labels = map[string]string{"node.machine.sapcloud.io/scale-up-disabled": "true"}
		})
		s.scale(2)
		s.pass()
	})
	playScenario(t, "invalid", 2, func(s *scenario) {
		s.comment("the selector does not match the template")
		s.w.edit(func(set *machineset.Set) { set.Spec.Template.Labels["pool"] = "db" })
		s.pass()
		s.pass()
		s.comment("put right")
		s.w.edit(func(set *machineset.Set) { set.Spec.Template.Labels["pool"] = "web" })
		s.pass()
	})
	playScenario(t, "invalid-and-deleted", 1, func(s *scenario) {
		s.runAll()
		s.w.edit(func(set *machineset.Set) { set.Spec.Selector = object.Selector{} })
		s.pass()
		s.delete()
		s.w.advance(time.Second)
		s.pass()
	})
}
