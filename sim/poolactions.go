package sim

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/internal/groups"
)

// Groups returns the simulated provider of groups, to be wrapped by
// Options.PoolDriver.
func (w *World) Groups() pooldriver.Driver { return w.groups }

// AddPool stores a pool, which should be in Namespace. If its template names a bootstrap config,
// the data come after a while.
func (w *World) AddPool(p *machinepool.Pool) error {
	made, err := w.pools.Create(context.Background(), p)
	if err == nil {
		w.bootstrapOf(made)
	}
	return err
}

// actOnPool does what a step does to a pool.
func (w *World) actOnPool(s *Step) {
	if w.o.Pools == nil || !isPoolAction(s.Do) {
		return
	}
	done := false
	key := w.poolPolicy().Keys.Autoscaled
	switch n := int32(s.N); s.Do {
	case ScalePool:
		done = w.editPool(s.Name, func(p *machinepool.Pool) { p.Spec.Replicas = &n })
	case RollPool:
		done = w.editPool(s.Name, func(p *machinepool.Pool) { p.Spec.Template.Class.Name = s.Class })
	case SpreadPool:
		done = w.editPool(s.Name, func(p *machinepool.Pool) { p.Spec.FailureDomains = []string{"a", "b", "c"}[:min(max(s.N, 0), 3)] })
	case BoundPool:
		done = w.o.Pools.Features.RollingUpdate && w.editPool(s.Name, func(p *machinepool.Pool) { p.Spec.RollingUpdate = s.bounds() })
	case Autoscale:
		done = w.editPool(s.Name, func(p *machinepool.Pool) { p.Annotations = map[string]string{key: s.Value} })
	case StopGroups:
		w.poolCalls.silent, done = w.Now().Add(s.For), true
	case DeletePool, RemakePool:
		if p := w.pool(object.Key{Namespace: Namespace, Name: s.Name}); p != nil && !p.Deleted() {
			w.remade[p.Key] = s.Do == RemakePool
			done = w.pools.Delete(context.Background(), p.Key, p.UID) == nil
		}
	case ForgetPool:
		done = w.forgetPool(object.Key{Namespace: Namespace, Name: s.Name})
	default:
		done = w.actOnGroup(s)
	}
	if done {
		w.actions[s.Do]++
	}
}

// bounds are those that BoundPool asks for.
func (s *Step) bounds() *machinepool.RollingUpdate {
	n := rollout.IntOrPercent{Value: int32(max(s.N, 0))}
	switch {
	case n.Value == 0:
		return nil
	case s.Value == "missing":
		return &machinepool.RollingUpdate{MaxUnavailable: n}
	}
	return &machinepool.RollingUpdate{MaxSurge: n}
}

// forgetPool removes a pool's record.
func (w *World) forgetPool(k object.Key) bool {
	p := w.pool(k)
	if p == nil {
		return false
	}
	delete(w.remade, k)
	w.facts.forgotten[p.UID] = true
	w.ownerlessGroup(k)
	bare := p.Clone()
	bare.Finalizers = nil
	bare, err := w.pools.Update(context.Background(), bare)
	if err == nil && !p.Deleted() {
		err = w.pools.Delete(context.Background(), k, bare.UID)
	}
	return err == nil
}

// actOnGroup does what a step does at the provider, and reports whether there is a group or instance
// that it can be done to.
func (w *World) actOnGroup(s *Step) bool {
	g := w.groups.Of(object.Key{Namespace: Namespace, Name: s.Name})
	if g == nil || g.Going {
		return false
	}
	w.changed()
	switch s.Do {
	case ResizeGroup:
		w.groups.Resize(g, int32(max(s.N, 0)))
	case FailGroup:
		w.groups.Fail(g, s.For)
	case LoseGroup:
		w.groups.Lose(g)
	default:
		return len(g.Instances) > 0 && w.actOnInstance(s, g.Instances[max(s.N, 0)%len(g.Instances)])
	}
	return true
}

func (w *World) actOnInstance(s *Step, i *groups.Instance) bool {
	switch s.Do {
	case AskDrain:
		return w.groups.AskDrain(i)
	case LoseInstance:
		w.groups.LoseInstance(i.ProviderID)
		return true
	}
	n, err := w.nodes.Get(context.Background(), object.Key{Name: i.Name})
	if err == nil {
		annotated(w.nodes, n, w.poolPolicy().Keys.Replace, "true")
	}
	return err == nil
}

// poolGone makes pools again that are gone.
func (w *World) poolGone(e event) {
	if e, ok := e.(stored[*machinepool.Pool]); ok && e.now == nil {
		w.remake(e.key)
	}
}

// remake makes a pool again that is gone, if a step asked for that.
func (w *World) remake(k object.Key) {
	if !w.remade[k] {
		return
	}
	delete(w.remade, k)
	w.After(w.upTo(time.Minute), func() {
		p := Pool(k.Name, int32(w.chance(4)))
		p.Spec.Template.Bootstrap = machinepool.Bootstrap{Config: "join"}
		_ = w.AddPool(p) // its name is free
		w.check()
	})
}
