package machineset_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// stage plays a story with one process, and writes down what it does.
type stage struct {
	t *testing.T
	w *world
	p *process
	b strings.Builder
}

// story plays one and compares it with testdata/<name>.golden.
func story(t *testing.T, name string, replicas int32, play func(*stage)) {
	t.Run(name, func(t *testing.T) {
		s := &stage{t: t, w: newWorld(newSet(replicas))}
		s.w.now = morning.Add(250 * time.Millisecond)
		s.p = newProcess(s.w, machineset.DefaultPolicy())
		s.p.trace = func(verb, name, why string) {
			switch {
			case verb == "wait" && !s.p.plan.At.IsZero():
				verb, name = "wait", "until "+s.p.plan.At.Format("15:04:05")
			case verb == "wait":
				name = "for a change"
			}
			s.line(verb, name, why)
		}
		play(s)
		testkit.Golden(t, filepath.Join("testdata", name+".golden"), s.b.String())
	})
}

func (s *stage) line(verb, name, text string) {
	line := fmt.Sprintf("%s  %-7s %s", s.w.now.Format("15:04:05"), verb, text)
	if name != "" {
		line = fmt.Sprintf("%s  %-7s %s: %s", s.w.now.Format("15:04:05"), verb, name, text)
	}
	s.b.WriteString(strings.TrimRight(line, " ") + "\n")
}

// say tells what happens to the set from outside.
func (s *stage) say(format string, args ...any) {
	fmt.Fprintf(&s.b, "\n# %s\n", fmt.Sprintf(format, args...))
}

// pass makes one pass and writes down what the set says afterwards.
func (s *stage) pass() {
	s.t.Helper()
	require.True(s.t, s.p.run())
	require.NoError(s.t, s.p.err)
	s.state()
}

func (s *stage) state() {
	set := s.w.set
	if set == nil {
		s.b.WriteString("          the set is gone\n")
		return
	}
	st := &set.Status
	fmt.Fprintf(&s.b, "          status: %d machines, %d fully labeled, %d ready, %d available, generation %d; names: %d settled, %d reserved\n",
		st.Replicas, st.FullyLabeled, st.Ready, st.Available, st.ObservedGeneration,
		set.Instructions.Reservation.Settled, set.Instructions.Reservation.Reserved)
	for _, c := range st.Conditions {
		fmt.Fprintf(&s.b, "          condition %s %s, %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	for _, f := range st.Failed {
		fmt.Fprintf(&s.b, "          failed machine %s %s of %s: %s %s\n", f.Name, f.ProviderID, f.Owner, f.LastOperation.Code, f.LastOperation.Message)
	}
	if op := &st.LastOperation; op.Kind != "" {
		fmt.Fprintf(&s.b, "          last operation %s %s %s\n", op.Kind, op.State, op.Message)
	}
}

// after lets time go by and makes another pass.
func (s *stage) after(d time.Duration) {
	s.t.Helper()
	s.w.advance(d)
	s.pass()
}

// settled plays, unseen, until all machines run and nothing is left to do.
func (s *stage) settled() {
	s.t.Helper()
	trace := s.p.trace
	s.p.trace = nil
	for range 3 {
		require.True(s.t, s.p.run())
		s.run(names2(s.w.all())...)
		s.w.advance(time.Minute)
	}
	s.p.trace = trace
	s.say("%d machines run", len(s.w.all()))
	s.state()
}

func names2(machines []*machine.Machine) []string {
	var out []string
	for _, m := range machines {
		out = append(out, m.Name)
	}
	return out
}

func (s *stage) run(names ...string) {
	for _, name := range names {
		s.w.phase(name, machine.PhaseRunning)
	}
}

func (s *stage) name(ordinal int64) string { return newSet(0).MachineName(ordinal) }

func (s *stage) scale(replicas int32) {
	s.say("scaled to %d", replicas)
	s.w.edit(func(set *machineset.Set) { set.Spec.Replicas = replicas })
}

// faults makes the next calls of a verb meet these, one each.
func (s *stage) faults(verb string, next ...fault) {
	s.p.fault = func(called string) fault {
		if called != verb || len(next) == 0 {
			return fine
		}
		f := next[0]
		next = next[1:]
		return f
	}
}

// orphan puts a machine without an owner into the store.
func (s *stage) orphan(name string, labels map[string]string) {
	m := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: namespace, Name: name}, Labels: labels}}
	m.Spec.Class.Name = "small"
	s.w.createMachine(m)
}
