package controllers_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
)

// boundsChecker watches the machines and records the first violation of its rules.
type boundsChecker struct {
	*world
	floor, ceiling int
	machines       map[string]v1alpha1.Machine
	ids            map[string]string // of VMs, by machine
	changes        chan int          // a 1 for each change
	fault          string            // the first violation
}

// checkBounds checks until the test ends that there are never fewer running machines than the floor,
// never more machines than the ceiling, and that no machine changes its VM. Machines that are being
// deleted are not counted.
func (w *world) checkBounds(floor, ceiling int) *boundsChecker {
	w.Helper()
	b := &boundsChecker{
		world: w, floor: floor, ceiling: ceiling, machines: map[string]v1alpha1.Machine{}, ids: map[string]string{}, changes: make(chan int, 100_000),
	}
	watching, err := client.NewWithWatch(server.Config, client.Options{Scheme: w.client.Scheme()})
	require.NoError(w, err)
	list := &v1alpha1.MachineList{}
	require.NoError(w, w.client.List(w.Context(), list, client.InNamespace(w.namespace)))
	for _, m := range list.Items {
		b.machines[m.Name] = m
	}
	stream, err := watching.Watch(w.Context(), &v1alpha1.MachineList{}, client.InNamespace(w.namespace), &client.ListOptions{Raw: resumeAt(list)})
	require.NoError(w, err)
	w.background(func(ctx context.Context) {
		defer stream.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case event, ok := <-stream.ResultChan():
				if !ok {
					return
				}
				b.apply(event)
				b.changes <- 1
			}
		}
	})
	return b
}

// resumeAt returns the options of a watch that begins at the version of a list.
func resumeAt(list *v1alpha1.MachineList) *metav1.ListOptions {
	return &metav1.ListOptions{ResourceVersion: list.ResourceVersion}
}

func (b *boundsChecker) apply(event watch.Event) {
	m, ok := event.Object.(*v1alpha1.Machine)
	if !ok {
		b.fault = fmt.Sprintf("the watch delivers %v", event.Object)
		return
	}
	if event.Type == watch.Deleted {
		delete(b.machines, m.Name)
	} else {
		b.machines[m.Name] = *m
	}
	if id := m.Spec.ProviderID; id != "" {
		if known := b.ids[m.Name]; known != "" && known != id {
			b.fault = fmt.Sprintf("machine %s had VM %s, and has %s", m.Name, known, id)
		}
		b.ids[m.Name] = id
	}
	total, available := 0, 0
	for _, m := range b.machines {
		if m.DeletionTimestamp == nil {
			total++
			if m.Status.CurrentStatus.Phase == "Running" {
				available++
			}
		}
	}
	if b.fault == "" && (total > b.ceiling || available < b.floor) {
		for _, m := range b.machines {
			b.Logf("%s %s deleted %v %v", m.Name, m.Status.CurrentStatus.Phase, m.DeletionTimestamp != nil, m.Status.LastOperation.Description)
		}
		b.fault = fmt.Sprintf("%d machines, %d available; floor %d, ceiling %d", total, available, b.floor, b.ceiling)
	}
}

// awaitChanges waits until there were n changes, or done returns true.
func (w *world) awaitChanges(checker *boundsChecker, n int, done func() bool) {
	w.Helper()
	for end := time.After(patience); n > 0 && !done(); {
		poll := time.After(100 * time.Millisecond)
		select {
		case changes := <-checker.changes:
			n -= changes
		case <-poll:
		case <-end:
			require.Fail(w, "waited in vain for a change")
		}
	}
}

// TestKilledFiftyTimes kills the manager fifty times during rollouts, each time after a random number
// of changes of machines. The bounds hold throughout, and in the end each machine has one VM of the
// new class and one node.
func TestKilledFiftyTimes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes two minutes")
	}
	t.Parallel()
	const machines, kills = 50, 50
	w := newWorld(t, quick)
	w.class("small", "s")
	w.class("large", "l")
	d := w.deployment("web", "small", machines)
	c := w.child()
	w.eventually("the fleet", w.settled("web", machines))
	c.kill()

	checker := w.checkBounds(machines, machines+machines/5)
	classes := map[string]string{"large": "l", "small": "s"}
	class := "small"
	roll := func() {
		class = map[string]string{"small": "large", "large": "small"}[class]
		patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"class":{"name":%q}}}}}`, class)
		require.NoError(t, w.client.Patch(t.Context(), d, client.RawPatch("application/merge-patch+json", []byte(patch))))
	}
	roll()
	seed := uint64(time.Now().UnixNano()) //nolint:gosec // a seed
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // no secret
	for range kills {
		if w.settled("web", machines)() {
			roll() // the rollout before has ended
		}
		c = w.child()
		w.awaitChanges(checker, 1+random.IntN(24), w.settled("web", machines))
		c.kill()
	}
	w.child()
	w.eventually("the rollout to end", w.settled("web", machines))
	w.eventually("one VM for each machine", func() bool { return maps.Equal(map[string]int{classes[class]: machines}, w.vms()) })
	w.eventually("one node for each machine", func() bool { return w.nodes() == machines })
	w.eventually("no further machine", func() bool { return len(w.machines()) == machines })
	require.Empty(t, checker.fault)
}
