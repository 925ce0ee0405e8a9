package deployment_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/internal/testkit/rollouts"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// chaos changes a world at random: any step of any actor may happen between any two steps of the shell, whose caches
// are old.
type chaos struct {
	*world
	t     *rapid.T
	shell *shell
	// faults: orders are refused, the shell crashes, machines fail, and users change sets and machines by
	// hand.
	faults bool
	// fixedBounds: R, the bounds and MinReady do not change.
	fixedBounds bool
	// pause: a paused deployment stays paused at the end.
	pause bool
	// preserves: machines may be preserved.
	preserves bool
	// gather is Policy.Gather and Policy.ProgressInterval.
	gather time.Duration
	// reserveNames is Policy.Names.
	reserveNames int32
	// brokenHandovers: some program has written invalid handovers.
	brokenHandovers bool

	decided   time.Time          // when the orders now being carried out were decided
	announced map[string][]int64 // world.reserved when the shell last read live
	observe   func(*deployment.Observation, deployment.Plan)
}

func ptr(n int32) *int32 { return &n }

func newChaos(t *rapid.T, faults, fixedBounds bool) *chaos {
	d := web(rapid.Int32Range(0, 9).Draw(t, "replicas"))
	d.Spec.Strategy = drawStrategy(t)
	d.Spec.MinReady = rapid.SampledFrom([]time.Duration{0, 0, 7 * time.Second}).Draw(t, "min ready")
	d.Spec.RevisionHistoryLimit = rapid.SampledFrom(limits).Draw(t, "limit")
	d.Spec.ProgressDeadline = rapid.SampledFrom([]time.Duration{0, 2 * time.Second, time.Minute}).Draw(t, "deadline")
	c := &chaos{world: newWorld(d), t: t, faults: faults, fixedBounds: fixedBounds}
	c.gather = rapid.SampledFrom([]time.Duration{0, 0, 0, 3 * time.Second, 15 * time.Second}).Draw(t, "patience")
	c.chooseEarly = rapid.Bool().Draw(t, "early")
	c.reserveNames = rapid.SampledFrom([]int32{0, 0, 2, 100}).Draw(t, "gives")
	c.startShell()
	return c
}

// startShell starts a new process, without memory.
func (c *chaos) startShell() {
	c.shell = newShell(c.t, c.world)
	c.shell.p.Gather, c.shell.p.ProgressInterval, c.shell.p.Names = c.gather, c.gather, c.reserveNames
	c.shell.age = func(n int) int { return rapid.IntRange(0, n-1).Draw(c.t, "age") }
	c.shell.issueMachine = c.checkMachine
	c.shell.issue = func(kind string, order deployment.Order, pass *deployment.Deployment) {
		switch {
		case kind == "handover":
			c.checkHandover(order)
		case order.Why.Reason == deployment.ReasonOpen:
			c.checkOpening(order, pass)
		}
		c.check(kind, order, pass)
	}
	c.shell.decided = c.watch
	if c.faults {
		c.shell.refuse = func() bool { return rapid.IntRange(0, 9).Draw(c.t, "refused") == 0 }
	}
}

func (c *chaos) watch(o *deployment.Observation, p deployment.Plan) {
	c.decided = c.now
	if p.ReadLive {
		c.announced = maps.Clone(c.reserved)
	}
	c.checkProgress(o, p)
	if c.observe != nil {
		c.observe(o, p)
	}
}

// check checks one order against the invariants, just before it is carried out.
func (c *chaos) check(kind string, order deployment.Order, pass *deployment.Deployment) {
	ours := order.Set.OwnedBy(pass.UID)
	stored := c.set(order.Set.Name)
	switch {
	case pass.Deleted() && kind != "delete":
		c.t.Fatalf("P25: %s for a deployment being deleted", kind)
	case kind != "create" && stored != nil && stored.Owner != nil && !stored.OwnedBy(pass.UID):
		c.t.Fatalf("P10: %s of another's set %s", kind, order.Set.Name)
	case kind == "adopt" && stored != nil && stored.UID == order.Set.UID && stored.Version == order.Set.Version && stored.Owner != nil:
		c.t.Fatalf("P10: adopting %s, which has an owner", order.Set.Name)
	}
	switch kind {
	case "create":
		c.checkCreate(order.Set, pass, ours)
	case "scale":
		c.checkScale(order, pass)
	case "delete":
		c.checkPrune(order, pass)
	}
}

// checkCreate checks the creation of a set. At random, another program creates a set with this name first: an earlier
// process whose create takes effect late, or a foreign one.
func (c *chaos) checkCreate(set *machineset.Set, pass *deployment.Deployment, ours bool) {
	if !ours || set.Spec.Replicas != 0 || !set.HasFinalizer(machineset.Finalizer) {
		c.t.Fatalf("P12: a set is created without owner or finalizer, or with a size: %+v", set)
	}
	for _, s := range c.setsOf(pass.UID) {
		if !s.Deleted() && s.Name != set.Name && s.Spec.Template.Spec.Class == set.Spec.Template.Spec.Class {
			c.t.Fatalf("P12: creating %s beside %s of the same template", set.Name, s.Name)
		}
	}
	if !c.faults {
		return
	}
	switch rapid.IntRange(0, 9).Draw(c.t, "race") {
	case 0:
		_, _ = c.createSet(set)
	case 1:
		foreign := set.Clone()
		foreign.Owner = &object.Owner{Kind: "Other", Name: "other", UID: "other"}
		_, _ = c.createSet(foreign)
	}
}

// checkNames checks the names that are reserved together with a size by the rules for the set itself: all earlier
// names became machines, and no more names are reserved than machines are missing.
func (c *chaos) checkNames(next *machineset.Set) {
	stored := c.set(next.Name)
	if stored == nil || stored.Version != next.Version || next.Instructions.Reservation == stored.Instructions.Reservation {
		return // the write meets a conflict, or reserves no names
	}
	alive := 0
	for _, m := range c.machinesOf(next.UID) {
		if !m.Deleted() {
			alive++
		}
	}
	r := next.Instructions.Reservation
	switch {
	case len(c.reserved[next.UID]) > 0:
		c.t.Fatalf("P12: %s is given names while %v are open", next.Name, c.reserved[next.UID])
	case r.Settled != stored.Instructions.Reservation.Reserved:
		c.t.Fatalf("P17: the reservation of %s goes from %+v to %+v", next.Name, stored.Instructions.Reservation, r)
	case r.Reserved > r.Settled && int(r.Reserved-r.Settled) > int(next.Spec.Replicas)-alive:
		c.t.Fatalf("P12: %s is given %d names for %d machines of %d", next.Name, r.Reserved-r.Settled, alive, next.Spec.Replicas)
	}
}

// checkScale checks a resizing against the bounds, with the sets as the shell read them live, the
// orders it has given since, and the machines that their controllers were about to create.
func (c *chaos) checkScale(order deployment.Order, pass *deployment.Deployment) {
	spec := &pass.Spec
	ceiling, floor := limitsOf(spec)
	size := int(order.Set.Spec.Replicas)
	c.checkNames(order.Set)
	if order.Why.Reason == deployment.ReasonScale && (size < 0 || size > ceiling) {
		c.t.Fatalf("P9: %s to %d, ceiling %d", order.Set.Name, size, ceiling)
	}
	var total, usable, totalThen, usableThen, preserved int
	for _, child := range c.shell.o.Sets {
		n := c.known(child, spec.MinReady)
		preserved += n.stay()
		total, usable = total+n.total(), usable+n.usable()
		if child.Set.UID == order.Set.UID {
			n.spec = size
		}
		totalThen, usableThen = totalThen+n.total(), usableThen+n.usable()
	}
	if totalThen > max(total, ceiling) {
		c.t.Fatalf("P7: %s: %d machines in all after %d, ceiling %d", order.Why, totalThen, total, ceiling)
	}
	if usableThen < min(usable, floor-preserved) {
		c.t.Fatalf("P7: %s: %d machines available after %d, floor %d", order.Why, usableThen, usable, floor)
	}
	if order.Why.Reason == deployment.ReasonScale {
		c.checkHeld(order, pass)
	}
}

// known returns a set as the shell has read it, with the machines that its controller was about to create then.
func (c *chaos) known(child deployment.Children, minReady time.Duration) numbers {
	n := numbers{spec: int(child.Set.Spec.Replicas)}
	for _, ordinal := range c.announced[child.Set.UID] {
		name := child.Set.MachineName(ordinal)
		if !slices.ContainsFunc(child.Machines, func(m *machine.Machine) bool { return m.Name == name }) {
			n.coming++
		}
	}
	for _, m := range child.Machines {
		if m.Deleted() {
			continue
		}
		n.actual++
		if m.Preserved(c.decided) {
			n.preserved++
		}
		if available(m, minReady, c.decided) {
			n.available++
		}
	}
	switch {
	case child.Set.Deleted():
		n.spec = 0
	case n.spec < 0:
		n.spec = n.actual
	}
	return n
}

// drawOne draws an element. A failure shows its index.
func drawOne[T any](t *rapid.T, label string, of []T) T {
	return of[rapid.IntRange(0, len(of)-1).Draw(t, label)]
}

// randomStep lets one actor take one step.
func (c *chaos) randomStep() {
	actions := []func(){
		c.shellSteps, c.shellSteps, c.shellSteps, c.setObeys, c.setObeys, c.machineLives, c.machineLives, c.timePasses,
		c.ownerEdits, c.userSelects,
	}
	if c.faults {
		actions = append(actions, c.crash, c.machineFails, c.userMeddles, c.updatesDiffer)
	}
	if c.preserves {
		actions = append(actions, c.machinePreserved, c.machinePreserved)
	}
	actions[rapid.IntRange(0, len(actions)-1).Draw(c.t, "actor")]()
}

func (c *chaos) shellSteps() { c.shell.step() }

func (c *chaos) setObeys() {
	if len(c.sets) > 0 {
		c.runSetController(drawOne(c.t, "set", c.sets))
	}
}

func (c *chaos) machineLives() {
	if len(c.machines) > 0 {
		c.advanceMachine(drawOne(c.t, "machine", c.machines))
	}
}

func (c *chaos) timePasses() {
	c.now = c.now.Add(time.Duration(rapid.IntRange(1, 4000).Draw(c.t, "ms")) * time.Millisecond)
}

func (c *chaos) ownerEdits() {
	if c.deployment == nil || c.deployment.Deleted() {
		return
	}
	c.edit(func(s *deployment.Spec) {
		choice := rapid.IntRange(0, 12).Draw(c.t, "edit")
		switch {
		case choice == 12:
			s.RollbackTo = &deployment.Rollback{Revision: rapid.Int64Range(0, 5).Draw(c.t, "revision")}
		case choice > 9:
			s.Paused = !s.Paused
		case choice < 5:
			s.Template.Spec.Class.Name = rapid.SampledFrom(classes).Draw(c.t, "class")
		case choice == 5:
			s.Template.Spec.Class.Kind = rapid.SampledFrom([]string{"", "Foreign"}).Draw(c.t, "kind")
		case c.fixedBounds:
		case choice < 9:
			s.Replicas = rapid.Int32Range(0, 9).Draw(c.t, "replicas")
		default:
			s.Strategy = drawStrategy(c.t)
		}
	})
}

func (c *chaos) crash() { c.startShell() }

func (c *chaos) machineFails() {
	if len(c.machines) == 0 {
		return
	}
	m := drawOne(c.t, "failing", c.machines)
	if !m.Deleted() {
		c.setPhase(m.Name, rapid.SampledFrom([]machine.Phase{machine.PhaseUnknown, machine.PhaseFailed, machine.PhasePending}).Draw(c.t, "phase"))
	}
}

// userMeddles changes sets and machines as users do by hand.
func (c *chaos) userMeddles() {
	choice := rapid.IntRange(0, 6).Draw(c.t, "meddling")
	if choice == 0 {
		c.createStrangeSet(rapid.SampledFrom([]string{"orphan", "foreign"}).Draw(c.t, "owner"))
		return
	}
	if choice == 1 && len(c.machines) > 0 {
		c.deleteMachine(drawOne(c.t, "deleted", c.machines).Name)
		return
	}
	if len(c.sets) == 0 {
		return
	}
	s := drawOne(c.t, "meddled with", c.sets)
	switch choice {
	case 2:
		_ = c.deleteSet(s.Name, s.UID)
	case 3:
		c.changeSet(s.Name, func(s *machineset.Set) { s.Labels = map[string]string{"app": "else"} })
	case 4:
		c.changeSet(s.Name, func(s *machineset.Set) { s.Spec.Replicas = rapid.Int32Range(-2, 9).Draw(c.t, "size") })
	case 5:
		c.changeSet(s.Name, func(s *machineset.Set) {
			s.Owner = nil
			s.Labels = map[string]string{"app": "web"}
		})
	}
}

// createStrangeSet creates a set that is an orphan, or belongs to another owner.
func (c *chaos) createStrangeSet(owner string) {
	s := &machineset.Set{}
	s.Namespace, s.Name = namespace, fmt.Sprintf("%s-%d", owner, c.counter)
	s.Labels = map[string]string{"app": "web"}
	s.Finalizers = []string{machineset.Finalizer}
	s.Spec = machineset.Spec{Selector: web(0).Spec.Selector.Clone(), Template: web(0).Spec.Template.Clone()}
	s.Spec.Template.Spec.Class.Name = rapid.SampledFrom(classes).Draw(c.t, "its class")
	if owner == "foreign" {
		s.Owner = &object.Owner{Kind: "Other", Name: "other", UID: "other"}
	}
	n := rapid.IntRange(0, 2).Draw(c.t, "its machines")
	s.Spec.Replicas = int32(n)
	s.Instructions.Reservation = machineset.Reservation{Settled: int64(n), Reserved: int64(n)}
	if stored, err := c.createSet(s); err == nil {
		for i := range n {
			c.addMachine(stored, stored.MachineName(int64(i+1)), machine.PhaseRunning)
		}
	}
}

// userContinues pauses a deployment whose rollout has stopped because machines failed, and resumes it later, so that
// the rollout continues.
func (c *chaos) userContinues() {
	if c.deployment == nil || c.deployment.Deleted() || c.pause {
		return
	}
	progressing := object.FindCondition(c.deployment.Status.Conditions, deployment.ConditionProgressing)
	stopped := progressing != nil && progressing.Reason == deployment.ReasonRolloutStopped.String()
	if stopped != c.deployment.Spec.Paused {
		c.edit(func(s *deployment.Spec) { s.Paused = stopped })
	}
}

// converge ends all faults, and lets each actor act in turn until nothing changes. It returns how many decisions that
// took. A negative number: the world did not converge.
func (c *chaos) converge() int {
	c.shell.age, c.shell.refuse, c.fates = nil, nil, nil
	c.shell.end()
	if c.deployment != nil && !c.deployment.Deleted() && !c.pause {
		c.edit(func(s *deployment.Spec) { s.Paused = false })
	}
	c.shell.decides = 0
	quiet := 0 // rounds without a change; a single one may only be waiting for time to pass
	for range 400 {
		before := c.number
		c.shell.pass()
		c.runSetControllers()
		c.advanceMachines()
		c.userSelects()
		c.userContinues()
		c.now = c.now.Add(10 * time.Second)
		if c.number != before {
			quiet = 0
		} else if quiet++; quiet == 3 {
			return c.shell.decides
		}
	}
	return -1
}

// runSetController lets the controller of a set take one step. It reserves names before it creates machines, and
// creates all machines whose names it has reserved, even if the set's size was lowered since. It returns false if
// there is nothing to do.
func (w *world) runSetController(s *machineset.Set) bool {
	machines := w.machinesOf(s.UID)
	if ordinals := w.reserved[s.UID]; len(ordinals) > 0 {
		w.reserved[s.UID] = ordinals[1:]
		w.addMachine(s, s.MachineName(ordinals[0]), machine.PhasePending)
		return true
	}
	if w.deleteChosen(s) {
		return true
	}
	if done, written := w.writePaused(s); done {
		return written
	}
	if s.Instructions.Reservation.Settled < s.Instructions.Reservation.Reserved {
		w.changeSet(s.Name, func(s *machineset.Set) { s.Instructions.Reservation.Settled = s.Instructions.Reservation.Reserved })
		return true
	}
	if s.Deleted() {
		return w.deleteMachinesThenSet(s, machines)
	}
	alive := slices.DeleteFunc(slices.Clone(machines), func(m *machine.Machine) bool {
		return m.Deleted() || s.Owner != nil && slices.Contains(s.Instructions.Handover.Leaving, m.Name)
	})
	if slices.ContainsFunc(alive, w.deleteFailed) {
		return true
	}
	if s.Spec.Replicas < 0 {
		return false // invalid: it waits for a change
	}
	missing, waits := w.missing(s, len(alive), len(machines))
	if waits {
		return w.observeStatus(s, len(alive))
	}
	switch {
	case missing > 0:
		w.changeSet(s.Name, func(s *machineset.Set) {
			for range missing {
				s.Instructions.Reservation.Reserved++
				w.reserved[s.UID] = append(w.reserved[s.UID], s.Instructions.Reservation.Reserved)
			}
		})
		return true
	case missing < 0:
		if free, n := w.removable(alive, -missing); len(free) > 0 {
			w.choose(s, free, n)
			return true
		}
	}
	return w.observeStatus(s, len(alive))
}

// writePaused writes the condition Paused of a set that has no more machines to delete. done: the set does nothing
// else in this step. written: the condition has changed.
func (w *world) writePaused(s *machineset.Set) (done, written bool) {
	paused, said := isPaused(&s.Meta), object.FindCondition(s.Status.Conditions, machineset.ConditionPaused) != nil
	if paused == said {
		return paused, false
	}
	w.changeSet(s.Name, func(s *machineset.Set) {
		s.Status.Conditions = object.DropCondition(s.Status.Conditions, machineset.ConditionPaused)
		if paused {
			s.Status.ObservedGeneration = s.Generation
			s.Status.Conditions = object.SetCondition(s.Status.Conditions,
				object.Condition{Type: machineset.ConditionPaused, Status: object.True, Since: w.second()})
		}
	})
	return true, true
}

// choose deletes one of the machines that may be deleted. With chooseEarly, it chooses all n machines instead.
func (w *world) choose(s *machineset.Set, free []*machine.Machine, n int) {
	if !w.chooseEarly {
		w.deleteMachine(w.firstToDelete(s, free))
		return
	}
	for range min(n, len(free)) {
		name := w.firstToDelete(s, free)
		w.chosen[s.UID] = append(w.chosen[s.UID], name)
		free = slices.DeleteFunc(slices.Clone(free), func(m *machine.Machine) bool { return m.Name == name })
	}
}

// deleteChosen deletes the next machine that a set has chosen before. False: it has chosen none.
func (w *world) deleteChosen(s *machineset.Set) bool {
	names := w.chosen[s.UID]
	if len(names) == 0 {
		return false
	}
	w.chosen[s.UID] = names[1:]
	for _, m := range w.machines {
		if m.Name == names[0] && !m.Deleted() && !isPaused(&m.Meta) {
			w.deleteMachine(m.Name)
			return true
		}
	}
	return true
}

// deleteFailed deletes a machine if it has failed, and is neither paused nor preserved. It reports whether it did.
func (w *world) deleteFailed(m *machine.Machine) bool {
	failed := m.Status.Phase == machine.PhaseFailed && !isPaused(&m.Meta) && !m.Preserved(w.now)
	if failed {
		w.deleteMachine(m.Name)
	}
	return failed
}

// missing returns how many machines a set must create. Negative: how many it must delete. waits: it creates none
// until others are gone.
func (w *world) missing(s *machineset.Set, alive, all int) (missing int64, waits bool) {
	missing = int64(s.Spec.Replicas) - int64(alive)
	if w.strict && missing > 0 {
		if missing = int64(s.Spec.Replicas) - int64(all); missing <= 0 {
			return 0, true
		}
	}
	if missing > 0 && s.Owner != nil {
		missing = max(0, missing-w.arriving(s))
		if s.Instructions.Handover.Closed {
			missing = 0
		}
	}
	return missing, false
}

// observeStatus writes the status of a set, once it has as many machines as it should have.
func (w *world) observeStatus(s *machineset.Set, n int) bool {
	if s.Status.ObservedGeneration == s.Generation && s.Status.Replicas == int32(n) {
		return false
	}
	w.changeSet(s.Name, func(s *machineset.Set) {
		s.Status.ObservedGeneration, s.Status.Replicas = s.Generation, int32(n)
	})
	return true
}

// deleteMachinesThenSet takes the next step in the deletion of a set.
func (w *world) deleteMachinesThenSet(s *machineset.Set, machines []*machine.Machine) bool {
	for _, m := range machines {
		if !m.Deleted() && !isPaused(&m.Meta) {
			w.deleteMachine(m.Name)
			return true
		}
	}
	if len(machines) > 0 {
		return false
	}
	w.dropSet(s.Name)
	return true
}

// firstToDelete returns the machine that a set deletes first: deletion candidates come first, then unavailable
// machines, then others. Preserved machines come last.
func (w *world) firstToDelete(s *machineset.Set, alive []*machine.Machine) string {
	if others := slices.DeleteFunc(slices.Clone(alive), func(m *machine.Machine) bool { return m.Preserved(w.now) }); len(others) > 0 {
		alive = others
	}
	for _, m := range alive {
		if slices.ContainsFunc(s.Instructions.DeletionCandidates, func(v machineset.DeletionCandidate) bool { return v.Name == m.Name }) {
			return m.Name
		}
	}
	minReady := time.Duration(0)
	if w.deployment != nil {
		minReady = w.deployment.Spec.MinReady
	}
	for _, m := range alive {
		if !available(m, minReady, w.now) {
			return m.Name
		}
	}
	return alive[0].Name
}

// advanceMachine lets one machine take its next step: it starts to run, proceeds with an update, or disappears.
func (w *world) advanceMachine(m *machine.Machine) bool {
	switch {
	case isPaused(&m.Meta):
		return false
	case m.Deleted():
		w.dropMachine(m.Name)
		return true
	case m.Status.Phase == machine.PhasePending, m.Status.Phase == machine.PhaseUnknown:
		w.setPhase(m.Name, machine.PhaseRunning)
		return true
	}
	return w.update(m)
}

// runSetControllers lets the controllers of all sets take steps until none has anything to do. Machines do not change
// by themselves meanwhile.
func (w *world) runSetControllers() {
	again := true
	for rounds := 0; again; rounds++ {
		if rounds > 1000 {
			panic("the controllers of the model's sets never end: " + w.String())
		}
		again = false
		for _, s := range slices.Clone(w.sets) {
			if now := w.set(s.Name); now != nil && w.runSetController(now) {
				again = true
			}
		}
	}
}

// advanceMachines lets every machine take one step.
func (w *world) advanceMachines() {
	for _, m := range slices.Clone(w.machines) {
		w.advanceMachine(m)
	}
}

const (
	namespace = rollouts.Namespace
	hashLabel = rollouts.HashLabel
)

var (
	begin        = rollouts.Begin
	classes      = rollouts.Classes
	limits       = rollouts.Limits
	web          = rollouts.Web
	class        = rollouts.Class
	stored       = rollouts.Stored
	ownSet       = rollouts.OwnSet
	drawStrategy = rollouts.Strategy
	drawChildren = rollouts.Children
	copyOf       = rollouts.Copy
)

// drawLive returns a live read of any state, reachable or not.
func drawLive(t *rapid.T) *deployment.Observation {
	o := rollouts.Any(t)
	o.Read = live
	return o
}

// drawGarbage returns an observation with invalid contents, as a broken store or caller might pass it.
func drawGarbage(t *rapid.T) *deployment.Observation {
	o := rollouts.Garbage(t)
	o.Read = live
	o.Orphans = []*machineset.Set{nil, {}, {Meta: object.Meta{Key: object.Key{Namespace: namespace}, Labels: map[string]string{"app": "web"}}}}
	o.Taken = rapid.SampledFrom([]*deployment.Taken{nil, {}, {Name: "web-s6vfvz2m2l"}, {Name: "web-s6vfvz2m2l", Set: &machineset.Set{}}}).Draw(t, "taken")
	o.Failed = rapid.SampledFrom([]*machine.Outcome{nil, {}, {Code: codes.Code(200)}}).Draw(t, "failed")
	o.Failures = rapid.SampledFrom([]int{-1, 0, 5, math.MaxInt}).Draw(t, "failures")
	o.StatusWritten = rapid.SampledFrom([]time.Time{{}, begin, begin.AddDate(9, 0, 0)}).Draw(t, "written")
	return o
}

func percent(n int32) rollout.IntOrPercent { return rollout.IntOrPercent{Value: n, Percent: true} }

// later is a time at which machines that were ready at begin have been ready for long.
var later = begin.Add(24 * time.Hour)
