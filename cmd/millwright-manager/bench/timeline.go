package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/machine"
)

// instant is a moment of a rollout: how many machines the new and the old sets should have, and how many there are.
type instant struct {
	at                             time.Duration
	wanted, made, running          int // of the new set
	oldWanted, terminating, oldAll int // of the old ones
}

// timeline is what a watch saw of a rollout.
type timeline struct {
	instants []instant
	stop     func()
	ended    chan struct{}
}

// follow records a rollout until finish is called.
func (b *bench) follow(ctx context.Context) (*timeline, error) {
	ctx, cancel := context.WithCancel(ctx)
	sets, err := b.client.Watch(ctx, &v1alpha1.MachineSetList{}, client.InNamespace(namespace))
	if err != nil {
		cancel()
		return nil, err
	}
	machines, err := b.client.Watch(ctx, &v1alpha1.MachineList{}, client.InNamespace(namespace))
	if err != nil {
		cancel()
		return nil, err
	}
	t := &timeline{stop: cancel, ended: make(chan struct{})}
	go t.record(ctx, sets.ResultChan(), machines.ResultChan())
	return t, nil
}

// finish ends the recording.
func (t *timeline) finish() {
	t.stop()
	<-t.ended
}

func (t *timeline) record(ctx context.Context, sets, machines <-chan watch.Event) {
	defer close(t.ended)
	began := time.Now()
	bySet, byMachine := map[string]*v1alpha1.MachineSet{}, map[string]*v1alpha1.Machine{}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case e := <-sets:
			if s, ok := e.Object.(*v1alpha1.MachineSet); ok {
				bySet[s.Name] = s
			}
		case e := <-machines:
			m, ok := e.Object.(*v1alpha1.Machine)
			if !ok {
				continue
			}
			if e.Type == watch.Deleted && m.DeletionTimestamp == nil {
				now := metav1.Now()
				m.DeletionTimestamp = &now
			}
			byMachine[m.Name] = m
		}
		next := count(bySet, byMachine)
		if n := len(t.instants); n > 0 {
			next.at = t.instants[n-1].at
			if next == t.instants[n-1] {
				continue
			}
		}
		next.at = time.Since(began)
		t.instants = append(t.instants, next)
	}
}

// count counts machines. The set with the highest revision is the new one.
func count(sets map[string]*v1alpha1.MachineSet, machines map[string]*v1alpha1.Machine) (c instant) {
	var current *v1alpha1.MachineSet
	for _, s := range sets {
		if current == nil || current.CreationTimestamp.Before(&s.CreationTimestamp) {
			current = s
		}
	}
	if current == nil || len(sets) < 2 {
		return c
	}
	for _, s := range sets {
		if s != current {
			c.oldWanted += int(s.Spec.Replicas)
		}
	}
	c.wanted = int(current.Spec.Replicas)
	for _, m := range machines {
		owner := metav1.GetControllerOf(m)
		switch {
		case owner == nil:
		case owner.UID != current.UID:
			c.oldAll++
			if m.DeletionTimestamp != nil {
				c.terminating++
			}
		default:
			c.made++
			if machine.Phase(m.Status.CurrentStatus.Phase) == machine.PhaseRunning {
				c.running++
			}
		}
	}
	return c
}

// print prints for each wave when the new set was ordered larger, when its machines existed and ran, when old sets
// were ordered smaller, and when as many old machines were being deleted; in seconds.
func (t *timeline) print(name string) {
	fmt.Printf("\n%-28s %8s %8s %8s %8s %8s   a wave each, seconds since the change, last round\n", "rolled by "+name, "ordered", "exist", "run", "old less", "deleted")
	reached := 0
	for _, i := range t.instants {
		if i.wanted <= reached {
			continue
		}
		n := i.wanted
		reached = n
		first := func(holds func(instant) bool) string {
			at := slices.IndexFunc(t.instants, holds)
			if at < 0 {
				return "-"
			}
			return fmt.Sprintf("%.2f", t.instants[at].at.Seconds())
		}
		fmt.Printf("%-28s %8.2f %8s %8s %8s %8s\n", fmt.Sprintf("%d new", n), i.at.Seconds(),
			first(func(j instant) bool { return j.made >= n }), first(func(j instant) bool { return j.running >= n }),
			first(func(j instant) bool { return j.wanted > 0 && j.oldWanted <= j.oldAll-n }),
			first(func(j instant) bool { return j.terminating >= n }))
	}
}
