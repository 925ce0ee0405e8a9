package controllers_test

import (
	"context"
	"maps"
	"sync"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
)

// follow passes a map of all objects of a kind in the test's namespace, by name, to see: at once, and
// after each change that the API server reports, until the test ends or stop is called. It resumes a
// watch that the server ends, so that no version is missed. see must not keep the map.
func follow[T client.Object](w *world, list client.ObjectList, items func(client.ObjectList) []T, see func(map[string]T)) (stop func()) {
	w.Helper()
	require.NoError(w, w.client.List(w.Context(), list, client.InNamespace(w.namespace)))
	all := map[string]T{}
	for _, o := range items(list) {
		all[o.GetName()] = o
	}
	see(all)
	version := list.GetResourceVersion()
	return w.background(func(ctx context.Context) {
		for ctx.Err() == nil {
			changes, err := w.client.Watch(ctx, list, client.InNamespace(w.namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}})
			if err != nil {
				if ctx.Err() == nil {
					w.Errorf("the watch of the test: %v", err)
				}
				return
			}
			version = consume(ctx, w, changes, version, all, see)
			changes.Stop()
		}
	})
}

// consume updates the map all with each change of a watch, and passes it to see. When the watch ends,
// it returns the last version.
func consume[T client.Object](ctx context.Context, w *world, changes watch.Interface, version string, all map[string]T, see func(map[string]T)) string {
	for change := range changes.ResultChan() {
		o, ok := change.Object.(T)
		if !ok && ctx.Err() != nil {
			return version
		}
		if !ok {
			w.Errorf("the watch of the test: %v", change.Object)
			return version
		}
		version = o.GetResourceVersion()
		if all[o.GetName()] = o; change.Type == watch.Deleted {
			delete(all, o.GetName())
		}
		see(all)
	}
	return version
}

func (w *world) followMachines(see func(map[string]*v1alpha1.Machine)) (stop func()) {
	w.Helper()
	return follow(w, &v1alpha1.MachineList{}, func(list client.ObjectList) (out []*v1alpha1.Machine) {
		items := list.(*v1alpha1.MachineList).Items
		for i := range items {
			out = append(out, &items[i])
		}
		return out
	}, see)
}

// span is the smallest and the largest value that a number had.
type span struct{ least, most int }

func (s *span) take(n int) { s.least, s.most = min(s.least, n), max(s.most, n) }

// census has the smallest and the largest number of machines since it began: of the running ones, and
// of all. Machines that are being deleted are not counted.
type census struct {
	mu             sync.Mutex
	running, total span
}

// census counts the machines of the test's namespace at each version that the API server reports.
// n is how many machines there are now; all of them must be running.
func (w *world) census(n int) *census {
	w.Helper()
	c := &census{running: span{n, n}, total: span{n, n}}
	w.followMachines(func(all map[string]*v1alpha1.Machine) {
		running, total := 0, 0
		for m := range maps.Values(all) {
			if m.DeletionTimestamp != nil {
				continue
			}
			total++
			if m.Status.CurrentStatus.Phase == "Running" {
				running++
			}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.running.take(running)
		c.total.take(total)
	})
	return c
}

// spans returns the numbers so far.
func (c *census) spans() (running, total span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running, c.total
}
