package deployment_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// Answers of the model store.
var (
	errConflict = errors.New("conflict")
	errNotFound = errors.New("not found")
	errExists   = errors.New("already exists")
)

// view is what a reader of the store saw. Objects are never changed, only replaced, so a view is
// cheap and stays as it was.
type view struct {
	number     int
	deployment *deployment.Deployment // nil: gone
	sets       []*machineset.Set
	machines   []*machine.Machine
}

// world is a store with one deployment and its sets and machines. Nothing happens by itself: tests let the
// controllers of sets and the machines take single steps.
type world struct {
	now time.Time
	view
	past        []view // older first, the last few
	counter     int    // of UIDs and versions
	setsCreated int    // sets that were ever created through the store
	edits       int    // of machines, for their versions
	writes      int    // of deployment and sets by the shell, all kinds

	// reserved are the ordinals that the controller of a set (by UID) has reserved and will create,
	// whatever happens to the set.
	reserved map[string][]int64
	// chooseEarly: the controllers of sets choose all machines to delete at once, and delete them one
	// after the other, whatever happens to them and the set. chosen are the names that are left, by the
	// set's UID.
	chooseEarly bool
	chosen      map[string][]string
	// strict: the controllers of sets comply with a strict quota.
	strict bool
	// hot are the specs of classes whose VMs can be updated. Nil: none can.
	hot   map[string]machine.VMSpec
	fates map[string]fate // outcomes of machines' updates in place, by name; missing: success
}

func newWorld(d *deployment.Deployment) *world {
	w := &world{now: begin, reserved: map[string][]int64{}, chosen: map[string][]string{}}
	stored := d.Clone()
	stored.UID, stored.Version, stored.Generation, stored.CreatedAt = w.unique("uid-"), w.unique("v"), 1, begin
	w.deployment = stored
	w.changed()
	return w
}

func (w *world) unique(prefix string) string {
	w.counter++
	return fmt.Sprintf("%s%d", prefix, w.counter)
}

// changed saves the state for stale readers.
func (w *world) changed() {
	w.number++
	v := w.view
	v.sets, v.machines = slices.Clone(w.sets), slices.Clone(w.machines)
	w.past = append(w.past, v)
	if len(w.past) > 12 {
		w.past = w.past[1:]
	}
}

func (w *world) second() time.Time { return w.now.Truncate(time.Second) }

// edit changes the deployment's spec as its owner would.
func (w *world) edit(change func(*deployment.Spec)) {
	d := w.deployment.Clone()
	change(&d.Spec)
	if !d.SpecEqual(w.deployment) {
		d.Generation++
	}
	d.Version = w.unique("v")
	w.deployment = d
	w.changed()
}

func (w *world) deleteDeployment() {
	d := w.deployment.Clone()
	d.DeletedAt, d.Version = w.second(), w.unique("v")
	d.Generation++
	w.deployment = d
	if len(d.Finalizers) == 0 {
		w.deployment = nil
	}
	w.changed()
}

func (w *world) updateDeployment(d *deployment.Deployment) (*deployment.Deployment, error) {
	switch {
	case w.deployment == nil:
		return nil, errNotFound
	case w.deployment.Version != d.Version:
		return nil, errConflict
	}
	stored := d.Clone()
	stored.CopyStatus(w.deployment)
	return w.storeDeployment(stored)
}

func (w *world) updateStatus(d *deployment.Deployment, s deployment.Status) (*deployment.Deployment, error) {
	switch {
	case w.deployment == nil:
		return nil, errNotFound
	case w.deployment.Version != d.Version:
		return nil, errConflict
	}
	stored := w.deployment.Clone()
	stored.Status = s.Clone()
	return w.storeDeployment(stored)
}

func (w *world) storeDeployment(d *deployment.Deployment) (*deployment.Deployment, error) {
	w.writes++
	d.Version = w.unique("v")
	w.deployment = d
	if d.Deleted() && len(d.Finalizers) == 0 {
		w.deployment = nil
	}
	w.changed()
	return d, nil
}

func (w *world) set(name string) *machineset.Set {
	for _, s := range w.sets {
		if s.Name == name {
			return s
		}
	}
	return nil
}

func (w *world) createSet(s *machineset.Set) (*machineset.Set, error) {
	if w.set(s.Name) != nil {
		return nil, errExists
	}
	w.writes++
	w.setsCreated++
	stored := s.Clone()
	stored.UID, stored.Version, stored.Generation, stored.CreatedAt = w.unique("uid-"), w.unique("v"), 1, w.second()
	w.sets = append(w.sets, stored)
	w.changed()
	return stored, nil
}

func (w *world) updateSet(s *machineset.Set) (*machineset.Set, error) {
	old := w.set(s.Name)
	switch {
	case old == nil:
		return nil, errNotFound
	case old.UID != s.UID || old.Version != s.Version:
		return nil, errConflict
	}
	stored := s.Clone()
	stored.CopyStatus(old)
	if !stored.SpecEqual(old) {
		stored.Generation++
	}
	for n := old.Instructions.Reservation.Reserved + 1; n <= stored.Instructions.Reservation.Reserved; n++ { // names that came with a size
		w.reserved[s.UID] = append(w.reserved[s.UID], n)
	}
	return w.storeSet(stored), nil
}

func (w *world) storeSet(s *machineset.Set) *machineset.Set {
	s.Version = w.unique("v")
	w.sets[slices.IndexFunc(w.sets, func(o *machineset.Set) bool { return o.Name == s.Name })] = s
	w.changed()
	return s
}

// changeSet changes a set as another program would.
func (w *world) changeSet(name string, change func(*machineset.Set)) {
	s := w.set(name).Clone()
	change(s)
	w.storeSet(s)
}

func (w *world) deleteSet(name, uid string) error {
	s := w.set(name)
	switch {
	case s == nil:
		return errNotFound
	case s.UID != uid:
		return errConflict
	case len(s.Finalizers) == 0:
		w.dropSet(name)
		return nil
	case !s.Deleted():
		w.changeSet(name, func(s *machineset.Set) { s.DeletedAt = w.second() })
	}
	return nil
}

func (w *world) dropSet(name string) {
	w.sets = slices.DeleteFunc(slices.Clone(w.sets), func(s *machineset.Set) bool { return s.Name == name })
	w.changed()
}

func (v *view) machinesOf(uid string) []*machine.Machine {
	var out []*machine.Machine
	for _, m := range v.machines {
		if m.OwnedBy(uid) {
			out = append(out, m)
		}
	}
	return out
}

func (v *view) setsOf(uid string) []*machineset.Set {
	var out []*machineset.Set
	for _, s := range v.sets {
		if s.OwnedBy(uid) {
			out = append(out, s)
		}
	}
	return out
}

// addMachine creates a machine of a set.
func (w *world) addMachine(s *machineset.Set, name string, phase machine.Phase) *machine.Machine {
	if slices.ContainsFunc(w.machines, func(m *machine.Machine) bool { return m.Name == name }) {
		panic("the model makes machine " + name + " twice")
	}
	m := &machine.Machine{
		Meta: object.Meta{
			Key: object.Key{Namespace: namespace, Name: name}, UID: w.unique("uid-"), Version: w.unique("v"), CreatedAt: w.second(),
			Owner:  &object.Owner{Kind: machineset.OwnerKind, Name: s.Name, UID: s.UID},
			Labels: maps.Clone(s.Spec.Template.Labels), Annotations: maps.Clone(s.Spec.Template.Annotations),
		},
		Spec:   s.Spec.Template.Spec.Clone(),
		Status: machine.Status{Phase: phase, Since: w.second()},
	}
	if w.hot != nil {
		m.Spec.ProviderID, m.Status.VMSpec = "p://"+name, w.hot[m.Spec.Class.Name]
	}
	w.machines = append(w.machines, m)
	w.changed()
	return m
}

// changeMachine replaces a machine by a changed copy.
func (w *world) changeMachine(name string, change func(*machine.Machine)) {
	i := slices.IndexFunc(w.machines, func(m *machine.Machine) bool { return m.Name == name })
	m := w.machines[i].Clone()
	change(m)
	w.edits++
	m.Version = fmt.Sprintf("m%d", w.edits)
	w.machines = slices.Clone(w.machines)
	w.machines[i] = m
	w.changed()
}

// setPhase changes the phase of a machine now.
func (w *world) setPhase(name string, phase machine.Phase) {
	w.changeMachine(name, func(m *machine.Machine) { m.Status.Phase, m.Status.Since = phase, w.second() })
}

func (w *world) deleteMachine(name string) {
	w.changeMachine(name, func(m *machine.Machine) { m.DeletedAt = w.second() })
}

func (w *world) dropMachine(name string) {
	w.machines = slices.DeleteFunc(slices.Clone(w.machines), func(m *machine.Machine) bool { return m.Name == name })
	w.changed()
}

// numbers are counts of machines of one set. coming are those that will still be created.
type numbers struct{ spec, actual, available, coming, preserved int }

// total returns how many machines there may be until the set has its size.
func (n numbers) total() int { return max(n.spec, n.actual+n.coming) }

// stay returns how many preserved machines are left once the set has its size.
func (n numbers) stay() int { return max(0, min(n.preserved, n.spec)) }

// usable returns how many machines are available once the set has its size. Preserved machines are deleted last.
func (n numbers) usable() int { return max(0, min(n.available, n.spec-n.preserved)) }

func (w *world) numbers(s *machineset.Set) numbers {
	n := numbers{spec: w.size(s), coming: len(w.reserved[s.UID])}
	minReady := time.Duration(0)
	if w.deployment != nil {
		minReady = w.deployment.Spec.MinReady
	}
	for _, m := range w.machinesOf(s.UID) {
		if m.Deleted() || w.elsewhere(s, m.Name) {
			continue
		}
		n.actual++
		if m.Preserved(w.now) {
			n.preserved++
		}
		if available(m, minReady, w.now) {
			n.available++
		}
	}
	return n
}

// available reports whether a machine counts as available. One that is selected for an update in place does not,
// because it is about to stop.
func available(m *machine.Machine, minReady time.Duration, now time.Time) bool {
	return m.Ready() && !m.Preserved(now) && !m.AvailableAt(minReady).After(now) && m.Spec.InPlace != machine.InPlaceSelected
}

// sums of all sets of the deployment.
func (w *world) sums() (total, usable, isAvailable int) {
	if w.deployment == nil {
		return 0, 0, 0
	}
	for _, s := range w.setsOf(w.deployment.UID) {
		n := w.numbers(s)
		total += n.total()
		usable += n.usable()
		isAvailable += n.available
	}
	return total, usable, isAvailable
}

// String returns the sets for people: ordered/existing/available, the new set marked.
func (w *world) String() string {
	var b strings.Builder
	for _, s := range w.sets {
		n := w.numbers(s)
		mark := ""
		if s.Deleted() {
			mark = " going"
		}
		if s.Owner == nil {
			mark += " orphan"
		} else if w.deployment != nil && !s.OwnedBy(w.deployment.UID) {
			mark += " of another"
		}
		fmt.Fprintf(&b, "  [%s%s %d/%d/%d]", strings.TrimPrefix(s.Name, "web-"), mark, n.spec, n.actual, n.available)
	}
	return b.String()
}

// fatal ends a test; *testing.T and *rapid.T have it.
type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

// shell carries plans out, as Plan and Observation ask for. Each step is one decision or one order. A new shell is
// a new process, without memory.
type shell struct {
	t fatal
	w *world
	p *deployment.Policy

	// age picks how old a cached read is: one of n states, 0 the newest. Nil: the newest.
	age func(n int) int
	// refuse says whether the store refuses an order. Nil: it never does.
	refuse func() bool
	// decided is called with each plan and the observation that it was made from.
	decided func(*deployment.Observation, deployment.Plan)
	// issue is called with each order just before it is carried out.
	issue func(kind string, order deployment.Order, pass *deployment.Deployment)
	// issueMachine is issue for orders about machines.
	issueMachine func(kind string, order deployment.MachineOrder)

	seen  [3]int // the newest state that each cache has shown: deployment, sets, machines
	o     *deployment.Observation
	queue []func() bool // orders still to be carried out; false: refused
	steps int
	given map[string]bool // what was issued in this pass

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
		s.t.Fatalf("the pass does not end: %s", s.last.Why)
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

// cached picks a past state that is not older than the newest one that this cache has shown.
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

// live is the freshness of a live read without a known end.
var live = decision.Freshness{Began: begin}
