package deployment_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// enableVMUpdates makes VMs updatable: small, small-b and small-c differ only in what can be updated, and so do large
// and large-b.
func (w *world) enableVMUpdates() {
	w.hot = map[string]machine.VMSpec{}
	for _, name := range []string{"small", "small-b", "small-c", "large", "large-b"} {
		w.hot[name] = machine.VMSpec{Declared: "tags", Fixed: name[:5], Updatable: name}
	}
}

// hotUpdate returns the HotUpdate that a caller would read from the classes.
func (w *world) hotUpdate(o *deployment.Observation) *deployment.HotUpdate {
	to := o.Deployment.Spec.Template.Spec.Class.Name
	if w.hot == nil || w.hot[to] == (machine.VMSpec{}) {
		return nil
	}
	hot := &deployment.HotUpdate{Class: o.Deployment.Spec.Template.Spec.Class, Spec: w.hot[to]}
	for name, spec := range w.hot {
		if name != to && spec.Fixed == hot.Spec.Fixed {
			hot.From = append(hot.From, name)
		}
	}
	slices.Sort(hot.From)
	return hot
}

// updateVM gives one machine with an outdated class the class of its set, or one with an outdated VM the spec of its
// class. False: there is none.
func (w *world) updateVM() bool {
	for _, set := range w.sets {
		want := set.Spec.Template.Spec.Class.Name
		for _, m := range w.machinesOf(set.UID) {
			have := m.Spec.Class.Name
			switch {
			case have != want && slices.Contains(set.Instructions.PreviousClasses, have):
				w.changeMachine(m.Name, func(m *machine.Machine) { m.Spec.Class.Name = want })
				return true
			case m.Status.VMSpec != w.hot[have]:
				w.changeMachine(m.Name, func(m *machine.Machine) { m.Status.VMSpec = w.hot[have] })
				return true
			}
		}
	}
	return false
}

var hotStories = map[string]func(*testing.T) *scenario{
	"class-exchanged":              classExchanged,
	"class-exchanged-amid-rollout": classExchangedAmid,
	"class-exchanged-when-resumed": classExchangedPaused,
	"class-of-another-size":        classNotExchanged,
	"class-exchanged-and-returned": classReturned,
	"class-updates-fail":           classUpdatesFail,
}

// settledWithVMUpdates returns a settled deployment of three whose VMs can be updated.
func settledWithVMUpdates(t *testing.T) *scenario {
	s := newScenario(t, web(3))
	s.enableVMUpdates()
	s.settle()
	return s
}

func (s *scenario) vms(n int) {
	for range n {
		s.updateVM()
	}
}

func classExchanged(t *testing.T) *scenario {
	s := settledWithVMUpdates(t)
	s.comment("the template names class small-b, with other tags")
	s.edit(class("small-b"))
	s.decide()
	s.comment("the set hands the class to its machines, and one VM is updated")
	s.pass(time.Minute)
	s.vms(4)
	s.decide()
	s.comment("the others are")
	s.pass(time.Minute)
	s.vms(10)
	s.decide()
	require.Equal(t, 1, s.setsCreated)
	return s
}

func classExchangedAmid(t *testing.T) *scenario {
	s := settledWithVMUpdates(t)
	s.comment("the template names class large")
	s.edit(class("large"))
	s.decide()
	s.runRounds(1)
	s.comment("amid the rollout it names large-b: the new set gets that, and the rollout goes on")
	s.edit(class("large-b"))
	s.decide()
	s.vms(10)
	s.runRounds(2)
	require.Equal(t, 2, s.setsCreated)
	return s
}

func classExchangedPaused(t *testing.T) *scenario {
	s := settledWithVMUpdates(t)
	s.comment("paused, and the template names class small-b")
	s.edit(func(spec *deployment.Spec) { spec.Paused, spec.Template.Spec.Class.Name = true, "small-b" })
	s.decide()
	s.comment("resumed")
	s.pass(time.Minute)
	s.edit(func(spec *deployment.Spec) { spec.Paused = false })
	s.decide()
	return s
}

func classNotExchanged(t *testing.T) *scenario {
	s := settledWithVMUpdates(t)
	s.comment("the class of one machine was changed in its size after it was made")
	s.changeMachine(s.running(1), func(m *machine.Machine) { m.Status.VMSpec.Fixed = "tiny" })
	s.decide()
	s.comment("the template names class small-b: that machine can't be brought there, so all are replaced")
	s.pass(time.Minute)
	s.edit(class("small-b"))
	s.decide()
	s.runRounds(1)
	return s
}

func classReturned(t *testing.T) *scenario {
	s := settledWithVMUpdates(t)
	s.edit(class("small-b"))
	s.shell.pass()
	s.vms(10)
	s.settle()
	s.comment("back to class small")
	s.edit(class("small"))
	s.decide()
	s.vms(10)
	s.settle()
	s.comment("a rollback to revision 1 finds that its template is in no set any more")
	s.edit(func(spec *deployment.Spec) { spec.RollbackTo = &deployment.Rollback{Revision: 1} })
	s.decide()
	require.Equal(t, 1, s.setsCreated)
	return s
}

func classUpdatesFail(t *testing.T) *scenario {
	s := settledWithVMUpdates(t)
	s.edit(class("small-b"))
	s.shell.pass()
	s.vms(3)
	s.comment("the machines have class small-b, and the first update fails")
	s.pass(time.Minute)
	s.changeMachine(s.running(2), func(m *machine.Machine) {
		m.Status.LastOperation = machine.Operation{
			Kind: machine.OperationUpdate, State: machine.StateFailed, Stage: machine.StageUpdateVM,
			Code: codes.InvalidArgument, Message: "no such tag", Time: s.second(),
		}
	})
	s.decide()
	s.comment("paused")
	s.pass(time.Minute)
	s.edit(func(spec *deployment.Spec) { spec.Paused = true })
	s.decide()
	return s
}

func init() {
	for name, run := range hotStories {
		scenarios[name] = run
	}
}

// TestP4NoRolloutForWhatCanBeUpdated: while templates differ only in updatable fields, no set is created and no machine
// is replaced, even with stale reads, refusals and crashes. In the end all machines have the class that is wanted last.
// A change to a class with other differences replaces all machines.
// Invariants: P4
func TestP4NoRolloutForWhatCanBeUpdated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(web(rapid.Int32Range(1, 4).Draw(t, "replicas")))
		w.enableVMUpdates()
		w.deployment.Spec.Strategy = drawStrategy(t)
		shell := newShell(t, w)
		w.convergeWith(shell)
		before := slices.Clone(w.machines)
		startShell := func() {
			shell = newShell(t, w)
			shell.age = func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "age") }
			shell.refuse = func() bool { return rapid.IntRange(0, 9).Draw(t, "refused") == 0 }
		}
		startShell()
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "event") {
			case 0:
				w.edit(class(rapid.SampledFrom([]string{"small", "small-b", "small-c"}).Draw(t, "class")))
			case 1:
				startShell()
			case 2:
				w.updateVM()
			case 3:
				w.runSetControllers()
			case 4:
				w.now = w.now.Add(10 * time.Second)
			default:
				shell.step()
			}
			require.Equal(t, 1, w.setsCreated, "a set was created although the VMs can be updated")
		}
		w.convergeWith(newShell(t, w))
		for _, m := range before {
			i := slices.IndexFunc(w.machines, func(n *machine.Machine) bool { return n.UID == m.UID && !n.Deleted() })
			require.GreaterOrEqual(t, i, 0, "machine %s was replaced", m.Name)
			require.Equal(t, w.deployment.Spec.Template.Spec.Class, w.machines[i].Spec.Class)
		}
		require.Zero(t, w.deployment.Status.Outdated)
		require.Equal(t, w.deployment.Revision, w.sets[0].Revision)
		if w.deployment.Spec.Strategy.Kind == deployment.InPlaceUpdate {
			return
		}
		w.edit(class("large"))
		w.convergeWith(newShell(t, w))
		require.Equal(t, 2, w.setsCreated, "no set was created although the VMs can't be updated")
		for _, m := range before {
			require.False(t, slices.ContainsFunc(w.machines, func(n *machine.Machine) bool { return n.UID == m.UID && !n.Deleted() }))
		}
	})
}

// convergeWith lets everything converge.
func (w *world) convergeWith(shell *shell) {
	for range 30 {
		w.now = w.now.Add(time.Minute)
		shell.pass()
		w.runSetControllers()
		w.advanceMachines()
		for w.updateVM() {
		}
	}
}

// reachable returns the set that may get the template's class, by a slow and simple computation: the set with the
// highest revision, the youngest of several, if only its class differs from the template and each of its VMs can be
// updated. Nil: there is none.
func reachable(o *deployment.Observation) *machineset.Set {
	var last *deployment.Children
	for i := range o.Sets {
		if c := &o.Sets[i]; !c.Set.Deleted() && (last == nil || madeLater(c.Set, last.Set)) {
			last = c
		}
	}
	if last == nil || o.HotUpdate == nil || o.HotUpdate.Class != o.Deployment.Spec.Template.Spec.Class || !slices.Contains(o.HotUpdate.From, last.Set.Spec.Template.Spec.Class.Name) {
		return nil
	}
	for _, m := range last.Machines {
		if !m.Deleted() && !vmUpdatable(m, last.Set, &o.HotUpdate.Spec) {
			return nil
		}
	}
	return last.Set
}

// exchangeable returns the UID of the set that gets the template's class now. Empty: none.
func exchangeable(o *deployment.Observation) string {
	want := reachable(o)
	if want == nil || want.Spec.Template.Spec.Class.APIGroup != "" || o.Deployment.Spec.Paused || o.Frozen {
		return ""
	}
	return want.UID
}

func madeLater(a, b *machineset.Set) bool {
	switch {
	case a.Revision != b.Revision:
		return a.Revision > b.Revision
	case !a.CreatedAt.Equal(b.CreatedAt):
		return a.CreatedAt.After(b.CreatedAt)
	}
	return a.Name > b.Name
}

// vmUpdatable reports whether a machine's VM can be updated to a spec, or will be created from a class that can.
func vmUpdatable(m *machine.Machine, of *machineset.Set, want *machine.VMSpec) bool {
	have := m.Status.VMSpec
	if have == (machine.VMSpec{}) {
		return m.Spec.ProviderID == "" && m.Spec.Class.Name == of.Spec.Template.Spec.Class.Name
	}
	return have.Fixed == want.Fixed && have.Declared == want.Declared
}

// TestP4ClassesAreExchangedIfTheyCanBe: the newest set gets the template's class exactly if all its
// VMs can be updated to it, and no other set ever does.
// Invariants: P4
func TestP4ClassesAreExchangedIfTheyCanBe(t *testing.T) {
	spec := machine.VMSpec{Declared: "tags", Fixed: "f", Updatable: "u"}
	rapid.Check(t, func(t *rapid.T) {
		o := drawLive(t)
		o.Frozen = rapid.IntRange(0, 5).Draw(t, "frozen") == 0
		if rapid.IntRange(0, 5).Draw(t, "hot") > 0 {
			about := o.Deployment.Spec.Template.Spec.Class
			if rapid.IntRange(0, 9).Draw(t, "about another class") == 0 { // as if the template was rolled back since it was read
				about.Name += "-before"
			}
			o.HotUpdate = &deployment.HotUpdate{Class: about, Spec: spec, From: rapid.SliceOfN(rapid.SampledFrom([]string{"large", "huge"}), 0, 2).Draw(t, "from")}
		}
		for _, c := range o.Sets {
			c.Set.Spec.Template.Spec.Class.APIGroup = rapid.SampledFrom([]string{"", "", "", "other"}).Draw(t, "group")
			for _, m := range c.Machines {
				m.Spec.Class.Name = rapid.SampledFrom([]string{c.Set.Spec.Template.Spec.Class.Name, "large"}).Draw(t, "class")
				m.Spec.ProviderID = rapid.SampledFrom([]string{"", "p://1"}).Draw(t, "id")
				m.Status.VMSpec = rapid.SampledFrom([]machine.VMSpec{
					spec, spec, spec, {Declared: "tags", Fixed: "f", Updatable: "v", Begun: "u"}, {}, {Declared: "tags", Fixed: "g"}, {Fixed: "f"},
				}).Draw(t, "vm")
			}
		}
		exchanges(t, o)
	})
	o := settledObservation(t, 3)
	s := o.Sets[0].Set
	s.Spec.Template.Spec.Class.Name = "large"
	for _, m := range o.Sets[0].Machines {
		m.Spec.Class.Name, m.Spec.ProviderID, m.Status.VMSpec = "large", "p://1", spec
	}
	o.HotUpdate = &deployment.HotUpdate{Class: o.Deployment.Spec.Template.Spec.Class, Spec: spec, From: []string{"large"}}
	require.Equal(t, 1, exchanges(t, o), "the draws above must be able to lead to an exchange")
}

// exchanges follows decisions up to the first write or wait, and returns how often the class of a set
// was exchanged.
func exchanges(t require.TestingT, o *deployment.Observation) (exchanged int) {
	wanted := o.Deployment.Spec.Template.Spec.Class.Name
	group := exchangeable(o)
	plan := decide(t, o, begin)
	for decisions := 0; plan.Write == nil && plan.At.IsZero(); decisions++ {
		require.Less(t, decisions, mostDecisions)
		for _, order := range plan.Push {
			before := o.Sets[slices.IndexFunc(o.Sets, func(c deployment.Children) bool { return c.Set.UID == order.Set.UID })].Set
			if before.Spec.Template.Spec.Class.Name == order.Set.Spec.Template.Spec.Class.Name {
				continue
			}
			exchanged++
			require.Equal(t, group, order.Set.UID, "%s", order.Why)
			require.Equal(t, wanted, order.Set.Spec.Template.Spec.Class.Name)
			require.Contains(t, order.Set.Instructions.PreviousClasses, before.Spec.Template.Spec.Class.Name)
			require.NotContains(t, order.Set.Instructions.PreviousClasses, wanted)
			require.Equal(t, before.Name, order.Set.Name)
			require.Equal(t, before.Labels, order.Set.Labels)
			require.Equal(t, before.Spec.Template.Labels, order.Set.Spec.Template.Labels)
			require.Equal(t, before.Spec.Replicas, order.Set.Spec.Replicas)
			require.Greater(t, order.Set.Revision, before.Revision)
		}
		require.False(t, group != "" && len(plan.Create) > 0, "a set is created instead of an exchange")
		follow(t, o, plan)
		group = exchangeable(o) // a machine may have moved to another set
		plan = decide(t, o, begin)
	}
	require.Empty(t, group, "the class was not exchanged: %s", plan.Why)
	return exchanged
}

// TestPreviousClassesAreBounded: of many previous classes a set keeps the last ones, and those that a machine still
// has.
func TestPreviousClassesAreBounded(t *testing.T) {
	w := newWorld(web(2))
	w.hot = map[string]machine.VMSpec{"small": {Declared: "tags", Fixed: "f", Updatable: "small"}}
	shell := newShell(t, w)
	w.convergeWith(shell)
	for i := range 30 {
		name := fmt.Sprint("small-", i)
		w.hot[name] = machine.VMSpec{Declared: "tags", Fixed: "f", Updatable: name}
		w.edit(class(name))
		w.now = w.now.Add(time.Minute)
		shell.pass()
		w.runSetControllers()
	}
	previous := w.sets[0].Instructions.PreviousClasses
	require.Len(t, previous, 11)
	require.Equal(t, "small", previous[0], "two machines have it")
	require.Equal(t, "small-28", previous[10])
	w.edit(class("small-25"))
	shell.pass()
	require.NotContains(t, w.sets[0].Instructions.PreviousClasses, "small-25")
	require.Equal(t, 1, w.setsCreated)
}

// TestReturnToATemplateOfAnOldSet: if VMs can be updated, the newest set gets the class, even if an old set has exactly
// this template.
func TestReturnToATemplateOfAnOldSet(t *testing.T) {
	w := newWorld(web(2))
	shell := newShell(t, w)
	w.convergeWith(shell)
	w.edit(class("small-b"))
	w.convergeWith(shell)
	require.Equal(t, 2, w.setsCreated, "VMs can't be updated yet")
	w.enableVMUpdates()
	for w.updateVM() {
	}
	before := slices.Clone(w.machines)
	for _, m := range before {
		w.changeMachine(m.Name, func(m *machine.Machine) { m.Spec.ProviderID = "p://" + m.Name })
	}
	w.edit(class("small"))
	w.convergeWith(shell)
	require.Equal(t, 2, w.setsCreated)
	for _, m := range before {
		require.True(t, slices.ContainsFunc(w.machines, func(n *machine.Machine) bool { return n.UID == m.UID && !n.Deleted() }))
	}
	require.EqualValues(t, 2, w.deployment.Status.Updated)
}

// TestUnknownVMsAreReplaced: a VM whose spec is not known can't be updated, nor can one that is about to be created
// from a class other than the set's.
func TestUnknownVMsAreReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		id, class string
		made      int
	}{
		"to be made":                 {"", "small", 1},
		"to be made from another":    {"", "tiny", 2},
		"made, nobody knows of what": {"p://1", "small", 2},
	} {
		w := newWorld(web(2))
		w.enableVMUpdates()
		shell := newShell(t, w)
		w.convergeWith(shell)
		w.changeMachine(w.machines[0].Name, func(m *machine.Machine) {
			m.Spec.ProviderID, m.Spec.Class.Name, m.Status.VMSpec = c.id, c.class, machine.VMSpec{}
		})
		w.edit(class("small-b"))
		shell.pass()
		require.Equal(t, c.made, w.setsCreated, name)
	}
}

// TestAnExchangeIsOneWrite: the write that changes a set's class has all other pending changes of the set.
func TestAnExchangeIsOneWrite(t *testing.T) {
	w := newWorld(web(2))
	w.enableVMUpdates()
	shell := newShell(t, w)
	w.convergeWith(shell)
	pushed := 0
	shell.issue = func(kind string, order deployment.Order, _ *deployment.Deployment) {
		require.Equal(t, "push", kind)
		pushed++
	}
	w.edit(func(s *deployment.Spec) {
		s.Template.Spec.Class.Name, s.MinReady = "small-b", time.Second
		s.Template.Spec.NodeTemplate.Labels = map[string]string{"pool": "b"}
	})
	shell.pass()
	require.Equal(t, 1, pushed)
	require.Equal(t, "b", w.sets[0].Spec.Template.Spec.NodeTemplate.Labels["pool"])
}
