package sim

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
)

// p65: an update in place counts as succeeded or failed only if the node's agent has said so after this
// update was announced. Without an answer it counts as failed only at the timeout.
type p65 struct {
	*World
	answers map[string][]string // the agent's answers to the present update, by name of the node
}

func newP65(w *World) *p65 { return &p65{w, map[string][]string{}} }

func (w *p65) see(e event) {
	switch e := e.(type) {
	case updateAwaited:
		delete(w.answers, e.node)
	case updateAnswered:
		w.answers[e.node] = append(w.answers[e.node], e.answer)
	case machineChanged:
		if before := e.seen.last; before.Status.Phase != e.now.Status.Phase {
			w.checkAnswer(before, e.now)
		}
	}
}

func (w *p65) checkAnswer(before, m *machine.Machine) {
	answers := w.answers[m.Spec.NodeName]
	succeeded, failed := slices.Contains(answers, machine.UpdateSuccessful), slices.Contains(answers, machine.UpdateFailed)
	switch m.Status.Phase {
	case machine.PhaseInPlaceUpdateSuccessful:
		if !succeeded {
			w.violate("P65", "machine %s counts as updated, and its agent has answered %v to this update", m.Name, answers)
		}
	case machine.PhaseInPlaceUpdateFailed:
		op := m.Status.LastOperation
		tooLate := op.Stage == machine.StageCandidate // the update succeeded after it was withdrawn
		took, timeout := w.managerNow().Sub(before.Status.Since), w.machinePolicy().InPlaceTimeout
		switch {
		case tooLate && !succeeded || op.Code == codes.Internal && !failed:
			w.violate("P65", "the update of machine %s counts as failed (%s), and its agent has answered %v", m.Name, op.Message, answers)
		case op.Code == codes.DeadlineExceeded && took < timeout-time.Second && w.faults[ClockJump] == 0: // times are stored in whole seconds
			w.violate("P65", "the update of machine %s counts as failed after %s, and not after %s", m.Name, took, timeout)
		}
	}
}
