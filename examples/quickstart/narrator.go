package main

import (
	"cmp"
	"fmt"
	"sync"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/examples/quickstart/stage"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
)

// narrator reports what managers decide and do, and why. Its methods are hooks.
type narrator struct {
	screen *stage.Screen

	mu    sync.Mutex
	whys  map[string]string // of the last transition of each machine
	heard map[string]int    // how often events of each reason were
}

func newNarrator(s *stage.Screen) *narrator {
	return &narrator{screen: s, whys: make(map[string]string), heard: make(map[string]int)}
}

// event reports what sets and deployments do. transition reports machines.
func (n *narrator) event(kind manager.Kind, key object.Key, typ manager.EventType, reason, why string) {
	n.hear(reason)
	switch {
	case kind == manager.KindMachine && n.noted(key) == why: // it came with a transition
	case typ == manager.Warning:
		n.screen.Line(fmt.Sprintf("%s %s: %s: %s", kind, key.Name, reason, why))
	case kind != manager.KindMachine:
		n.screen.Line(fmt.Sprintf("%s %s: %s", kind, key.Name, why))
	}
}

// transition reports a machine's phases, and its end.
func (n *narrator) transition(key object.Key, move machine.Move, reason decision.Why) {
	why := reason.String()
	n.note(key, why)
	switch {
	case move.Table == machine.PhaseTable().Name && move.From != move.To:
		n.screen.Line(fmt.Sprintf("machine %s: %s -> %s: %s",
			key.Name, cmp.Or(move.From, "new"), move.To, why))
	case move.Table == machine.DeletionTable().Name && move.To == string(machine.StageGone):
		n.screen.Line(fmt.Sprintf("machine %s: gone: %s", key.Name, why))
	}
}

func (n *narrator) note(key object.Key, why string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.whys[key.Name] = why
}

func (n *narrator) noted(key object.Key) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.whys[key.Name]
}

func (n *narrator) hear(reason string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.heard[reason]++
}

// times returns how often there was an event of that reason.
func (n *narrator) times(reason decision.Reason) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.heard[reason.String()]
}
