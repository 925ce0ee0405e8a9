package manager_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
)

// TestLife: without a fault, a life of three machines, rolled once, makes six. It warns of nothing.
func TestLife(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.shape("small", func(c *machine.Class) {
		c.NodeTemplate = &machine.NodeShape{Capacity: map[string]string{"cpu": "2"}, InstanceType: "s", Region: "r", Zone: "a"}
	})
	w.life(w.start(&testkit.Fuse{}, false), unexpected(t))
	require.Len(t, w.made, 6)
	require.Equal(t, 6, count(w, codes.CreateMachine))
	require.Equal(t, 6, count(w, codes.DeleteMachine))
	require.Empty(t, w.warned)
}

// TestKilledAnywhere kills the manager at every call of a life to any port,
// once before and once after the call takes effect, and starts a fresh one
// each time: it ends as without the kill, and not one machine more is made
// (P12, P13, P14, P16, P26).
func TestKilledAnywhere(t *testing.T) {
	total := &testkit.Fuse{}
	undisturbed := newWorld(t, drivertest.MemoryOptions{NeedsInitialization: true})
	undisturbed.life(undisturbed.start(total, false), unexpected(t))
	for _, after := range []bool{false, true} {
		for n := range testkit.EveryCall(total.Calls, 7) {
			t.Run(fmt.Sprintf("call %d, after %v", n, after), func(t *testing.T) {
				w := newWorld(t, drivertest.MemoryOptions{NeedsInitialization: true})
				w.life(w.start(&testkit.Fuse{BlowAt: n, BlowAfter: after}, false), func() *process {
					return w.start(&testkit.Fuse{}, false)
				})
				require.Len(t, w.made, 6, "machines made")
			})
		}
	}
}

// TestStaleAndKilled lives with caches that lag behind by a random number of
// rounds, a provider that fails and loses answers, and kills, all at random,
// until the faults stop (P5, P7, P12 to P14, P26).
func TestStaleAndKilled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, drivertest.MemoryOptions{NeedsInitialization: rapid.Bool().Draw(t, "needs initialization")})
		lives := rapid.IntRange(0, 4).Draw(t, "kills")
		begin := func() *process {
			f := &testkit.Fuse{}
			if lives > 0 {
				lives--
				f.BlowAt = rapid.IntRange(1, 300).Draw(t, "dies at call")
				f.BlowAfter = rapid.Bool().Draw(t, "after it took effect")
			}
			return w.laggard(t, f)
		}
		for range rapid.IntRange(0, 6).Draw(t, "faults") {
			w.fault(t)
		}
		w.life(begin(), begin)
		if len(w.made) > 6+w.lost {
			t.Fatalf("P12: %d machines made, 6 wanted, %d lost\n%s", len(w.made), w.lost, w.dump())
		}
	})
}

// laggard is a process whose caches are brought up to date now and then only.
func (w *world) laggard(t *rapid.T, f *testkit.Fuse) *process {
	p := w.start(f, true)
	budget := 40
	p.look = func() bool {
		if budget > 0 && rapid.IntRange(0, 2).Draw(t, "lag") > 0 {
			budget--
			return false
		}
		p.sync()
		return true
	}
	return p
}

// fault makes the provider fail once: before a call takes effect, or after.
func (w *world) fault(t *rapid.T) {
	call := rapid.SampledFrom([]codes.Call{
		codes.CreateMachine, codes.GetMachineStatus, codes.InitializeMachine, codes.DeleteMachine,
	}).Draw(t, "call")
	code := rapid.SampledFrom([]codes.Code{
		codes.Unknown, codes.Unavailable, codes.DeadlineExceeded, codes.Aborted, codes.Internal, codes.Canceled,
	}).Draw(t, "code")
	err := codes.New(code, "a fault")
	if rapid.Bool().Draw(t, "lost answer") {
		w.provider.FailAfter(call, err)
		return
	}
	w.provider.FailNext(call, err)
}
