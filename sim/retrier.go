package sim

import (
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/object"
)

// retrier is a user who continues rollouts that stopped because machines failed, once the faults have
// stopped: the user pauses the deployment, and resumes it when the failures are forgotten.
type retrier struct {
	*ground
	edit    func(name string, change func(*deployment.Spec))
	retries map[string]bool // deployments that are paused for it, by name
}

func (r *retrier) see(e event) {
	stored, ok := e.(stored[*deployment.Deployment])
	if !ok || stored.now == nil || !r.faultsStopped {
		return
	}
	d := stored.now
	switch {
	case r.retries[d.Name]:
		if d.Spec.Paused && d.Status.RolloutFailures.Count == 0 {
			r.retries[d.Name] = false
			r.pauseLater(d.Name, false)
		}
	case !d.Spec.Paused && stopped(d):
		r.retries[d.Name] = true
		r.pauseLater(d.Name, true)
	}
}

func (r *retrier) pauseLater(name string, paused bool) {
	r.After(retryTime, func() { r.edit(name, func(s *deployment.Spec) { s.Paused = paused }) })
}

// retryTime is how long the user takes for each.
const retryTime = time.Minute

// stopped reports whether a deployment's status says that its rollout has stopped.
func stopped(d *deployment.Deployment) bool {
	c := object.FindCondition(d.Status.Conditions, deployment.ConditionProgressing)
	return c != nil && c.Reason == deployment.ProgressStopped
}
