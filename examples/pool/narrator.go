package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/examples/quickstart/demo"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// narrator prints what the manager decides, what the provider does, and why.
type narrator struct {
	demo  *demo.Demo
	pools store.Collection[*machinepool.Pool]

	mu      sync.Mutex
	leaving map[string]bool   // provider IDs of the instances that were printed as leaving
	phase   machinepool.Phase // of the pool, as printed last; "" if none was printed
}

func newNarrator(d *demo.Demo, pools store.Collection[*machinepool.Pool]) *narrator {
	return &narrator{demo: d, pools: pools, leaving: make(map[string]bool)}
}

// event is a hook. It prints events, except those that only say how many nodes are ready.
func (n *narrator) event(kind manager.Kind, key object.Key, typ manager.EventType, reason, why string) {
	switch {
	case typ == manager.Warning:
		n.demo.Say("%s %s: %s: %s", kind, key.Name, reason, why)
	case reason != machinepool.ReasonStatus.String():
		n.demo.Say("%s %s: %s", kind, key.Name, why)
	}
}

// transition is a hook. It prints changes of the pool's phase, with the reason from the phase table.
func (n *narrator) transition(key object.Key, move machine.Move, _ decision.Why) {
	if move.Table != machinepool.PhaseTable().Name {
		return
	}
	why := ""
	for _, e := range machinepool.PhaseTable().Edges {
		if e.From == move.From && e.On == move.On {
			why = e.Why
		}
	}
	tally := ""
	if p, err := n.pools.Get(context.Background(), key); err == nil && !p.Deleted() {
		tally = fmt.Sprintf(" (%d of %d)", p.Status.Ready, p.Spec.Wanted())
	}
	to := machinepool.Phase(move.To)
	n.demo.Say("pool %s: %s -> %s: %s%s", key.Name, cmp.Or(move.From, "new"), to, why, tally)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.phase = to
}

// hasPrinted reports whether the pool's phase was printed: a transition is printed only after it is in the
// store. It is also true if this program has printed no transition.
func (n *narrator) hasPrinted(phase machinepool.Phase) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.phase == "" || n.phase == phase
}

// follow prints which machines will be drained, once each, until ctx ends.
func (n *narrator) follow(ctx context.Context) error {
	for range n.pools.Watch(ctx) {
		n.printLeaving(ctx)
	}
	return ctx.Err()
}

// printLeaving prints the machines that are leaving, and were not printed yet.
func (n *narrator) printLeaving(ctx context.Context) {
	p, err := n.pools.Get(ctx, poolKey)
	if err != nil {
		return
	}
	for _, l := range p.Status.Leaving {
		n.mu.Lock()
		printed := n.leaving[l.ProviderID]
		n.leaving[l.ProviderID] = true
		n.mu.Unlock()
		if !printed {
			n.demo.Say("pool %s: machine %s leaves (%s), once it is drained", p.Name, machineOf(l.ProviderID), l.Exit)
		}
	}
}

// machineOf returns the machine's name in a provider ID, its second-last part.
func machineOf(id string) string {
	parts := strings.Split(id, "/")
	return parts[max(0, len(parts)-2)]
}
