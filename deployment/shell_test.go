package deployment_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// fatal ends a test; *testing.T and *rapid.T have it.
type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

// shell carries plans out, one decision or one order a step, as Plan and
// Observation ask for. Its memory is lost when it is replaced.
type shell struct {
	t fatal
	w *world
	p *deployment.Policy

	// age picks how old a cached read is: one of n states, 0 the newest. Nil: the newest.
	age func(n int) int
	// refuse says whether the store refuses an order. Nil: it never does.
	refuse func() bool
	// decided sees each plan with the observation it was made from.
	decided func(*deployment.Observation, deployment.Plan)
	// issue sees each order just before it is carried out.
	issue func(kind string, order deployment.Order, pass *deployment.Deployment)
	// issueMachine is issue for orders to machines.
	issueMachine func(kind string, order deployment.MachineOrder)

	seen  [3]int // how new the caches are known to be: deployment, sets, machines
	o     *deployment.Observation
	queue []func() bool // orders still to be carried out; false: refused
	steps int
	given map[string]bool // effects of this pass

	failures int
	written  time.Time
	// gathering is since when orders wait for others.
	gathering time.Time
	decides   int
	last      deployment.Plan // the one that ended the last pass
}

func newShell(t fatal, w *world) *shell {
	return &shell{t: t, w: w, p: deployment.DefaultPolicy()}
}

// pass runs one pass from its beginning to its end.
func (s *shell) pass() deployment.Plan {
	s.t.Helper()
	s.end()
	for ended := false; !ended; {
		ended = s.step()
	}
	return s.last
}

// step takes one step of a pass. It returns true if that ended the pass.
func (s *shell) step() bool {
	s.t.Helper()
	if s.o == nil && !s.start() {
		return true
	}
	if len(s.queue) > 0 {
		order := s.queue[0]
		s.queue = s.queue[1:]
		if s.o != nil && !order() {
			s.queue = nil
		}
		return s.o == nil
	}
	if s.steps++; s.steps > 60 {
		s.t.Fatalf("a pass takes no end: %s", s.last.Why)
	}
	plan, err := deployment.Decide(s.o, s.p, s.w.now)
	if err != nil {
		s.t.Fatalf("Decide: %v", err)
	}
	s.gathering, s.o.Gathering = plan.Gathering, plan.Gathering
	s.decides++
	if s.decided != nil {
		s.decided(s.o, plan)
	}
	s.last = plan
	return s.carryOut(plan)
}

func (s *shell) end() { s.o, s.queue = nil, nil }

// start makes the cached reads. It returns false if there is no deployment.
func (s *shell) start() bool {
	var at [3]view
	for i := range at {
		at[i] = s.cached(i)
	}
	s.steps, s.given = 0, map[string]bool{}
	if s.w.deployment == nil || at[0].deployment == nil {
		return false
	}
	s.o = &deployment.Observation{Deployment: at[0].deployment, Failures: s.failures, StatusWritten: s.written, Gathering: s.gathering}
	s.children(&at[1], &at[2])
	s.o.HotUpdate = s.w.hotUpdate(s.o)
	return true
}

// cached picks a state of the past that is not older than what was seen.
func (s *shell) cached(kind int) view {
	choice := slices.DeleteFunc(slices.Clone(s.w.past), func(v view) bool { return v.number < s.seen[kind] })
	age := 0
	if s.age != nil {
		age = s.age(len(choice))
	}
	v := choice[len(choice)-1-age]
	s.seen[kind] = v.number
	return v
}

func (s *shell) children(sets, machines *view) {
	s.o.Sets, s.o.Orphans = nil, nil
	for _, set := range sets.sets {
		switch {
		case set.Owner == nil:
			s.o.Orphans = append(s.o.Orphans, set)
		case set.OwnedBy(s.o.Deployment.UID):
			s.o.Sets = append(s.o.Sets, deployment.Children{Set: set, Machines: machines.machinesOf(set.UID)})
		}
	}
}

func (s *shell) readLive() {
	if s.w.deployment == nil {
		s.end()
		return
	}
	s.o.Deployment, s.o.Read, s.o.Taken = s.w.deployment, live, nil
	s.children(&s.w.view, &s.w.view)
	s.o.HotUpdate = s.w.hotUpdate(s.o)
}

// carryOut does what a plan says, or queues its orders. It returns true if that ended the pass.
func (s *shell) carryOut(plan deployment.Plan) bool {
	s.t.Helper()
	kinds := 0
	if plan.ReadLive {
		kinds++
		s.once("read live")
		s.readLive()
	}
	if plan.Write != nil {
		kinds++
		s.write(plan.Write)
	}
	for kind, orders := range ordersOf(&plan) {
		if len(orders) == 0 {
			continue
		}
		kinds++
		for _, order := range orders {
			s.once(kind + " " + order.Why.String() + " " + order.Set.Version)
			s.queue = append(s.queue, func() bool { return s.order(kind, order) })
		}
	}
	kinds += s.queueMachines("mark", plan.Mark) + s.queueMachines("move", plan.Move)
	if kinds > 1 {
		s.t.Fatalf("a plan of %d kinds: %+v", kinds, plan)
	}
	if kinds == 0 {
		s.failures++
		if s.o.Failed == nil {
			s.failures = 0
		}
		s.end()
	}
	return s.o == nil
}

// ordersOf returns the slices of a plan in the order in which they are carried out.
func ordersOf(p *deployment.Plan) map[string][]deployment.Order {
	return map[string][]deployment.Order{
		"create": p.Create, "push": p.Push, "scale": p.Scale, "delete": p.Delete, "adopt": p.Adopt, "release": p.Release,
		"handover": p.Handover,
	}
}

// once fails the test when an effect is issued twice in a pass.
func (s *shell) once(effect string) {
	s.t.Helper()
	if s.given[effect] {
		s.t.Fatalf("issued twice in a pass: %s", effect)
	}
	s.given[effect] = true
}

func (s *shell) write(write deployment.Write) {
	var stored *deployment.Deployment
	var err error
	switch write := write.(type) {
	case *deployment.Update:
		stored, err = s.w.updateDeployment(write.Deployment)
	case *deployment.UpdateStatus:
		stored, err = s.w.updateStatus(s.o.Deployment, write.Status)
		s.written = s.w.now
		s.o.StatusWritten = s.written
	}
	if err != nil || s.w.deployment == nil {
		s.end()
		return
	}
	s.o.Deployment = stored
}

// order carries out one order.
func (s *shell) order(kind string, order deployment.Order) bool {
	s.t.Helper()
	if !s.o.Read.Live() {
		s.t.Fatalf("ordered without a live read: %s %s", kind, order.Why)
	}
	if s.issue != nil {
		s.issue(kind, order, s.o.Deployment)
	}
	if s.refuse != nil && s.refuse() {
		s.o.Failed = &machine.Outcome{Code: codes.Unavailable, Message: "the store is having a bad day"}
		return false
	}
	switch kind {
	case "create":
		s.create(order.Set)
	case "delete":
		if err := s.w.deleteSet(order.Set.Name, order.Set.UID); err == errConflict {
			s.end()
			return true
		}
		s.replace(order.Set.UID, s.w.set(order.Set.Name))
	default:
		s.update(kind, order.Set)
	}
	return true
}

func (s *shell) create(set *machineset.Set) {
	stored, err := s.w.createSet(set)
	if err == errExists {
		s.o.Taken = &deployment.Taken{Name: set.Name, Set: s.w.set(set.Name)}
		return
	}
	s.o.Sets = append(s.o.Sets, deployment.Children{Set: stored})
}

func (s *shell) update(kind string, set *machineset.Set) {
	stored, err := s.w.updateSet(set)
	if err != nil {
		s.end()
		return
	}
	s.w.writes++
	switch kind {
	case "push", "scale", "handover":
		s.replace(set.UID, stored)
	case "adopt":
		s.o.Orphans = slices.DeleteFunc(slices.Clone(s.o.Orphans), func(o *machineset.Set) bool { return o.UID == set.UID })
		s.o.Sets = append(s.o.Sets, deployment.Children{Set: stored, Machines: s.w.machinesOf(set.UID)})
	case "release":
		s.replace(set.UID, nil)
		s.o.Orphans = append(slices.Clone(s.o.Orphans), stored)
	default:
		panic(fmt.Sprintf("no such order: %s", kind))
	}
}

// replace puts a set in place of the one with this UID. Nil: removes that one.
func (s *shell) replace(uid string, set *machineset.Set) {
	s.o.Sets = slices.Clone(s.o.Sets)
	if set == nil {
		s.o.Sets = slices.DeleteFunc(s.o.Sets, func(c deployment.Children) bool { return c.Set.UID == uid })
		return
	}
	for i := range s.o.Sets {
		if s.o.Sets[i].Set.UID == uid {
			s.o.Sets[i].Set = set
		}
	}
}

// live is how tests without a clock read.
var live = decision.Freshness{Began: begin}
