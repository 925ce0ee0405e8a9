package cluster_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	"github.com/millwright-go/millwright/adapters/kubernetes/convert"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

func orderOf(p *corev1.Pod) drain.Order {
	return drain.Order{Pod: object.Key{Namespace: p.Namespace, Name: p.Name}, UID: string(p.UID)}
}

// budget creates a disruption budget for pods with the label app=mill. No controller updates its
// status.
func (w *world) budget(name string) *policyv1.PodDisruptionBudget {
	w.Helper()
	one := intstr.FromInt32(1)
	b, err := w.client.PolicyV1().PodDisruptionBudgets(w.name).Create(w.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &one,
			Selector: &metav1.LabelSelector{
				MatchLabels:      map[string]string{"app": "mill"},
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpDoesNotExist}},
			},
		},
	}, metav1.CreateOptions{})
	require.NoError(w, err)
	return b
}

// allow sets how many disruptions a budget allows.
func (w *world) allow(b *policyv1.PodDisruptionBudget, disruptions int32) {
	w.Helper()
	b, err := w.client.PolicyV1().PodDisruptionBudgets(w.name).Get(w.Context(), b.Name, metav1.GetOptions{})
	require.NoError(w, err)
	b.Status = policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: b.Generation, DisruptionsAllowed: disruptions,
		CurrentHealthy: 1 + disruptions, DesiredHealthy: 1, ExpectedPods: 1 + disruptions,
	}
	_, err = w.client.PolicyV1().PodDisruptionBudgets(w.name).UpdateStatus(w.Context(), b, metav1.UpdateOptions{})
	require.NoError(w, err)
}

// TestEvictions: each answer of the server is returned, at once.
func TestEvictions(t *testing.T) {
	w := newWorld(t)
	node := w.node("a", nil).Name
	pods := w.cache.Workload().Pods
	b := w.budget("b")
	p := w.pod("p", node, nil)

	// No controller has processed the budget yet: the server says when to come back.
	began := time.Now()
	a, err := pods.Evict(t.Context(), orderOf(p))
	require.NoError(t, err)
	require.Equal(t, drain.Refused, a.Result)
	require.Equal(t, 10*time.Second, a.RetryAfter)
	require.Contains(t, a.Message, "disruption budget")
	require.Less(t, time.Since(began), a.RetryAfter, "the client waited instead of returning the answer")

	w.allow(b, 0)
	a, err = pods.Evict(t.Context(), orderOf(p))
	require.NoError(t, err)
	require.Equal(t, drain.Refused, a.Result)
	require.Zero(t, a.RetryAfter)
	require.False(t, w.gone("p"))

	w.allow(b, 1)
	stranger := orderOf(p)
	stranger.UID = "stranger"
	a, err = pods.Evict(t.Context(), stranger)
	require.NoError(t, err)
	require.Equal(t, drain.NotFound, a.Result, a.Message)
	require.False(t, w.gone("p"))
	w.allow(b, 1) // again: the server subtracts one before it compares the UID
	a, err = pods.Evict(t.Context(), orderOf(p))
	require.NoError(t, err)
	require.Equal(t, drain.Answer{Result: drain.Accepted}, a)
	eventually(t, "the pod to be gone", func() bool { return w.gone("p") })
	a, err = pods.Evict(t.Context(), orderOf(p))
	require.NoError(t, err)
	require.Equal(t, drain.NotFound, a.Result)

	// A pod with two budgets can't be evicted at all.
	p = w.pod("p", node, nil)
	w.allow(w.budget("c"), 1)
	a, err = pods.Evict(t.Context(), orderOf(p))
	require.NoError(t, err)
	require.Equal(t, drain.Failed, a.Result)
	require.Contains(t, a.Message, "more than one PodDisruptionBudget")

	// A call without an answer returns an error.
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = pods.Evict(ended, orderOf(p))
	require.ErrorIs(t, err, context.Canceled)
	_, err = pods.Delete(ended, orderOf(p))
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, w.gone("p"))
}

func TestPodDeletions(t *testing.T) {
	w := newWorld(t)
	node := w.node("a", nil).Name
	pods := w.cache.Workload().Pods
	w.allow(w.budget("b"), 0)
	hold := func(p *corev1.Pod) { p.Finalizers = []string{"millwright.test/hold"} }
	for name, now := range map[string]bool{"gently": false, "at-once": true} {
		p := w.pod(name, node, hold)
		order := orderOf(p)
		order.Now, order.UID = now, "stranger"
		a, err := pods.Delete(t.Context(), order)
		require.NoError(t, err)
		require.Equal(t, drain.NotFound, a.Result, a.Message)

		order.UID = string(p.UID)
		a, err = pods.Delete(t.Context(), order)
		require.NoError(t, err)
		require.Equal(t, drain.Answer{Result: drain.Accepted}, a)
		deleted, err := w.client.CoreV1().Pods(w.name).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		require.NotNil(t, deleted.DeletionTimestamp)
		_, err = w.client.CoreV1().Pods(w.name).Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		eventually(t, "the pod to be gone", func() bool { return w.gone(name) })
		a, err = pods.Delete(t.Context(), order)
		require.NoError(t, err)
		require.Equal(t, drain.NotFound, a.Result)
	}
}

// deletions records the bodies of the DELETE requests that it passes on.
type deletions struct {
	next   http.RoundTripper
	bodies *[]string
}

// RoundTrip implements http.RoundTripper.
func (d deletions) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodDelete {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(text))
		*d.bodies = append(*d.bodies, string(text))
	}
	return d.next.RoundTrip(r)
}

// TestGraceOfDeletions: only an order with Now sets a grace period, of 0.
func TestGraceOfDeletions(t *testing.T) {
	var bodies []string
	config := rest.CopyConfig(server.Config)
	config.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return deletions{next, &bodies} }
	pods := newCluster(t, config).Workload().Pods
	for _, now := range []bool{false, true} {
		_, err := pods.Delete(t.Context(), drain.Order{Pod: object.Key{Namespace: "default", Name: "absent"}, UID: "u", Now: now})
		require.NoError(t, err)
	}
	require.Len(t, bodies, 2)
	require.NotContains(t, bodies[0], "gracePeriodSeconds")
	require.Contains(t, bodies[1], `"gracePeriodSeconds":0`)
	for _, body := range bodies {
		require.Contains(t, body, `"uid":"u"`)
	}
}

// evictionAnswers gives one answer to all evictions, and passes on other requests.
type evictionAnswers struct {
	next http.RoundTripper
	code int
	body string
}

// RoundTrip implements http.RoundTripper.
func (e evictionAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, "/eviction") {
		return e.next.RoundTrip(r)
	}
	return &http.Response{
		Status: http.StatusText(e.code), StatusCode: e.code, Proto: r.Proto, ProtoMajor: r.ProtoMajor, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}, "Retry-After": {"3"}},
		Body:   io.NopCloser(strings.NewReader(e.body)),
	}, nil
}

// TestOddAnswersToEvictions: answers that the API server of these tests does not give.
func TestOddAnswersToEvictions(t *testing.T) {
	w := newWorld(t)
	p := w.pod("p", w.node("a", nil).Name, nil)
	for _, row := range []struct {
		name string
		code int
		body string
		want drain.Result
		wait time.Duration
	}{
		{"no such path", 404, "404 page not found", drain.NoEvictionAPI, 0},
		{"no such subresource", 404, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","details":{},"code":404}`, drain.NoEvictionAPI, 0},
		{"not for this kind", 405, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"MethodNotAllowed","code":405}`, drain.NoEvictionAPI, 0},
		{"overloaded", 429, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","details":{"retryAfterSeconds":3},"code":429}`, drain.Refused, 3 * time.Second},
		{"a conflict that is not the UID's", 409, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`, drain.Failed, 0},
		{"forbidden", 403, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`, drain.Failed, 0},
	} {
		config := rest.CopyConfig(server.Config)
		config.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
			return evictionAnswers{next: next, code: row.code, body: row.body}
		}
		a, err := newCluster(t, config).Workload().Pods.Evict(t.Context(), orderOf(p))
		require.NoError(t, err, row.name)
		require.Equal(t, row.want, a.Result, row.name)
		require.Equal(t, row.wait, a.RetryAfter, row.name)
	}
}

// evictionCase is a pod to evict, with the spec and status of its budgets.
type evictionCase struct {
	phase                     corev1.PodPhase
	ready                     corev1.ConditionStatus // empty: the pod has no condition Ready
	policy                    policyv1.UnhealthyPodEvictionPolicyType
	current, desired, allowed int32
	disrupted                 int
	stale                     bool // the budget's controller has not seen its spec
	budgets                   int
}

// evictionCases returns all combinations of what the eviction API distinguishes.
func evictionCases() (all []evictionCase) {
	for _, pod := range []evictionCase{
		{phase: corev1.PodRunning, ready: corev1.ConditionTrue}, {phase: corev1.PodRunning, ready: corev1.ConditionFalse},
		{phase: corev1.PodRunning}, {phase: corev1.PodPending}, {phase: corev1.PodSucceeded, ready: corev1.ConditionFalse},
	} {
		for _, policy := range []policyv1.UnhealthyPodEvictionPolicyType{"", policyv1.IfHealthyBudget, policyv1.AlwaysAllow} {
			for _, counts := range [][3]int32{{2, 1, 1}, {1, 1, 0}, {0, 1, 0}, {3, 2, 0}, {0, 0, 0}, {1, 0, 1}} {
				s := pod
				s.policy, s.current, s.desired, s.allowed, s.budgets = policy, counts[0], counts[1], counts[2], 1
				all = append(all, s)
				s.stale = true
				all = append(all, s)
			}
			several, many := pod, pod
			several.policy, several.current, several.desired, several.allowed, several.budgets = policy, 2, 1, 1, 2
			many.policy, many.current, many.desired, many.allowed, many.budgets, many.disrupted = policy, 2, 3, 1, 1, 2001
			all = append(all, several, many)
		}
	}
	return all
}

// create creates the pod and its budgets.
func (w *world) create(name string, s evictionCase) (*corev1.Pod, []*policyv1.PodDisruptionBudget) {
	w.Helper()
	labels := map[string]string{"case": name}
	pods, policies := w.client.CoreV1().Pods(w.name), w.client.PolicyV1().PodDisruptionBudgets(w.name)
	// The pod is not bound to a node, so the fake kubelet does not write its status.
	p, err := pods.Create(w.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}, metav1.CreateOptions{})
	require.NoError(w, err)
	p.Status.Phase = s.phase
	if s.ready != "" {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: s.ready}}
	}
	p, err = pods.UpdateStatus(w.Context(), p, metav1.UpdateOptions{})
	require.NoError(w, err)
	var budgets []*policyv1.PodDisruptionBudget
	for i := range s.budgets {
		b := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-" + string(rune('a'+i))},
			Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &intstr.IntOrString{IntVal: s.desired}, Selector: &metav1.LabelSelector{MatchLabels: labels}},
		}
		if s.policy != "" {
			b.Spec.UnhealthyPodEvictionPolicy = &s.policy
		}
		b, err = policies.Create(w.Context(), b, metav1.CreateOptions{})
		require.NoError(w, err)
		b.Status = policyv1.PodDisruptionBudgetStatus{
			DisruptionsAllowed: s.allowed, CurrentHealthy: s.current, DesiredHealthy: s.desired, ExpectedPods: 3, DisruptedPods: map[string]metav1.Time{},
		}
		if !s.stale {
			b.Status.ObservedGeneration = b.Generation
		}
		for n := range s.disrupted {
			b.Status.DisruptedPods[strconv.Itoa(n)] = metav1.Now()
		}
		b, err = policies.UpdateStatus(w.Context(), b, metav1.UpdateOptions{})
		require.NoError(w, err)
		budgets = append(budgets, b)
	}
	return p, budgets
}

// P57: a forecast predicts the server's answer to an eviction.
// Invariants: P57
func TestP57ForecastsAnswerAsTheServerDoes(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	accepted, refused := 0, 0
	for i, s := range evictionCases() {
		p, budgets := w.create("p"+strconv.Itoa(i), s)
		o := &drain.Observation{Node: &machine.Node{Meta: object.Meta{Key: object.Key{Name: "n"}}}, Pods: []*drain.Pod{convert.Pod(p)}, Attachments: []*drain.Attachment{}}
		for _, b := range budgets {
			o.Budgets = append(o.Budgets, convert.Budget(b))
		}
		f, err := drain.Predict(o, nil, drain.Assumptions{}, now)
		require.NoError(t, err)
		predicted := len(f.Budgets()) == 0
		a, err := w.cache.Workload().Pods.Evict(t.Context(), orderOf(p))
		require.NoError(t, err)
		require.Equal(t, a.Result == drain.Accepted, predicted, "%+v: the server says %+v, the forecast\n%s", s, a, drain.Explain(f))
		if predicted {
			accepted++
		} else {
			refused++
		}
	}
	require.Greater(t, accepted, 40, "too few cases that the server accepts")
	require.Greater(t, refused, 40, "too few cases that the server refuses")
}
