package sim

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/object"
)

// Groups returns the simulated provider of groups, to be wrapped by
// Options.PoolDriver.
func (w *World) Groups() pooldriver.Driver { return groupDriver{w.groups} }

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
	case Autoscale:
		done = w.editPool(s.Name, func(p *machinepool.Pool) { p.Annotations = map[string]string{key: s.Value} })
	case StopGroups:
		w.groups.silent, done = w.Now().Add(s.For), true
	case DeletePool, RemakePool:
		if p := w.pool(object.Key{Namespace: Namespace, Name: s.Name}); p != nil && !p.Deleted() {
			w.remade[p.Key] = s.Do == RemakePool
			done = w.pools.Delete(context.Background(), p.Key, p.UID) == nil
		}
	case ForgetPool:
		done = w.forgetPool(object.Key{Namespace: Namespace, Name: s.Name})
	default:
		done = w.groups.act(s, w.poolPolicy().Keys.Replace)
	}
	if done {
		w.actions[s.Do]++
	}
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

// act does what a step does at the provider, and reports whether there is a group or instance
// that it can be done to. replace is the annotation of a node that asks for a replacement.
func (g *groupController) act(s *Step, replace string) bool {
	at := g.all[object.Key{Namespace: Namespace, Name: s.Name}]
	if at == nil || at.going {
		return false
	}
	var i *instance
	if len(at.instances) > 0 {
		i = at.instances[max(s.N, 0)%len(at.instances)]
	}
	g.changed()
	switch s.Do {
	case ResizeGroup:
		at.target, at.resized = int32(max(s.N, 0)), g.Now()
		g.soon(at)
		return true
	case FailGroup:
		at.failure = "the simulated provider is out of addresses"
		g.After(s.For, func() { at.failure = "" })
		return true
	case LoseGroup:
		g.lose(at)
		return true
	case AskDrain:
		if i == nil || i.AwaitsDrain {
			return false
		}
		i.AwaitsDrain, i.asked = true, g.Now()
		return true
	case LoseInstance:
		if i == nil {
			return false
		}
		g.count(VMLost)
		g.drop(i.ProviderID)
		return true
	}
	return i != nil && g.askReplacement(i, replace)
}

// askReplacement makes an instance's node ask for a replacement.
func (g *groupController) askReplacement(i *instance, key string) bool {
	n, err := g.nodes.Get(context.Background(), object.Key{Name: i.name})
	if err != nil {
		return false
	}
	annotated(g.nodes, n, key, "true")
	return true
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
