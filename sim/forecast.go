package sim

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/sim/preview"
)

// Preview predicts what a rollout will do: a manager runs it in a simulated world without faults, with
// the durations of the model. Nothing is carried out, and the time is virtual. The same arguments give
// the same timeline.
//
// d is the deployment as it should be; sets are its present sets, with their machines. For a future
// rollout, d has the new template. Before the first creation, sets is empty and d may lack its UID.
// Preview changes neither.
//
// Machines that are in transition at the start continue as follows. A Pending machine joins when
// Model.Create has passed since its creation or, if that time is over, when it has passed from now.
// An unhealthy machine stays unhealthy, and one in CrashLoopBackOff never joins, so that they run into
// their timeouts. All other machines are healthy. Calls that are under way are made again.
//
// Preview stops when ctx ends. It then returns the timeline so far, whose Ending is EndStopped, and
// the context's error. Every other error comes with an empty timeline: decision.ErrNoObservation,
// or an *object.FieldError for a model out of range or for more machines than preview.MaxMachines.
func Preview(ctx context.Context, d *deployment.Deployment, sets []deployment.Children, m preview.Model) (preview.Timeline, error) {
	if d == nil {
		return preview.Timeline{}, fmt.Errorf("sim.Preview: %w", decision.ErrNoObservation)
	}
	if err := m.Validate(); err != nil {
		return preview.Timeline{}, err
	}
	if err := checkSize(d, sets); err != nil {
		return preview.Timeline{}, err
	}
	p := newForecast(d, sets, &m)
	defer p.w.Close()
	if err := p.w.managers.start(); err != nil {
		return preview.Timeline{}, err
	}
	return p.run(ctx)
}

// checkSize returns an error if a deployment or a set is too large for a preview.
func checkSize(d *deployment.Deployment, sets []deployment.Children) error {
	most := d.Spec.Replicas
	for _, c := range sets {
		if c.Set != nil {
			most = max(most, c.Set.Spec.Replicas)
		}
	}
	if most > preview.MaxMachines {
		return object.Invalid("spec.replicas", "must not be more than "+strconv.Itoa(preview.MaxMachines)+" in a preview")
	}
	return nil
}

// forecast is one preview.
type forecast struct {
	*fleetCount
	w          *World
	model      *preview.Model
	start      time.Time
	why        decision.Why            // with which reason the last pass over the deployment ended
	setWhys    map[string]decision.Why // the same of its sets, by name
	sizes      map[string]int32        // sizes of the sets after the steps so far, by name
	neverJoins map[string]bool         // whether a machine never joins, by name
	updates    int64                   // updates in place so far
	out        preview.Timeline
}

func newForecast(d *deployment.Deployment, sets []deployment.Children, m *preview.Model) *forecast {
	p := &forecast{
		model: m, start: m.Begins(d, sets), setWhys: map[string]decision.Why{}, sizes: map[string]int32{}, neverJoins: map[string]bool{},
	}
	o := p.managerOptions(d)
	p.w = newWorld(Options{
		Boot: m.Create, Update: max(m.Update, 1), Faults: Faults{Capacity: m.Capacity}, Manager: o,
		model: func(w *World) driver.Driver { return newPreviewDriver(w, m) },
	})
	p.w.clock.Set(p.start)
	p.w.clock.SkipEmptyPauses = true
	p.w.managers.workload = newNodePods(p.w.base, p.w.nodes, m.Pods, m.PodEnd).open
	d = p.w.seedFleet(d, sets, p.model)
	for _, mach := range p.w.machines.all() {
		if mach.Status.Phase == machine.PhaseCrashLoopBackOff {
			p.neverJoins[mach.Name] = true
		}
	}
	p.w.kubelets.readyTime = 0
	p.w.kubelets.fails = func(name string) bool { return p.neverJoins[name] }
	p.w.agents.fails = func() bool { p.updates++; return preview.Among(p.updates, m.FailUpdate) }
	p.fleetCount = newFleetCount(p.w, d, m.Updatable)
	p.out.Key, p.out.Bounds = d.Key, previewBounds(d)
	for _, s := range p.w.sets.all() {
		p.sizes[s.Name] = s.Spec.Replicas
	}
	p.takeSample()
	p.out.LowestAvailable = p.seen.Available()
	p.w.subscribe(p.see)
	return p
}

// managerOptions returns the options of the manager. They switch off everything periodic that a preview
// does not need.
func (p *forecast) managerOptions(d *deployment.Deployment) manager.Options {
	ds, ss := *deployment.DefaultPolicy(), *machineset.DefaultPolicy()
	if p.model.Policy != nil {
		ds = *p.model.Policy
	}
	if p.model.SetPolicy != nil {
		ss = *p.model.SetPolicy
	}
	never := p.model.Ahead() + time.Hour
	ds.FailedSummaries, ds.RolloutMarks = object.Off, machine.RolloutMarks{}
	ds.Resync, ss.Resync = never, never
	ds.StatusInterval, ds.ProgressInterval, ss.StatusInterval = object.Off, 0, time.Hour // nothing waits for the status of sets
	if d.Spec.RevisionHistoryLimit != nil {
		ss.StatusInterval = time.Second // a set is pruned once its status says that it is empty
	}
	if d.Spec.ProgressDeadline <= 0 && !d.Spec.Paused {
		ds.ProgressInterval = time.Hour // progress matters only for the deadline
	}
	o := manager.Options{
		Policies: manager.Policies{Deployment: &ds, Set: &ss, Machine: p.model.MachinePolicy, Safety: p.model.Safety},
		Tuning:   manager.Tuning{Resync: never},
		Hooks:    manager.Hooks{Plan: p.noteOrder, Pass: p.notePass},
	}
	switch {
	case o.Policies.Safety == nil:
		o.Policies.Safety = searchOnce(SafetyPolicy(), never)
	case o.Policies.Safety.Off:
		o.Policies.Safety = nil // in this package, nil is off
	default:
		o.Policies.Safety = searchOnce(o.Policies.Safety, never)
	}
	return o
}

// searchOnce returns a policy that searches only once for orphans, unowned objects and nodes without
// a machine, because a preview has none. It checks the API servers once an hour, so that there is always
// an event at which a stuck preview can end.
func searchOnce(p *safety.Policy, never time.Duration) *safety.Policy {
	c := *p.WithDefaults()
	c.OrphanPeriod, c.OrphanSoon, c.OwnerPeriod, c.NodePeriod, c.CheckPeriod = never, never, never, never, time.Hour
	c.VMPeriod = object.Off
	return &c
}

// previewBounds returns the bounds for d's machines.
func previewBounds(d *deployment.Deployment) preview.Bounds {
	b, replicas := boundsOf(d), max(d.Spec.Replicas, 0)
	f := d.Spec.Strategy.Bounds(replicas)
	out := preview.Bounds{
		Replicas: replicas, Surge: f.Surge, Unavailable: f.Unavailable, Floor: int32(max(b.floor, 0)), Ceiling: int32(b.ceiling),
	}
	if d.Deleted() {
		out.Floor = 0
	}
	return out
}

// elapsed returns the time since the start of the rollout.
func (p *forecast) elapsed() time.Duration { return p.w.Now().Sub(p.start).Truncate(time.Second) }

// run lets time pass until the preview ends.
func (p *forecast) run(ctx context.Context) (preview.Timeline, error) {
	err := p.w.Until(func() bool {
		p.takeSample()
		return p.hasEnded(ctx)
	}, p.model.Ahead())
	switch {
	case errors.Is(err, ErrLimit):
		p.w.clock.Set(p.start.Add(p.model.Ahead()))
		p.stop(preview.EndLimit)
	case err != nil:
		return preview.Timeline{}, fmt.Errorf("sim.Preview: %w", err)
	}
	return p.out, ctx.Err()
}

// hasEnded reports whether the preview ends now, and records why.
func (p *forecast) hasEnded(ctx context.Context) bool {
	done := deployment.RolloutOf(p.why).Reason == rollout.ReasonDone
	switch {
	case ctx.Err() != nil:
		p.stop(preview.EndStopped)
	case p.deployment == nil || done && p.seen.Terminating == 0 && p.seen.Outdated == 0 && !p.pruneDue():
		p.stop(preview.EndComplete)
	case p.model.Hopeless() && p.failedSince > int64(p.out.HighestTotal):
		p.stop(preview.EndFailing)
	case p.refused():
		p.stop(preview.EndRefused)
	case p.rolloutStopped():
		p.stop(preview.EndRolloutStopped)
	case p.deployment.Spec.Paused && p.onHold():
		p.stop(preview.EndPaused)
	case p.w.Now().Sub(p.progressed) <= p.model.Waits():
		return false
	case p.deployment.Spec.Paused:
		p.stop(preview.EndPaused)
	default:
		p.stop(preview.EndStuck)
	}
	return true
}

// rolloutStopped reports whether the rollout has stopped and no update is under way any more.
func (p *forecast) rolloutStopped() bool {
	updates := &p.deployment.Status.InPlace
	return deployment.RolloutOf(p.why).Reason == rollout.ReasonStopped && updates.Selected+updates.Updating+updates.Updated == 0
}

// pruneDue reports whether a set is about to be pruned. After a minute without progress it is not: then
// something keeps the set.
func (p *forecast) pruneDue() bool {
	limit := p.deployment.Spec.RevisionHistoryLimit
	return limit != nil && p.w.Now().Sub(p.progressed) < time.Minute && p.excessHistory(int(*limit))
}

// refused reports whether the last decision was that the deployment is invalid.
func (p *forecast) refused() bool {
	if p.deployment.Deleted() && !p.deployment.HasFinalizer(deployment.Finalizer) {
		return p.why != (decision.Why{})
	}
	c := object.FindCondition(p.deployment.Status.Conditions, deployment.ConditionSpecValid)
	return c != nil && c.Status == object.False && c.Reason == p.why.Reason.String()
}

// onHold reports whether nothing more will happen to a paused deployment: its sets have the machines
// that they want, no machine is being created or deleted, and the deployment's status, which is
// written after all orders, counts them.
func (p *forecast) onHold() bool {
	s := &p.deployment.Status
	c := object.FindCondition(s.Conditions, deployment.ConditionProgressing)
	return p.why != (decision.Why{}) && c != nil && c.Reason == deployment.ProgressPaused &&
		s.Replicas == p.seen.Total() && s.Ready == p.seen.Ready && s.Available == p.seen.Available() && p.fullySupplied()
}

func (p *forecast) stop(reason preview.EndReason) {
	e := preview.Ending{Reason: reason, Waits: p.why, After: p.elapsed()}
	if reason == preview.EndFailing {
		e.Count = p.failedSince
	}
	e.Set = p.setWhys[deployment.RolloutOf(p.why).Set]
	p.out.Ending, p.out.Complete, p.out.Duration = e, reason == preview.EndComplete, e.After
	p.out.Created, p.out.Deleted, p.out.Failed = p.created, p.deleted, p.failed
	p.out.Selected, p.out.Moved, p.out.Updated = p.selected, p.moved, p.updated
}

// see decides of each new machine whether it will join, and notes when the rollout exceeds its deadline.
func (p *forecast) see(e event) {
	switch e := e.(type) {
	case stored[*machine.Machine]:
		if _, known := p.neverJoins[e.key.Name]; !known && p.createdMeanwhile[e.key] { // fleetCount has seen it before
			p.neverJoins[e.key.Name] = preview.Among(p.created, p.model.Fail)
		}
	case stored[*deployment.Deployment]:
		if e.now == nil || p.out.Overdue > 0 {
			return
		}
		c := object.FindCondition(e.now.Status.Conditions, deployment.ConditionProgressing)
		if c != nil && c.Reason == deployment.ProgressDeadlineExceeded {
			p.out.Overdue = p.elapsed()
		}
	}
}

// notePass notes the reason with which a pass over the deployment or a set ended.
func (p *forecast) notePass(kind manager.Kind, key object.Key, _ int, result manager.Result, err error) {
	switch {
	case err != nil:
	case kind == manager.KindDeployment && key == p.out.Key:
		p.why = result.Why
	case kind == manager.KindSet:
		p.setWhys[key.Name] = result.Why
	}
}

// noteOrder notes an order as a step.
func (p *forecast) noteOrder(kind manager.Kind, key object.Key, why decision.Why) {
	name := why.Name
	switch {
	case kind == manager.KindSet && isSetOrder(why.Reason):
		name = key.Name
	case kind != manager.KindDeployment || key != p.out.Key || !isOrder(why.Reason):
		return
	}
	p.takeSample()
	if why.Reason == deployment.ReasonSelect {
		name = p.setOf(object.Key{Namespace: key.Namespace, Name: why.Name})
	}
	if p.isNoted(name, why) {
		return
	}
	step := preview.Step{After: p.elapsed(), Set: name, Seen: p.seen, From: p.sizes[name], To: p.sizes[name]}
	if s, err := p.w.sets.Get(context.Background(), object.Key{Namespace: key.Namespace, Name: name}); err == nil {
		step.To, step.New = s.Spec.Replicas, s == p.current
		if _, known := p.sizes[name]; !known {
			step.From = step.To
		}
		p.sizes[name] = step.To
	}
	if step.Why = why; kind == manager.KindSet {
		step.Why, step.Machines = decision.Why{}, why
	}
	p.out.Steps = append(p.out.Steps, step)
}

// isNoted reports whether an order is a step already. The manager reports a plan after each of its
// orders, and the selection of several machines once for each machine.
func (p *forecast) isNoted(set string, why decision.Why) bool {
	for i := len(p.out.Steps) - 1; i >= 0 && p.out.Steps[i].After == p.elapsed(); i-- {
		s := &p.out.Steps[i]
		if s.Why == why || why.Reason == deployment.ReasonSelect && s.Why.Reason == why.Reason && s.Set == set {
			return true
		}
	}
	return false
}

// setOf returns the name of the set that owns a machine.
func (p *forecast) setOf(machine object.Key) string {
	if m := p.machines[machine].machine; m != nil && m.Owner != nil {
		return m.Owner.Name
	}
	return ""
}

// isOrder reports whether an order of the deployment is a step.
func isOrder(r decision.Reason) bool {
	switch r {
	case deployment.ReasonCreate, deployment.ReasonExchange, deployment.ReasonScale, deployment.ReasonDelete, deployment.ReasonPrune,
		deployment.ReasonRelease, deployment.ReasonRepair, deployment.ReasonSelect, deployment.ReasonMoveTo,
		deployment.ReasonMoveFrom, deployment.ReasonMoveBack, deployment.ReasonRollbackDone,
		deployment.ReasonRollbackInvalid, deployment.ReasonRollbackRevisionNotFound,
		deployment.ReasonRollbackTemplateUnchanged:
		return true
	}
	return false
}

// isSetOrder reports whether an order of a set is a step. Creations and deletions that follow from the
// set's size are not.
func isSetOrder(r decision.Reason) bool {
	return r == machineset.ReasonDeleteFailed || r == machineset.ReasonDeleteAll || r == machineset.ReasonReleasing
}

// takeSample counts the fleet, and adds a sample if the counts have changed.
func (p *forecast) takeSample() {
	if !p.recountAll() && len(p.out.Samples) > 0 {
		return
	}
	p.out.Samples = append(p.out.Samples, preview.Sample{After: p.elapsed(), Counts: p.seen})
	p.out.LowestAvailable = min(p.out.LowestAvailable, p.seen.Available())
	p.out.HighestTotal = max(p.out.HighestTotal, p.seen.Total())
}
