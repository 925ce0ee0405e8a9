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
	wait           time.Duration // when the recovery table allows the next attempt
	machine, class int64         // generations at that time
}

// p28: a call that failed is made again when the recovery table says.
type p28 struct {
	*World
	by              *process                                     // that made the last call
	refused         map[driver.Method]map[object.Key]refusedCall // calls of that process
	repeated, early int                                          // calls that were made again after a failure; too early
}

func newP28(w *World) *p28 { return &p28{World: w} }

func (w *p28) see(e event) {
	switch e := e.(type) {
	case called:
		w.follow(e.by)
		w.noteRetry(e.call)
	case answered:
		if !e.by.dead {
			w.follow(e.by)
			w.noteAnswer(e.call, e.at, e.err)
		}
	case allGone:
		w.checkRetries()
	}
}

// follow forgets the calls of the process before: a process knows nothing of them.
func (w *p28) follow(p *process) {
	if p != w.by {
		w.by, w.refused = p, map[driver.Method]map[object.Key]refusedCall{}
	}
}

// noteRetry takes down whether a call that failed is made again before its time,
// unless what it was made with has changed.
func (w *p28) noteRetry(s driver.CallInfo) {
	f, was := w.refused[s.Method][s.Object]
	machine, class, known := w.madeWith(s)
	if !was || !known || f.machine != machine || f.class != class || w.faults[ClockJump] > 0 {
		return
	}
	w.repeated++
	if w.Now().Sub(f.at) < f.wait {
		w.early++
	}
}

// checkRetries: of all calls that were made again, few were too early. A refusal may be forgotten
// if its record met a conflict or was lost.
func (w *p28) checkRetries() {
	if w.repeated >= 8 && 4*w.early > 3*w.repeated {
		w.violate("P28", "of %d calls to the provider that were made again %d came before their time", w.repeated, w.early)
	}
}

// noteAnswer takes down how a call was answered.
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

// madeWith are the generations of what a call is made with that changes a VM;
// unknown for others, and where VMs of that name are collected as orphans.
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
