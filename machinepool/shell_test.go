package machinepool_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machine/fsm"
	"github.com/millwright-go/millwright/machinepool"
)

var states = func() *fsm.States[machinepool.Pool] {
	s, err := fsm.New(fsm.Pools()...)
	if err != nil {
		panic(err)
	}
	return s
}()

// changed is what a plan's write makes of a pool.
func changed(before *machinepool.Pool, plan *machinepool.Plan) *machinepool.Pool {
	after := before.Clone()
	switch write := plan.Write.(type) {
	case *machinepool.Update:
		after.Meta, after.Spec = write.Pool.CloneMeta(), write.Pool.Spec.Clone()
	case *machinepool.UpdateStatus:
		after.Status = write.Status.Clone()
	}
	return after
}

// ending is how a pass ended.
type ending int

const (
	waits ending = iota
	conflict
	died
	vanished
)

// shell carries plans out in a world. It loses its memory when it dies.
type shell struct {
	w        *world
	group    *machinepool.Group // the last answer
	memory   machinepool.Memory
	failures int
	wait     machinepool.Plan // the last plan of the last pass

	// cached picks the version of the pool that a pass begins with.
	cached func(newest int) int
	// fault is called before each port call. An outcome is answered in its place.
	fault func(name string) *machine.Outcome
	// lie, if set, changes the provider's next answers about the group.
	lie func(*machinepool.Group)
	// kill is called before and after each port call.
	kill func() bool
	// lost makes the call take effect and loses its answer.
	told func(machinepool.Plan)
	// steps are the decisions of the last pass.
	steps  int
	writes int
	calls  []string
}

var errSpins = errors.New("the pass has no end")

// observe reads everything from caches.
func (s *shell) observe() *machinepool.Observation {
	w := s.w
	newest := len(w.history) - 1
	at := newest
	if s.cached != nil {
		at = min(max(0, s.cached(newest)), newest)
	}
	o := &machinepool.Observation{
		Pool: w.history[at], Class: w.class, Bootstrap: w.boot, NoDrain: w.noDrain,
		Failures: s.failures, Features: w.choose, Group: s.group, Memory: &s.memory, Secret: w.secret,
	}
	w.match(o)
	return o
}

// match finds the nodes of the pool's instances, as the manager does. Where each carries its ID, the
// observation has those of this moment.
func (w *world) match(o *machinepool.Observation) {
	if !w.matches {
		o.Nodes = w.nodes
		return
	}
	found, ids := map[string]*machine.Node{}, o.Pool.Spec.ProviderIDs
	var free []*machine.Node
	for _, of := range slices.Sorted(maps.Keys(w.nodes)) {
		n := w.nodes[of]
		if slices.Contains(ids, n.ProviderID) {
			found[n.ProviderID] = n
		} else {
			free = append(free, n)
		}
	}
	o.Nodes, o.Unmatched = found, nil
	if len(found) < len(ids) {
		o.Unmatched = machinepool.MatchNodes(ids, found, free)
	}
}

// pass makes one pass.
func (s *shell) pass() (ending, error) {
	o := s.observe()
	seen := map[string]bool{}
	for s.steps = 0; s.steps < 40; s.steps++ {
		plan, err := machinepool.Decide(o, s.w.policy, s.w.now)
		if err != nil {
			return waits, err
		}
		if s.told != nil {
			s.told(plan)
		}
		s.wait = plan
		switch {
		case plan.Write != nil:
			if plan.Effect != nil {
				return waits, errors.New("a plan with a write and an effect")
			}
			if end, err := s.write(o, plan); end != waits || err != nil {
				return end, err
			}
		case plan.Effect != nil:
			name := fmt.Sprintf("%T", plan.Effect)
			if seen[name] {
				return waits, fmt.Errorf("%s twice in a pass", name)
			}
			seen[name] = true
			if end := s.carry(o, plan.Effect); end != waits {
				return end, nil
			}
		default:
			return waits, nil
		}
	}
	return waits, errSpins
}

func (s *shell) write(o *machinepool.Observation, plan machinepool.Plan) (ending, error) {
	w := s.w
	if err := states.Fire(context.Background(), o.Pool, changed(o.Pool, &plan), o, plan.Move); err != nil {
		return waits, err
	}
	if s.killed() {
		return died, nil
	}
	s.writes++
	if w.gone {
		return vanished, nil
	}
	if o.Pool.Version != w.pool().Version {
		return conflict, nil
	}
	next := changed(w.pool(), &plan)
	w.store(next)
	if s.killed() {
		return died, nil
	}
	if w.gone {
		return vanished, nil
	}
	o.Pool, o.Fenced = next, true
	if _, ok := plan.Write.(*machinepool.Update); ok {
		w.match(o)
	}
	o.Announced = o.Announced || plan.Announces
	return waits, nil
}

// restart is what a process knows that follows one that died.
func (s *shell) restart() { s.group, s.memory, s.failures = nil, machinepool.Memory{}, 0 }

func (s *shell) killed() bool { return s.kill != nil && s.kill() }

func (s *shell) carry(o *machinepool.Observation, e machinepool.Effect) ending {
	name := fmt.Sprintf("%T", e)[len("machinepool."):]
	s.calls = append(s.calls, name)
	if s.killed() {
		return died
	}
	var fault *machine.Outcome
	if s.fault != nil {
		fault = s.fault(name)
	}
	s.answer(o, e, fault)
	if s.killed() {
		return died
	}
	o.Failures = s.failures
	return waits
}

// answer carries an effect out, or makes it fail, and puts the answer into the observation.
func (s *shell) answer(o *machinepool.Observation, e machinepool.Effect, fault *machine.Outcome) {
	w := s.w
	outcome := machine.Outcome{}
	var group *machinepool.Group
	if fault != nil {
		outcome = *fault
		group = &machinepool.Group{Outcome: outcome}
		s.failures++
	} else {
		s.failures = 0
	}
	if group == nil {
		group = w.carry(e, o.Pool)
	}
	switch e := e.(type) {
	case machinepool.ReadPool:
		o.Pool, o.Fenced = w.pool(), true
		w.match(o)
	case machinepool.GetGroup:
		if fault == nil {
			group = w.observed()
			if s.lie != nil {
				s.lie(group)
			}
		}
		s.memory.See(o.Pool, group)
		o.Group, o.Looked, s.group = group, true, group
	case *machinepool.DrainNodes:
		o.Drain = w.drain(e.Leaving, o.Nodes)
	case *machinepool.KeepNodes:
		o.Kept = s.keep(e.ProviderIDs, outcome)
	case machinepool.DeleteGroup:
		o.GroupDeleted = group
	case machinepool.RemoveBootstrap:
		w.config = w.config && fault != nil
		o.BootstrapDeleted = &outcome
	case machinepool.Renew:
		if fault == nil {
			boot := *w.boot
			boot.TokenExpires = e.Until
			w.boot, o.Bootstrap = &boot, &boot
		}
		o.Renewed = &outcome
	default:
		s.changed(o, e, group)
	}
}

func (s *shell) keep(ids []string, outcome machine.Outcome) *machine.Outcome {
	if outcome.Code == codes.OK {
		for _, id := range ids {
			delete(s.w.drains, id)
		}
		s.w.kept = append(s.w.kept, ids...)
	}
	return &outcome
}

// changed records the answer to a changing effect, and drops what was known of the group.
func (s *shell) changed(o *machinepool.Observation, e machinepool.Effect, answer *machinepool.Group) {
	o.Group, s.group = nil, nil
	switch e.(type) {
	case machinepool.CreateGroup:
		o.Created = answer
	case machinepool.UpdateGroup:
		o.Updated = answer
	case machinepool.ScaleGroup:
		o.Scaled = answer
	case *machinepool.RemoveInstances:
		o.Deleted = answer
	case machinepool.ReplaceOne:
		o.Replaced = answer
	case *machinepool.TellDrained:
		o.Told = answer
	}
}

// until makes passes at the times that plans ask for, while the world goes on between them, until
// the pool is settled or the time is up.
func (s *shell) until(limit time.Duration, between func()) error {
	end := s.w.now.Add(limit)
	for !s.w.gone && s.w.now.Before(end) {
		how, err := s.pass()
		if err != nil {
			return err
		}
		between()
		if how == died {
			s.restart()
		}
		next := s.w.now.Add(time.Second)
		if how == waits && s.wait.At.After(next) {
			next = s.wait.At
		}
		s.w.now = next
	}
	return nil
}

// settled reports whether the pool is as wanted.
func (w *world) settled() bool {
	p := w.pool()
	return p.Status.Phase == machinepool.PhaseRunning && w.group != nil && w.group.target == p.Spec.Wanted() &&
		len(w.group.instances) == int(w.group.target) && len(p.Status.Leaving) == 0 && slices.Equal(w.ids(), p.Spec.ProviderIDs) &&
		w.group.made.Equal(&machinepool.Applied{Template: p.Spec.Template, RollingUpdate: p.Spec.RollingUpdate})
}
