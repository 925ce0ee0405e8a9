package manager_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// TestWhatIsReleasedIsAWarning: a set or a machine that somebody relabels runs on with VMs that no owner
// counts, so an operator has to know.
func TestWhatIsReleasedIsAWarning(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), unexpected(t))
	require.Empty(t, w.warned)
	warns := func(reason string) func() bool {
		return func() bool { return strings.Contains(strings.Join(w.warned, "\n"), ": "+reason+": ") }
	}
	relabel := func(m *object.Meta) {
		m.Labels = maps.Clone(m.Labels)
		m.Labels["app"] = "other"
	}
	_, err := store.Edit(ctx, w.machines, keysOf(w.machines)[0], func(m *machine.Machine) error { relabel(&m.Meta); return nil })
	require.NoError(t, err)
	p = w.until(p, warns("Release"), unexpected(t))
	_, err = store.Edit(ctx, w.sets, keysOf(w.sets)[0], func(s *machineset.Set) error { relabel(&s.Meta); return nil })
	require.NoError(t, err)
	w.until(p, warns("ReleaseSet"), unexpected(t))
}
