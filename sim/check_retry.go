package sim

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/object"
)

// refusedCall is a call to the provider that was answered with an error.
type refusedCall struct {
	at             time.Time
	wait           time.Duration // how long to wait before the next attempt, by codes.RecoveryFor
	machine, class int64         // their generations at that time
}

// p28: a call that failed is made again after the wait of the recovery table (codes.RecoveryFor).
type p28 struct {
	*World
	by              *process                                     // the process that made the last call
	refused         map[driver.Method]map[object.Key]refusedCall // failed calls of that process
	repeated, early int                                          // how many failed calls were made again, and how many of them too early
}

func newP28(w *World) *p28 { return &p28{World: w} }

func (w *p28) see(e event) {
	switch e := e.(type) {
	case callArrived:
		w.switchTo(e.by)
		w.noteRetry(e.call)
	case callAnswered:
		if !e.by.dead {
			w.switchTo(e.by)
			w.noteAnswer(e.call, e.at, e.err)
		}
	case allGone:
		w.checkRetries()
	}
}

// switchTo forgets the failed calls of the last process, because a new process does not know them.
func (w *p28) switchTo(p *process) {
	if p != w.by {
		w.by, w.refused = p, map[driver.Method]map[object.Key]refusedCall{}
	}
}

// noteRetry counts a call that is made again after a failure, unless the machine or class has changed,
// and whether it is too early.
func (w *p28) noteRetry(s driver.CallInfo) {
	f, failed := w.refused[s.Method][s.Object]
	machine, class, known := w.madeWith(s)
	if !failed || !known || f.machine != machine || f.class != class || w.faults[ClockJump] > 0 {
		return
	}
	w.repeated++
	if w.Now().Sub(f.at) < f.wait {
		w.early++
	}
}

// checkRetries checks that not too many calls were made again too early. Some are, because the manager
// forgets a failure if it can't store it.
func (w *p28) checkRetries() {
	if w.repeated >= 8 && 4*w.early > 3*w.repeated {
		w.violate("P28", "of %d calls to the provider that were made again %d came before their time", w.repeated, w.early)
	}
}

// noteAnswer records how a call was answered.
func (w *p28) noteAnswer(s driver.CallInfo, at time.Time, err error) {
	machine, class, known := w.madeWith(s)
	if err == nil || !known {
		delete(w.refused[s.Method], s.Object)
		return
	}
	if w.refused[s.Method] == nil {
		w.refused[s.Method] = map[object.Key]refusedCall{}
	}
	// Times are stored in whole seconds.
	call, _ := s.Method.(codes.Call)
	wait := codes.RecoveryFor(call, codes.Of(err)).Backoff(1, 0) - time.Second
	w.refused[s.Method][s.Object] = refusedCall{at, wait, machine, class}
}

// madeWith returns the generations of the machine and the class of a call that creates or deletes a VM.
// known is false for other calls, and if the machine may have further VMs, which are collected as
// orphans.
func (w *p28) madeWith(s driver.CallInfo) (machine, class int64, known bool) {
	if s.Method != codes.CreateMachine && s.Method != codes.DeleteMachine {
		return 0, 0, false
	}
	m, err := w.machines.Get(context.Background(), s.Object)
	c, missing := w.classes.Get(context.Background(), s.Class)
	if err != nil || missing != nil || w.excuses.lateVMs[m.Name] {
		return 0, 0, false
	}
	several := 0
	for _, vm := range w.provider.VMs() {
		if vm.Name == m.Name {
			several++
		}
	}
	return m.Generation, c.Generation, several < 2
}
