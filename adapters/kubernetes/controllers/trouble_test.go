package controllers_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
)

// brokenWatches ends each watch after 300 ms, and answers every third one with 410.
type brokenWatches struct {
	http.RoundTripper
	watches, expired *atomic.Int64
}

// expiredBody is the body of an API server's 410 to a watch from a version that is too old.
const expiredBody = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old resource version","reason":"Expired","code":410}`

// RoundTrip implements http.RoundTripper.
func (c brokenWatches) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") == "" {
		return c.RoundTripper.RoundTrip(r)
	}
	if n := c.watches.Add(1); n%3 == 0 {
		c.expired.Add(1)
		return &http.Response{
			StatusCode: http.StatusGone, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader([]byte(expiredBody))),
		}, nil
	}
	answer, err := c.RoundTripper.RoundTrip(r)
	if err == nil {
		body := answer.Body
		time.AfterFunc(300*time.Millisecond, func() { _ = body.Close() })
	}
	return answer, err
}

// TestWatchesThatBreak: a deployment is created, rolled and deleted while watches break and expire all
// the time. The rollout keeps its bounds, and everything is deleted.
// Invariants: P7
func TestWatchesThatBreak(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	var watches, expired atomic.Int64
	config := rest.CopyConfig(server.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return brokenWatches{next, &watches, &expired} })
	w.log = discard
	w.manageOver(config)
	w.class("old", "o")
	w.class("new", "n")
	d := w.deploymentWith("web", "old", 4, `{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1,"maxUnavailable":1}}`)
	seen := w.census(4)
	w.roll(d, "new")
	w.eventually("the rollout to end", w.settled("web", 4))
	w.eventually("the old VMs to be gone", func() bool { return maps.Equal(map[string]int{"n": 4}, w.vms()) })
	running, total := seen.spans()
	assert.GreaterOrEqual(t, running.least, 3)
	assert.LessOrEqual(t, total.most, 5)
	require.NoError(t, w.client.Delete(t.Context(), d))
	w.eventually("all to be gone", func() bool { return w.gone(d)() && len(w.machines()) == 0 && len(w.vms()) == 0 })
	assert.Greater(t, watches.Load(), int64(20))
	assert.Greater(t, expired.Load(), int64(5))
}

// otherWriter is another program that writes to the objects of a test all the time.
type otherWriter struct {
	*world
	mu   sync.Mutex
	last map[string]string // by kind and name: what was written last
	n    int
}

// touch sets a label and an annotation of an object, and adds a condition if conditions is true. The
// object may be gone.
func (m *otherWriter) touch(ctx context.Context, o client.Object, kind string, conditions bool) {
	m.n++
	value := fmt.Sprint(m.n)
	patch := fmt.Sprintf(`{"metadata":{"labels":{"theirs":%q},"annotations":{"theirs":%q}}}`, value, value)
	// Without ctx, because the result of the last write must be known.
	err := m.client.Patch(context.WithoutCancel(ctx), o, client.RawPatch(types.MergePatchType, []byte(patch)))
	if err == nil {
		m.mu.Lock()
		m.last[kind+o.GetName()] = value
		m.mu.Unlock()
	}
	if err == nil && conditions {
		err = m.addCondition(ctx, o)
	}
	if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		m.Errorf("the other writer: %v", err)
	}
}

// addCondition adds the condition Theirs to a set or a deployment, unless it is there.
func (m *otherWriter) addCondition(ctx context.Context, o client.Object) error {
	switch o := o.(type) {
	case *v1alpha1.MachineSet:
		if !marked(o.Status.Conditions, func(c v1alpha1.MachineSetCondition) string { return string(c.Type) }) {
			o.Status.Conditions = append(o.Status.Conditions, v1alpha1.MachineSetCondition{Type: "Theirs", Status: "True"})
			return m.client.Status().Update(ctx, o)
		}
	case *v1alpha1.MachineDeployment:
		if !marked(o.Status.Conditions, func(c v1alpha1.MachineDeploymentCondition) string { return string(c.Type) }) {
			o.Status.Conditions = append(o.Status.Conditions, v1alpha1.MachineDeploymentCondition{Type: "Theirs", Status: "True"})
			return m.client.Status().Update(ctx, o)
		}
	}
	return nil
}

// marked reports whether a list of conditions has the condition Theirs.
func marked[T any](list []T, kind func(T) string) bool {
	for _, c := range list {
		if kind(c) == "Theirs" {
			return true
		}
	}
	return false
}

// run writes until ctx ends.
func (m *otherWriter) run(ctx context.Context) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		machines, sets, deployments := &v1alpha1.MachineList{}, &v1alpha1.MachineSetList{}, &v1alpha1.MachineDeploymentList{}
		for _, list := range []client.ObjectList{machines, sets, deployments} {
			if err := m.client.List(ctx, list, client.InNamespace(m.namespace)); err != nil {
				return
			}
		}
		for i := range machines.Items {
			m.touch(ctx, &machines.Items[i], "machine ", false)
		}
		for i := range sets.Items {
			m.touch(ctx, &sets.Items[i], "set ", true)
		}
		for i := range deployments.Items {
			m.touch(ctx, &deployments.Items[i], "deployment ", true)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// TestOthersWriteTheSameObjects: a rollout ends although another program writes to all of its objects
// all the time, and none of that program's values is lost.
func TestOthersWriteTheSameObjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.log = discard
	w.manage()
	w.class("old", "o")
	w.class("new", "n")
	d := w.deploymentWith("web", "old", 3, `{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1,"maxUnavailable":0}}`)
	m := &otherWriter{world: w, last: map[string]string{}}
	stop := w.background(m.run)
	w.roll(d, "new")
	w.eventually("the rollout to end", w.settled("web", 3))
	w.eventually("the old VMs to be gone", func() bool { return maps.Equal(map[string]int{"n": 3}, w.vms()) })
	w.scale(d, 3, 5)
	w.eventually("five machines", w.settled("web", 5))
	stop()
	checked := 0
	check := func(kind string, o client.Object) {
		if value := m.last[kind+o.GetName()]; value != "" {
			checked++
			assert.Equal(t, value, o.GetLabels()["theirs"], "%s%s", kind, o.GetName())
			assert.Equal(t, value, o.GetAnnotations()["theirs"], "%s%s", kind, o.GetName())
		}
	}
	for _, o := range w.machines() {
		check("machine ", &o)
	}
	for _, o := range w.sets() {
		check("set ", &o)
		assert.True(t, marked(o.Status.Conditions, func(c v1alpha1.MachineSetCondition) string { return string(c.Type) }), o.Name)
	}
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(d), d))
	check("deployment ", d)
	assert.True(t, marked(d.Status.Conditions, func(c v1alpha1.MachineDeploymentCondition) string { return string(c.Type) }))
	assert.GreaterOrEqual(t, checked, 6)
	assert.Greater(t, m.n, 25)
}
