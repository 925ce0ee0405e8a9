package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/preview"
)

// defaultLimit is the default of Scenario.Limit.
const defaultLimit = 48 * time.Hour

// Play plays a scenario. The error is a mistake in the scenario, or the manager's. It is ErrIncomplete
// if a scenario that was read from JSON lacks functions that the written one had.
func Play(s *Scenario) (Result, error) { return PlayUntil(s, time.Time{}) }

// PlayUntil plays a scenario as Play does, but stops at the virtual time end. That it was stopped is
// no violation. A zero end means that it is not stopped.
func PlayUntil(s *Scenario, end time.Time) (Result, error) {
	w, err := s.open()
	if err != nil {
		return Result{}, err
	}
	w.end = end
	began := w.Now()
	defer w.Close()
	err = s.play(w)
	r := Result{Stats: w.Stats(), Left: w.Left(), Took: w.Now().Sub(began)}
	switch {
	case errors.As(err, &r.Violation):
		w.tell("violation of %s: %s", r.Violation.Rule, r.Violation.What)
		w.trace = nil // what is called from here on only closes the world
		err = nil
	case errors.Is(err, errOver):
		err = nil
	}
	return r, err
}

func (s *Scenario) open() (*World, error) {
	if err := s.checkComplete(); err != nil {
		return nil, err
	}
	o := s.Options
	if o.Pools == nil && len(s.Pools) > 0 {
		o.Pools = &PoolOptions{}
	}
	w, err := New(o)
	if err != nil {
		return nil, err
	}
	for _, class := range s.Classes {
		if err := w.AddClass(class); err != nil {
			return nil, fmt.Errorf("class %s: %w", class, err)
		}
	}
	for _, d := range s.Deployments {
		if o.NoCluster && d.Spec.Strategy.Kind == deployment.InPlaceUpdate {
			d = d.Clone()
			d.Spec.Strategy.Kind = deployment.RollingUpdate
		}
		if _, err := w.Deployments().Create(context.Background(), d); err != nil {
			return nil, fmt.Errorf("deployment %s: %w", d.Name, err)
		}
	}
	if err := s.addPools(w); err != nil {
		return nil, fmt.Errorf("pools: %w", err)
	}
	for _, a := range s.Apps {
		w.AddApp(a)
	}
	if s.Lone {
		return w, w.addLone()
	}
	return w, nil
}

// play does the steps and waits for the world to converge.
func (s *Scenario) play(w *World) error {
	for i := range s.Steps {
		if err := w.Run(s.Steps[i].After); err != nil {
			return err
		}
		w.Do(&s.Steps[i])
	}
	if err := w.Run(s.FaultsAfterSteps); err != nil {
		return err
	}
	w.StopFaults()
	for i := range s.Deployments {
		w.edit(s.Deployments[i].Name, func(spec *deployment.Spec) { spec.Paused = false })
	}
	resumeAll(w, w.machines)
	resumeAll(w, w.sets)
	if err := s.awaitExpiry(w); err != nil {
		return err
	}
	if err := s.reachRest(w); err != nil || s.Keep {
		return err
	}
	for _, d := range w.deployments.all() {
		_ = w.deployments.Delete(context.Background(), d.Key, d.UID) // seen in the same instant: it is there
	}
	w.removeLone()
	w.deletePools()
	if err := s.settle(w, "go", func() bool { return w.Left().None() }); err != nil {
		return err
	}
	w.emit(allGone{})
	if err := w.violated(); err != nil {
		return err
	}
	return s.finally(w)
}

// settle waits until goal is true, which is a violation if it takes longer than the limit.
func (s *Scenario) settle(w *World, what string, goal func() bool) error {
	err := w.Until(goal, s.limit())
	if errors.Is(err, ErrLimit) {
		return w.violation(RuleSettled, "%s are left that had %s to %s%s", w.Left(), s.limit(), what, w.notConverged())
	}
	return err
}

// finally waits until Finally of each property returns nil, after everything was deleted.
func (s *Scenario) finally(w *World) error {
	for _, p := range w.o.Properties {
		if p.Finally == nil {
			continue
		}
		var last error
		err := w.Until(func() bool { last = p.Finally(w); return last == nil }, s.limit())
		if errors.Is(err, ErrLimit) {
			return w.violation(p.Name, "%v, %s after all is deleted", last, s.limit())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// limit returns Limit, or its default.
func (s *Scenario) limit() time.Duration { return cmp.Or(s.Limit, defaultLimit) }

// awaitExpiry lets time pass until all machines have reached the maximum age of their deployment, if
// it has one, and waits until each of them is replaced. Machines that expire meanwhile are not waited
// for: with a short maximum age there always are some. It then removes the maximum age.
func (s *Scenario) awaitExpiry(w *World) error {
	var limit time.Duration
	for _, d := range w.deployments.all() {
		limit = max(limit, d.Spec.MaxAge)
	}
	if limit == 0 {
		return nil
	}
	if err := w.Run(limit + limit/5); err != nil {
		return err
	}
	old := w.allTooOld()
	still := func(uid string) bool { return slices.Contains(old, uid) }
	if err := s.settle(w, "be renewed", func() bool { return !slices.ContainsFunc(w.allTooOld(), still) }); err != nil {
		return err
	}
	for _, d := range w.deployments.all() {
		w.edit(d.Name, func(spec *deployment.Spec) { spec.MaxAge = 0 })
	}
	return nil
}

// allTooOld returns the UIDs of the machines that their sets have to replace.
func (w *World) allTooOld() (uids []string) {
	for _, s := range w.sets.all() {
		for _, m := range w.machines.all() {
			if m.OwnedBy(s.UID) && w.tooOld(m, s) {
				uids = append(uids, m.UID)
			}
		}
	}
	return uids
}

// reachRest waits for the world to converge, and checks that it stays so.
func (s *Scenario) reachRest(w *World) error {
	if err := s.settle(w, "converge", w.allComplete); err != nil {
		return err
	}
	if err := s.settle(w, "have the tags wanted", func() bool { return w.tagged() && w.allComplete() }); err != nil {
		return err
	}
	if err := w.staysConverged(); err != nil {
		return err
	}
	if err := w.checkPoolNodes(); err != nil {
		return err
	}
	w.emit(allAtRest{})
	return w.violated()
}

// staysConverged checks that nothing writes to a fleet that has converged (P28), or changes a group (P37).
func (w *World) staysConverged() error {
	if err := w.Run(settling); err != nil || !w.allComplete() {
		return err
	}
	before, changes := w.writes, w.changes()+w.renewals
	if err := w.Run(watchedFor); err != nil {
		return err
	}
	if n := w.writes - before; n > 0 {
		return w.violation("P28", "%d writes in %s, and nothing was to be done", n, watchedFor)
	}
	if n := w.changes() + w.renewals - changes; n > 0 {
		return w.violation("P37", "%d calls to change groups in %s, and nothing was to be done", n, watchedFor)
	}
	return nil
}

// After a fleet has converged, it is left alone for settling, so that the periodic searches for
// orphans take place, and is then watched for watchedFor.
const (
	settling   = 2 * time.Hour
	watchedFor = time.Hour
)

// allComplete reports whether all deployments and pools have converged, and no machine is being deleted.
func (w *World) allComplete() bool {
	for _, d := range w.deployments.all() {
		if fleet := w.fleetOf(d); d.Deleted() || !isComplete(d, fleet) || w.wantedBySets(d) != d.Spec.Replicas || w.keptOf(fleet) > 0 {
			return false
		}
	}
	// Machines without a deployment count, too.
	return w.poolsComplete() && !slices.ContainsFunc(w.machines.all(), (*machine.Machine).Deleted)
}

// addPools stores the pools of a scenario.
func (s *Scenario) addPools(w *World) error {
	for _, p := range s.Pools {
		if err := w.AddPool(p); err != nil {
			return err
		}
	}
	return nil
}

// deletePools deletes all pools.
func (w *World) deletePools() {
	w.toRemake = map[object.Key]bool{}
	for _, p := range w.pools.all() {
		_ = w.pools.Delete(context.Background(), p.Key, p.UID) // seen in the same instant: it is there
	}
}

// fleetSeeder fills a world with a fleet that exists already.
type fleetSeeder struct {
	w        *World
	model    *preview.Model
	machines map[object.Key]*machine.Machine
	sets     map[object.Key]*machineset.Set
	nodes    map[object.Key]*machine.Node
	specs    map[object.Key]machine.VMSpec // of classes, by the key of the class
	uids     map[string]string             // the new UIDs, by the original ones
}

// seedFleet fills a world with an existing fleet, and returns the deployment as it is stored. It does
// not change its arguments.
func (w *World) seedFleet(d *deployment.Deployment, children []deployment.Children, m *preview.Model) *deployment.Deployment {
	s := &fleetSeeder{
		w: w, model: m, machines: map[object.Key]*machine.Machine{}, sets: map[object.Key]*machineset.Set{}, nodes: map[object.Key]*machine.Node{},
		specs: map[object.Key]machine.VMSpec{}, uids: map[string]string{},
	}
	d = d.Clone()
	d.Spec.MaxAge = 0 // replacement for age is no part of a rollout
	s.changeUIDs(&d.Meta)
	s.addClass(d.Namespace, &d.Spec.Template.Spec)
	for _, c := range children {
		s.addSet(c)
	}
	w.deployments.load([]*deployment.Deployment{d})
	w.sets.load(inKeyOrder(s.sets))
	w.machines.load(inKeyOrder(s.machines))
	w.nodes.load(inKeyOrder(s.nodes))
	return d
}

// changeUIDs gives an object and its owner UIDs that the stores give to no other object.
func (s *fleetSeeder) changeUIDs(m *object.Meta) {
	m.UID = s.newUID(m.UID)
	if m.Owner != nil {
		owner := *m.Owner
		owner.UID = s.newUID(owner.UID)
		m.Owner = &owner
	}
}

// newUID returns the new UID for an original one. Equal UIDs share their memory, so that comparing them
// is fast.
func (s *fleetSeeder) newUID(uid string) string {
	if s.uids[uid] == "" {
		s.uids[uid] = "before/" + uid
	}
	return s.uids[uid]
}

// inKeyOrder returns objects in the order of their keys.
func inKeyOrder[T object.Object[T]](objects map[object.Key]T) []T {
	all := make([]T, 0, len(objects))
	for _, o := range objects {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b T) int { return compareKeys(a.ObjectMeta().Key, b.ObjectMeta().Key) })
	return all
}

// addClass stores the class of a spec, unless it is stored already: the model's class of that name, or
// one that differs from every other.
func (s *fleetSeeder) addClass(namespace string, spec *machine.Spec) {
	key := object.Key{Namespace: namespace, Name: spec.Class.Name}
	if _, known := s.specs[key]; known || key.Name == "" {
		return
	}
	class := s.modelClass(key)
	if class == nil {
		class = s.w.newClass(key)
	}
	_ = s.w.addClass(class) // can't fail: the store is in memory, and has no such class
	s.specs[key] = machine.SplitSpec(class, s.model.Updatable)
}

// modelClass returns a copy of the model's class with that key, or nil.
func (s *fleetSeeder) modelClass(k object.Key) *machine.Class {
	for _, c := range s.model.Classes {
		if c != nil && c.Key == k {
			c = c.Clone()
			c.Meta = object.Meta{Key: k}
			return c
		}
	}
	return nil
}

// addSet adds a set and its machines. If two have the same name, the first counts.
func (s *fleetSeeder) addSet(c deployment.Children) {
	if c.Set == nil || s.sets[c.Set.Key] != nil {
		return
	}
	set := c.Set.Clone()
	set.Instructions.Marks, set.Spec.MaxAge = machine.RolloutMarks{}, 0
	s.changeUIDs(&set.Meta)
	s.sets[set.Key] = set
	s.addClass(set.Namespace, &set.Spec.Template.Spec)
	for _, m := range c.Machines {
		if m != nil && m.OwnedBy(c.Set.UID) && s.machines[m.Key] == nil {
			s.addMachine(m.Clone())
		}
	}
}

// addMachine adds a machine, with its VM and its node if it has them.
func (s *fleetSeeder) addMachine(m *machine.Machine) {
	s.changeUIDs(&m.Meta)
	s.machines[m.Key] = m
	s.addClass(m.Namespace, &m.Spec)
	switch m.Status.Phase {
	case machine.PhaseNew, machine.PhaseCrashLoopBackOff:
		m.Spec.ProviderID, m.Spec.NodeName = "", ""
		return
	case machine.PhaseAvailable:
		m.Status.Phase = machine.PhaseRunning // here, all machines join the cluster
	}
	m.AddFinalizer(machine.Finalizer)
	id := s.w.vms.addExisting(m.Name, m.Spec.Class.Name)
	m.Spec.ProviderID, m.Spec.NodeName = id, m.Name
	if (m.Status.VMSpec == machine.VMSpec{}) && len(s.model.Updatable) > 0 {
		m.Status.VMSpec = s.specs[object.Key{Namespace: m.Namespace, Name: m.Spec.Class.Name}] // the manager assumes the same of such VMs
	}
	switch m.Status.Phase {
	case machine.PhasePending:
		left := m.CreatedAt.Add(s.model.Create).Sub(s.w.Now())
		if left <= 0 || left > s.model.Create { // late, or created in the future
			left = s.model.Create
		}
		s.w.kubelets.bootIn(left, m.Name, id)
	case machine.PhaseFailed, machine.PhaseTerminating:
	default:
		s.join(m)
	}
}

// join adds the node of a machine that has joined.
func (s *fleetSeeder) join(m *machine.Machine) {
	n := &machine.Node{Meta: object.Meta{Key: object.Key{Name: m.Name}, UID: "before/" + m.Name, Generation: 1, CreatedAt: m.CreatedAt}}
	n.ProviderID = m.Spec.ProviderID
	ready := object.Condition{Type: machine.NodeReady, Status: object.True, Since: m.Status.Since}
	if m.Status.Phase == machine.PhaseUnknown {
		ready.Status = object.Unknown
	}
	n.Conditions = []object.Condition{ready}
	n.AddFinalizer(machine.NodeFinalizer)
	t := m.Spec.NodeTemplate.Clone()
	n.Applied.NodeTemplate, n.Applied.Generation = m.Spec.NodeTemplate.Clone(), m.Generation
	n.Labels, n.Annotations, n.Taints = t.Labels, t.Annotations, t.Taints
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[s.w.machinePolicy().Keys.NodeMachine] = m.Name
	m.Status.Conditions = []object.Condition{ready}
	s.nodes[n.Key] = n
}

// maxListed is how many objects of a kind a violation names.
const maxListed = 5

// notConverged describes what has not converged: pools, deployments, machines with their phases and
// reasons, and nodes and VMs without a machine.
func (w *World) notConverged() string {
	var pools, fleets []string
	for _, p := range w.pools.all() {
		if lacks := w.poolNotConverged(p); lacks != "" {
			pools = append(pools, fmt.Sprintf("pool %s: %s", p.Name, lacks))
		}
	}
	for _, d := range w.deployments.all() {
		if lacks := w.fleetNotConverged(d); lacks != "" {
			fleets = append(fleets, fmt.Sprintf("deployment %s: %s", d.Name, lacks))
		}
	}
	return listed(pools) + listed(fleets) + listed(w.unsettledMachines()) + listed(w.unowned())
}

// listed joins the first maxListed texts, and says how many more there are.
func listed(all []string) string {
	var b strings.Builder
	for _, what := range all[:min(len(all), maxListed)] {
		b.WriteString("; " + what)
	}
	if more := len(all) - maxListed; more > 0 {
		fmt.Fprintf(&b, "; and %d more", more)
	}
	return b.String()
}

// unsettledMachines describes the machines that have not converged, and one whose VM has the wrong tags.
func (w *World) unsettledMachines() (all []string) {
	for _, m := range w.machines.all() {
		if lacks := machineNotConverged(m); lacks != "" {
			all = append(all, fmt.Sprintf("machine %s: %s", m.Name, lacks))
		}
	}
	if name := w.untagged(); name != "" {
		all = append(all, fmt.Sprintf("machine %s: its VM has other tags than its class says", name))
	}
	return all
}

// unowned describes the nodes and VMs that belong to no machine and no pool.
func (w *World) unowned() (all []string) {
	machines := map[string]bool{}
	for _, m := range w.machines.all() {
		machines[m.Name] = true
	}
	for _, n := range w.nodes.all() {
		if _, i := w.groups.Instance(n.ProviderID); i == nil && !machines[n.Name] {
			all = append(all, fmt.Sprintf("node %s has no machine", n.Name))
		}
	}
	for _, vm := range w.provider.VMs() {
		if !machines[vm.Name] {
			all = append(all, fmt.Sprintf("VM %s has no machine", vm.ID))
		}
	}
	return all
}

// fleetNotConverged returns what a deployment lacks to be at rest, or "".
func (w *World) fleetNotConverged(d *deployment.Deployment) string {
	fleet, s := w.fleetOf(d), &d.Status
	switch pledged := w.wantedBySets(d); {
	case d.Deleted():
		return fmt.Sprintf("it is being deleted, and has %d machines", len(fleet))
	case !isComplete(d, fleet):
		return fmt.Sprintf("%d are wanted, %d machines are there, and its status counts %d, updated %d, available %d",
			d.Spec.Replicas, len(fleet), s.Replicas, s.Updated, s.Available)
	case pledged != d.Spec.Replicas:
		return fmt.Sprintf("%d are wanted, and its sets want %d", d.Spec.Replicas, pledged)
	case w.keptOf(fleet) > 0:
		return fmt.Sprintf("%d machines are kept for inspection", w.keptOf(fleet))
	case w.o.UpdatableTags && s.Outdated > 0:
		return fmt.Sprintf("%d machines have yet to get the tags wanted", s.Outdated)
	}
	return ""
}

// machineNotConverged returns the phase of a machine that is not at rest, and why, or "".
func machineNotConverged(m *machine.Machine) string {
	s := &m.Status
	if m.Ready() && !m.Deleted() {
		return ""
	}
	what := string(s.Phase)
	if what == "" {
		what = "no phase"
	}
	if m.Deleted() {
		what += ", being deleted"
	}
	op := &s.LastOperation
	if op.Kind == "" {
		return what
	}
	what += fmt.Sprintf(" (%s, %s, %s)", op.Kind, op.Stage, op.State)
	if op.Message != "" {
		what += ": " + op.Message
	}
	return what
}

// podsStaying counts the pods that a drain may not leave on a node. It leaves out pods that have
// finished, pods that were bound in spite of the cordon (others would take their place), and pods
// whose grace period ended half a minute ago by the manager's clock.
func (w *World) podsStaying(node string) (n int) {
	now := w.latest()
	for _, p := range w.apps.On(node) {
		if !p.Finished && !w.cameDespiteCordon(p, node) && (p.GraceEnds.IsZero() || now.Before(p.GraceEnds.Add(overdue))) {
			n++
		}
	}
	return n
}

// podsRunning counts the pods of a node that run and were not told to terminate. It leaves out pods
// that were bound in spite of the cordon (others would take their place).
func (w *World) podsRunning(node string) (n int) {
	for _, p := range w.apps.On(node) {
		if !p.Finished && p.GraceEnds.IsZero() && !w.cameDespiteCordon(p, node) {
			n++
		}
	}
	return n
}

// cameDespiteCordon reports whether a pod tolerates the cordon and was created after the drain of its
// node began.
func (w *World) cameDespiteCordon(p *drain.Pod, node string) bool {
	n, err := w.nodes.Get(context.Background(), object.Key{Name: node})
	return err == nil && n.Drain != nil && p.ToleratesCordon && p.CreatedAt.Truncate(time.Second).After(n.Drain.Youngest)
}

// overdue is how long a drain waits for a pod after the end of its grace period.
const overdue = 30 * time.Second
