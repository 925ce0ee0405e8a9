package cluster

import (
	"context"
	"errors"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-go/millwright/drain"
)

// Evict implements drains.Pods. An answer of 429 is returned at once, because the caller decides
// when to try again and the client would wait here.
func (p *pods) Evict(ctx context.Context, order drain.Order) (drain.Answer, error) {
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: order.Pod.Namespace, Name: order.Pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: precondition(order.UID)},
	}
	err := p.client.CoreV1().RESTClient().Post().MaxRetries(0).
		Namespace(order.Pod.Namespace).Resource("pods").Name(order.Pod.Name).SubResource("eviction").
		Body(eviction).Do(ctx).Error()
	if noEvictions(err) {
		return drain.Answer{Result: drain.NoEvictionAPI, Message: err.Error()}, nil
	}
	return p.answer(ctx, order, err)
}

// Delete implements drains.Pods.
func (p *pods) Delete(ctx context.Context, order drain.Order) (drain.Answer, error) {
	o := &metav1.DeleteOptions{Preconditions: precondition(order.UID)}
	if order.Now {
		o.GracePeriodSeconds = new(int64)
	}
	err := p.client.CoreV1().RESTClient().Delete().MaxRetries(0).
		Namespace(order.Pod.Namespace).Resource("pods").Name(order.Pod.Name).
		Body(o).Do(ctx).Error()
	return p.answer(ctx, order, err)
}

func precondition(uid string) *metav1.Preconditions {
	if uid == "" {
		return nil
	}
	return metav1.NewUIDPreconditions(uid)
}

// noEvictions reports whether an answer means that there is no eviction API. A NotFound that names
// a pod means that this pod is gone.
func noEvictions(err error) bool {
	if apierrors.IsMethodNotSupported(err) {
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsNotFound(err) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == "" || apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// answer is answerTo for a call about a pod. A conflict counts as NotFound if the pod is gone, also
// if another pod has its name now: then it was the UID that conflicted.
func (p *pods) answer(ctx context.Context, order drain.Order, err error) (drain.Answer, error) {
	if apierrors.IsConflict(err) && order.UID != "" {
		pod, failed := p.client.CoreV1().Pods(order.Pod.Namespace).Get(ctx, order.Pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(failed) || failed == nil && string(pod.UID) != order.UID {
			return drain.Answer{Result: drain.NotFound, Message: err.Error()}, nil
		}
	}
	return answerTo(err)
}

// answerTo turns the error of a call into the cluster's answer. An error that is not the server's means
// that there was no answer, and is returned.
func answerTo(err error) (drain.Answer, error) {
	if err == nil {
		return drain.Answer{Result: drain.Accepted}, nil
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return drain.Answer{}, err
	}
	a := drain.Answer{Result: drain.Failed, Message: err.Error()}
	switch {
	case apierrors.IsTooManyRequests(err):
		a.Result = drain.Refused
		if seconds, said := apierrors.SuggestsClientDelay(err); said {
			a.RetryAfter = time.Duration(seconds) * time.Second
		}
	case apierrors.IsNotFound(err):
		a.Result = drain.NotFound
	}
	return a, nil
}
