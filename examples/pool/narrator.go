package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/examples/quickstart/stage"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// narrator reports what the manager decides, what the provider does, and why.
type narrator struct {
	screen *stage.Stage
	pools  store.Collection[*machinepool.Pool]

	mu    sync.Mutex
	goes  map[string]bool   // instances that were reported as leaving
	phase machinepool.Phase // the pool's, as reported last; "" if no transition was
}

func newNarrator(s *stage.Stage, pools store.Collection[*machinepool.Pool]) *narrator {
	return &narrator{screen: s, pools: pools, goes: make(map[string]bool)}
}

// event reports calls and what a person should know. transition reports phases.
func (n *narrator) event(kind manager.Kind, key object.Key, typ manager.EventType, reason, why string) {
	switch {
	case typ == manager.Warning:
		n.screen.Say("%s %s: %s: %s", kind, key.Name, reason, why)
	case reason != machinepool.ReasonStatus.String():
		n.screen.Say("%s %s: %s", kind, key.Name, why)
	}
}

// transition reports a pool's phases, in the words of their table.
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
	n.screen.Say("pool %s: %s -> %s: %s%s", key.Name, cmp.Or(move.From, "new"), to, why, tally)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.phase = to
}

// behind reports whether a pool in that phase was last reported in another one, because a
// transition is reported after it is in the store.
func (n *narrator) behind(phase machinepool.Phase) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.phase != "" && n.phase != phase
}

// follow reports which machines will be drained, once each, until ctx ends.
func (n *narrator) follow(ctx context.Context) error {
	for range n.pools.Watch(ctx) {
		n.leaving(ctx)
	}
	return ctx.Err()
}

func (n *narrator) leaving(ctx context.Context) {
	p, err := n.pools.Get(ctx, poolKey)
	if err != nil {
		return
	}
	for _, l := range p.Status.Leaving {
		n.mu.Lock()
		told := n.goes[l.ProviderID]
		n.goes[l.ProviderID] = true
		n.mu.Unlock()
		if !told {
			n.screen.Say("pool %s: machine %s leaves (%s), once it is drained", p.Name, machineOf(l.ProviderID), l.Exit)
		}
	}
}

// machineOf returns the name in a provider ID, before the instance.
func machineOf(id string) string {
	parts := strings.Split(id, "/")
	return parts[max(0, len(parts)-2)]
}
