package controllers_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
)

// TestEachTextIsAnEvent: each text is an event of its own, also if object and reason are the same. A
// repeated text is counted. The stored event has no trace of endOfField.
// Invariants: P58
func TestEachTextIsAnEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.manage()
	w.class("small", "s")
	d := w.deployment("web", "small", 1)
	w.eventually("the first machine", w.settled("web", 1))
	from := int32(1)
	for _, to := range []int32{3, 1, 3} {
		w.scale(d, from, to)
		w.eventually("the scaled fleet", w.settled("web", to))
		from = to
	}
	count := func(reason, text string) (n int32) {
		list := &eventsv1.EventList{}
		require.NoError(t, w.client.List(t.Context(), list, client.InNamespace(w.namespace)))
		for _, e := range list.Items {
			require.Empty(t, e.Regarding.FieldPath)
			require.False(t, e.EventTime.IsZero())
			switch {
			case e.Regarding.Name != "web" || e.Reason != reason || !strings.Contains(e.Note, text):
			case e.Series == nil:
				n++
			default:
				require.True(t, e.EventTime.Before(&e.Series.LastObservedTime))
				n += e.Series.Count
			}
		}
		return n
	}
	w.eventually("all texts", func() bool {
		return count("ScaleSet", " from 3 to 1: ") == 1 && count("ScaleSet", " from 1 to 3: ") == 2
	})
	require.EqualValues(t, 1, count("RolloutComplete", "the rollout of revision 1 is complete"), "scaling is no rollout")
}

// TestStepsAreNoEvents: the events about a machine say that it joined and that it is gone. The steps between are only
// in its status.
func TestStepsAreNoEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.manage()
	w.class("small", "s")
	w.deployment("web", "small", 1)
	w.eventually("the machine", w.settled("web", 1))
	name := w.names()[0]
	require.NoError(t, w.client.Delete(t.Context(), &v1alpha1.Machine{ObjectMeta: w.meta(name)}))
	w.eventually("the last event", w.hasEvent(name, "Deleted: "))
	list := &eventsv1.EventList{}
	require.NoError(t, w.client.List(t.Context(), list, client.InNamespace(w.namespace)))
	var reasons []string
	for _, e := range list.Items {
		if e.Regarding.Name == name {
			reasons = append(reasons, e.Reason)
		}
	}
	require.ElementsMatch(t, []string{"Joined", "Deleted"}, reasons)
}
