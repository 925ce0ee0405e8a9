package toykind_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"

	"example.org/toykind"
)

var start = time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)

// hall has two doors, one of them open. When a pass asks to wait until some time, its clock jumps to that
// time, so that the queue returns the door at once.
type hall struct {
	*testing.T
	mu    sync.Mutex
	at    time.Time
	doors *store.Memory[*toykind.Door]
	lines []string // what the hooks report
}

func newHall(t *testing.T) *hall {
	h := &hall{T: t, at: start}
	h.doors = store.NewMemory[*toykind.Door](h.now, nil)
	for name, opened := range map[string]time.Time{"front": start, "back": {}} {
		d, err := h.doors.Create(t.Context(), &toykind.Door{Meta: object.Meta{Key: key(name)}, For: time.Minute})
		require.NoError(t, err)
		d = d.Clone()
		d.Opened = opened
		_, err = h.doors.UpdateStatus(t.Context(), d)
		require.NoError(t, err)
	}
	return h
}

func key(name string) object.Key { return object.Key{Namespace: "house", Name: name} }

func (h *hall) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at
}

func (h *hall) forward(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = at
}

// run reconciles the doors until the back door had one pass and the front door two.
func (h *hall) run(dry bool) {
	q := engine.NewQueue(h.now)
	passes := map[object.Key]int{}
	report := func(of object.Key, format string, args ...any) {
		h.lines = append(h.lines, of.Name+" door at "+h.now().Format("15:04")+": "+fmt.Sprintf(format, args...))
	}
	e := engine.New(engine.Options{
		Now: h.now, Jitter: func(d time.Duration) time.Duration { return d }, DryRun: dry,
		Hooks: engine.Hooks{
			Event: func(_ string, of object.Key, _ engine.EventType, reason, why string) {
				report(of, "%s, %s", reason, why)
			},
			Effect: func(_ string, of object.Key, name string, _ time.Duration, err error) {
				report(of, "%s: %v", name, err)
			},
			DryRun: func(_ string, of object.Key, what, _, why string) { report(of, "not done: %s, because %s", what, why) },
			Pass: func(kind string, of object.Key, _ int, result engine.Result, err error) {
				passes[of]++
				switch {
				case err != nil || kind != "door":
					h.Errorf("%s %s: %v", kind, of, err)
					q.Close()
				case len(passes) == 2 && passes[key("front")] == 2:
					q.Close()
				case result.Why.Reason.String() == "Open":
					h.forward(result.At)
				}
			},
		},
	})
	require.NoError(h, toykind.Run(h.Context(), e, h.doors, q))
}

// opened returns since when a door is open.
func (h *hall) opened(name string) time.Time {
	d, err := h.doors.Get(h.Context(), key(name))
	require.NoError(h, err)
	return d.Opened
}

// TestDoorsShutThemselves: objects of the kind are queued until they are due, read, decided about and
// changed, and hooks report that.
func TestDoorsShutThemselves(t *testing.T) {
	h := newHall(t)
	h.run(false)
	require.Zero(t, h.opened("front"))
	require.Equal(t, start.Add(time.Minute), h.at)
	require.Equal(t, []string{"front door at 08:01: Shut, it is shut", "front door at 08:01: Shut: <nil>"}, h.lines)
}

// TestDoorsInADryRun: in a dry run nothing changes, and a hook reports what would change.
func TestDoorsInADryRun(t *testing.T) {
	h := newHall(t)
	h.run(true)
	require.Equal(t, start, h.opened("front"))
	require.Equal(t, []string{"front door at 08:01: not done: update status of door house/front, because it has stood open for long enough"}, h.lines)
}
