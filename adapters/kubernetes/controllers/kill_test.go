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

// fleetBook is what a watch of the machines says, with what must never happen.
type fleetBook struct {
	*world
	floor, ceiling int
	machines       map[string]v1alpha1.Machine
	ids            map[string]string // of VMs, by machine
	changes        chan int          // 1 for each
	fault          string
}

// follow checks the fleet against its bounds until the test ends. Machines that are being deleted
// count towards neither bound.
func (w *world) follow(floor, ceiling int) *fleetBook {
	w.Helper()
	b := &fleetBook{
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
				b.enter(event)
				b.changes <- 1
			}
		}
	})
	return b
}

// resumeAt makes a watch go on from a list.
func resumeAt(list *v1alpha1.MachineList) *metav1.ListOptions {
	return &metav1.ListOptions{ResourceVersion: list.ResourceVersion}
}

func (b *fleetBook) enter(event watch.Event) {
	m, ok := event.Object.(*v1alpha1.Machine)
	if !ok {
		b.fault = fmt.Sprintf("the watch says %v", event.Object)
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

// changed waits for a number of changes, or for the end of their source.
func (w *world) changed(book *fleetBook, left int, over func() bool) {
	w.Helper()
	for end := time.After(patience); left > 0 && !over(); {
		look := time.After(100 * time.Millisecond)
		select {
		case n := <-book.changes:
			left -= n
		case <-look:
		case <-end:
			require.Fail(w, "waited in vain for a change")
		}
	}
}

// TestKilledFiftyTimes kills the manager at random moments of a rollout, counted
// in changes of machines. The bounds hold throughout, and in the end there is
// one VM and one node for each machine, all of them new.
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

	book := w.follow(machines, machines+machines/5)
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
			roll() // the last one is over already
		}
		c = w.child()
		w.changed(book, 1+random.IntN(24), w.settled("web", machines))
		c.kill()
	}
	w.child()
	w.eventually("the rollout to end", w.settled("web", machines))
	w.eventually("one VM for each machine", func() bool { return maps.Equal(map[string]int{classes[class]: machines}, w.vms()) })
	w.eventually("one node for each machine", func() bool { return w.nodes() == machines })
	w.eventually("no machine more", func() bool { return len(w.machines()) == machines })
	require.Empty(t, book.fault)
}
