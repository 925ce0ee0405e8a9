package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/examples/quickstart/screen"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// narrator reports what managers decide and do, and why. Its methods are hooks.
type narrator struct {
	screen *screen.Screen

	mu    sync.Mutex
	whys  map[string]string // the last one of each machine
	heard map[string]int    // how often events of each reason were
}

func newNarrator(s *screen.Screen) *narrator {
	return &narrator{screen: s, whys: make(map[string]string), heard: make(map[string]int)}
}

// event reports what sets and deployments do. transition reports machines.
func (n *narrator) event(kind manager.Kind, key object.Key, typ manager.EventType, reason, why string) {
	n.hear(reason)
	switch {
	case kind == manager.KindMachine && n.noted(key) == why: // it came with a transition
	case typ == manager.Warning:
		n.screen.Line(screen.Bad, fmt.Sprintf("%s %s: %s: %s", kind, key.Name, reason, why))
	case kind != manager.KindMachine:
		n.screen.Line(screen.Plain, fmt.Sprintf("%s %s: %s", kind, key.Name, why))
	}
}

// transition reports a machine's phases, and its end.
func (n *narrator) transition(key object.Key, move machine.Move, reason decision.Why) {
	why := reason.String()
	n.note(key, why)
	switch {
	case move.Table == machine.PhaseTable().Name && move.From != move.To:
		n.screen.Line(toneOf(machine.Phase(move.To)), fmt.Sprintf("machine %s: %s -> %s: %s",
			key.Name, cmp.Or(move.From, "new"), move.To, why))
	case move.Table == machine.DeletionTable().Name && move.To == string(machine.StageGone):
		n.screen.Line(screen.Dim, fmt.Sprintf("machine %s: gone: %s", key.Name, why))
	}
}

// pass records what a machine waits for.
func (n *narrator) pass(kind manager.Kind, key object.Key, _ int, result manager.Result, err error) {
	if kind == manager.KindMachine && err == nil && result.Why != (decision.Why{}) {
		n.note(key, result.Why.String())
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

func toneOf(p machine.Phase) screen.Tone {
	switch p {
	case machine.PhaseRunning, machine.PhaseAvailable:
		return screen.Good
	case machine.PhaseFailed, machine.PhaseUnknown, machine.PhaseCrashLoopBackOff, machine.PhaseInPlaceUpdateFailed:
		return screen.Bad
	case machine.PhaseNew, machine.PhasePending, machine.PhaseTerminating,
		machine.PhaseInPlaceUpdating, machine.PhaseInPlaceUpdateSuccessful:
	}
	return screen.Busy
}

// table shows the machines as they stand.
func (p *play) table() screen.Table {
	ctx := context.Background()
	machines, _ := p.Machines.List(ctx, store.Query{})
	slices.SortFunc(machines, func(a, b *machine.Machine) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.Name, b.Name))
	})
	now, pids := p.census.Latest(), p.census.latestPIDs()
	t := screen.Table{
		Title: fmt.Sprintf("-- %d machines; %d processes, %d serving; %d tasks serving",
			len(machines), now.Running, now.Serving, p.tasks.Latest().Serving),
		Header: []string{"MACHINE", "CLASS", "PHASE", "NODE", "PID", "TASKS", "AGE", "WHY"},
	}
	for _, m := range machines {
		t.Rows = append(t.Rows, p.row(ctx, m, pids[m.Name]))
	}
	return t
}

// tasksCell returns the number of a machine's tasks, and the one that has a volume.
func tasksCell(names []string) string {
	if i := slices.Index(names, dataTask); i >= 0 {
		return fmt.Sprintf("%d+%s", len(names)-1, dataTask)
	}
	return strconv.Itoa(len(names))
}

func (p *play) row(ctx context.Context, m *machine.Machine, pid int) []screen.Cell {
	phase, node, process := m.Status.Phase, "-", "-"
	if m.Deleted() {
		phase = machine.PhaseTerminating
	}
	if _, err := p.Nodes.Get(ctx, object.Key{Name: m.Spec.NodeName}); err == nil {
		node = "not ready"
		if p.ready(m.Spec.NodeName) {
			node = "ready"
		}
	}
	if pid > 0 {
		process = strconv.Itoa(pid)
	}
	return []screen.Cell{
		{Text: m.Name}, {Text: m.Spec.Class.Name}, {Text: cmp.Or(string(phase), "new"), Tone: toneOf(phase)}, {Text: node},
		{Text: process}, {Text: tasksCell(p.workload.Tasks(m.Name))}, {Text: time.Since(m.CreatedAt).Truncate(time.Second).String()}, {Text: p.narrator.noted(m.Key), Tone: screen.Dim},
	}
}
