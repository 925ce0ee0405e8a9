package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// request does what a step asks of single machines, sets and VMs.
func (w *World) request(s *Step) {
	keys := w.machinePolicy().Keys
	switch s.Do {
	case PauseMachine:
		pauseNth(w, w.machines, s)
	case PauseSet:
		pauseNth(w, w.sets, s)
	case Preserve:
		annotateNth(w, w.machines, s, keys.Preserve, s.Value)
	case PreserveNode:
		annotateNth(w, w.nodes, s, keys.Preserve, s.Value)
	case Prioritize:
		annotateNth(w, w.machines, s, w.setPolicy().Keys.Priority, s.Value)
	case Replace:
		annotateNth(w, w.machines, s, w.setPolicy().Keys.Replace, "true")
	case ScaleDown:
		w.scaleDown(s)
	case Tag:
		w.retag(s, s.Class, s.Class)
	case Retag:
		if d := w.deployment(s.Name); d != nil {
			like := d.Spec.Template.Spec.Class.Name
			if w.sizeOf(like) == "" {
				return // the class is not there
			}
			name := fmt.Sprint(w.sizeOf(like), "-", s.N%3)
			w.retag(s, name, like)
			w.edit(s.Name, func(spec *deployment.Spec) { spec.Template.Spec.Class.Name = name })
		}
	}
}

// annotateNth writes an annotation on the nth object of a kind, or removes it if the value is
// empty.
func annotateNth[T object.Object[T]](w *World, of *trackedStore[T], s *Step, key, value string) (changed T, found bool) {
	o, found := nthOf(of, s.N)
	if !found || o.ObjectMeta().Annotations[key] == value {
		return o, false
	}
	w.actions[s.Do]++
	return annotated(of, o, key, value), true
}

func annotated[T object.Object[T]](of *trackedStore[T], o T, key, value string) T {
	o = o.Clone()
	meta := o.ObjectMeta()
	if meta.Annotations = maps.Clone(meta.Annotations); meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	meta.Annotations[key] = value
	if value == "" {
		delete(meta.Annotations, key)
	}
	o, _ = of.Update(context.Background(), o) // read in the same instant: no conflict
	return o
}

// pauseNth pauses the nth object for a while.
func pauseNth[T object.Object[T]](w *World, of *trackedStore[T], s *Step) {
	key := w.machinePolicy().Keys.Paused
	o, found := annotateNth(w, of, s, key, "true")
	if !found || s.For == 0 {
		return
	}
	name := o.ObjectMeta().Key
	w.After(s.For, func() {
		now, err := of.Get(context.Background(), name)
		if err == nil && now.ObjectMeta().Annotations[key] != "" {
			annotated(of, now, key, "")
			w.check()
		}
	})
}

// resumeAll ends all pauses.
func resumeAll[T object.Object[T]](w *World, of *trackedStore[T]) {
	key := w.machinePolicy().Keys.Paused
	for _, o := range of.all() {
		if o.ObjectMeta().Annotations[key] != "" {
			annotated(of, o, key, "")
		}
	}
}

// scaleDown takes replicas away from a deployment, by the manager's own command. If it gets no
// answer, it tries again.
func (w *World) scaleDown(s *Step) {
	d := w.deployment(s.Name)
	if d == nil {
		return
	}
	fleet := slices.DeleteFunc(w.fleetOf(d), func(m *machine.Machine) bool { return m.Deleted() })
	n := min(1+s.N%2, len(fleet))
	to := d.Spec.Replicas - int32(n)
	if n == 0 || to < 0 {
		return
	}
	var names []string
	for i := range n {
		names = append(names, fleet[(s.N+i)%len(fleet)].Name)
	}
	clean := w.atRest(d, fleet)
	began := w.Now()
	w.clock.Begin(func() { w.commandScaleDown(d, names, to, clean, began) })
}

// commandTries is how often a command is given whose answer is an error. commandRetry is the wait
// before the next time.
const (
	commandTries = 5
	commandRetry = 10 * time.Second
)

func (w *World) commandScaleDown(d *deployment.Deployment, names []string, to int32, clean bool, began time.Time) {
	for range commandTries {
		p := w.process
		if p.dead {
			w.clock.Pause(commandRetry)
			continue
		}
		err := p.manager.ScaleDown(context.Background(), d.Key, names, to)
		switch {
		case err == nil && !p.dead:
			w.actions[ScaleDown]++
			w.emit(scalerChose{d, names, clean, began})
			return
		case refusedForGood(err):
			return
		}
		w.clock.Pause(commandRetry)
	}
}

// refusedForGood reports whether a scale-down was refused for what it asks.
func refusedForGood(err error) bool {
	for _, refusal := range []error{
		deployment.ErrGoing, deployment.ErrSize, deployment.ErrTooMany, deployment.ErrNotMember, deployment.ErrLeaving,
		deployment.ErrNamedTwice, deployment.ErrNoKey, manager.ErrNoDeployments, store.ErrNotFound,
	} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

// retag gives a class other tags, and makes it like another if it is not there.
func (w *World) retag(s *Step, name, like string) {
	if _, err := w.classes.Get(context.Background(), object.Key{Namespace: Namespace, Name: name}); err == nil {
		like = name
	}
	if err := w.TagClass(name, like, map[string]string{"round": fmt.Sprint(s.N), fmt.Sprint("only-", s.N): "yes"}); err == nil {
		w.actions[s.Do]++
	}
}

// scalerChose: a scaler took machines out of a deployment by their names; began is when it read
// them. atRest: nothing else was requested of the fleet then.
type scalerChose struct {
	deployment *deployment.Deployment
	names      []string
	atRest     bool
	began      time.Time
}
