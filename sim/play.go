package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// defaultLimit is how long convergence may take once the faults have stopped.
const defaultLimit = 48 * time.Hour

// Play plays a scenario. The error is a mistake in it, or the manager's. It is ErrIncomplete for a
// scenario that was read and still lacks code that the written one had.
func Play(s *Scenario) (Result, error) { return PlayUntil(s, time.Time{}) }

// PlayUntil plays a scenario as Play does, and ends it at a time in its world. A run that is ended
// is no violation. A zero end means none.
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
		w.trace = nil // what is left is how the world ends
		err = nil
	case errors.Is(err, errOver):
		err = nil
	}
	return r, err
}

func (s *Scenario) open() (*World, error) {
	if err := s.whole(); err != nil {
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
	if err := w.Run(s.Calm); err != nil {
		return err
	}
	w.StopFaults()
	for i := range s.Deployments {
		w.edit(s.Deployments[i].Name, func(spec *deployment.Spec) { spec.Paused = false })
	}
	resumeAll(w, w.machines)
	resumeAll(w, w.sets)
	if err := s.aged(w); err != nil {
		return err
	}
	if err := s.rest(w); err != nil || s.Keep {
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

// settle waits for something that must become true.
func (s *Scenario) settle(w *World, what string, goal func() bool) error {
	err := w.Until(goal, s.limit())
	if errors.Is(err, ErrLimit) {
		return w.violation(RuleSettled, "%s are left that had %s to %s%s", w.Left(), s.limit(), what, w.lacks())
	}
	return err
}

// finally waits for what properties ask for once all is deleted.
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

// limit is Limit, or its default.
func (s *Scenario) limit() time.Duration { return cmp.Or(s.Limit, defaultLimit) }

// aged renews a fleet whose machines get too old once: each that is, is replaced (P7 holds
// meanwhile). Others get too old by then, where an age is short beside grace and boot.
func (s *Scenario) aged(w *World) error {
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

// rest waits for the world to converge, and checks that it stays so.
func (s *Scenario) rest(w *World) error {
	if err := s.settle(w, "converge", w.allComplete); err != nil {
		return err
	}
	if err := s.settle(w, "have the tags wanted", func() bool { return w.tagged() && w.allComplete() }); err != nil {
		return err
	}
	if err := w.quiet(); err != nil {
		return err
	}
	if err := w.checkPoolNodes(); err != nil {
		return err
	}
	w.emit(allAtRest{})
	return w.violated()
}

// quiet checks that nothing writes to a fleet that has converged (P28).
func (w *World) quiet() error {
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

// These say how long a fleet is left alone once it has converged, so that periodic collections take
// place, and how long it is then watched.
const (
	settling   = 2 * time.Hour
	watchedFor = time.Hour
)

// allComplete reports whether all deployments have converged.
func (w *World) allComplete() bool {
	for _, d := range w.deployments.all() {
		if fleet := w.fleetOf(d); d.Deleted() || !isComplete(d, fleet) || w.pledged(d) != d.Spec.Replicas || w.keptOf(fleet) > 0 {
			return false
		}
	}
	going := func(m *machine.Machine) bool { return m.Deleted() } // also one without a fleet
	return w.poolsComplete() && !slices.ContainsFunc(w.machines.all(), going)
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
	w.remade = map[object.Key]bool{}
	for _, p := range w.pools.all() {
		_ = w.pools.Delete(context.Background(), p.Key, p.UID) // seen in the same instant: it is there
	}
}
