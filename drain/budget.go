package drain

import (
	"time"

	"github.com/millwright-go/millwright/object"
)

// Budget is a PodDisruptionBudget of policy/v1.
type Budget struct {
	object.Key
	// Selector picks pods of the budget's namespace. Nil picks none, an empty
	// one picks all.
	Selector *object.Selector
	// AlwaysAllow is the unhealthyPodEvictionPolicy of that name. False: IfHealthyBudget, the default.
	AlwaysAllow bool

	Generation         int64 // of the spec
	ObservedGeneration int64 // of the spec that the numbers below belong to

	DisruptionsAllowed int32 // right now
	CurrentHealthy     int32
	DesiredHealthy     int32
	ExpectedPods       int32
	Disrupted          int32 // pods whose eviction was accepted and that are not gone yet
}

// Selects reports whether the budget applies to the pod.
func (b *Budget) Selects(p *Pod) bool {
	return b != nil && b.Selector != nil && b.Namespace == p.Namespace &&
		(b.Selector.Empty() || b.Selector.Matches(p.Labels))
}

// Stale reports whether the status belongs to an older spec. Its numbers then prove nothing.
func (b *Budget) Stale() bool { return b.ObservedGeneration < b.Generation }

// Misconfigured reports whether the budget can never be met: its status is current, all expected
// pods are healthy, none is being disrupted, and still no disruption is allowed.
func (b *Budget) Misconfigured() bool {
	return !b.Stale() && b.ExpectedPods > 0 && b.CurrentHealthy >= b.ExpectedPods &&
		b.Disrupted == 0 && b.DisruptionsAllowed <= 0
}

// mostDisrupted is how many evicted pods an API server keeps in a budget's status that are not gone.
const mostDisrupted = 2000

// admits returns what an API server answers to the eviction of a pod that runs and that this budget
// alone selects, by the documentation of the eviction API. counts: the eviction takes one off
// DisruptionsAllowed.
func (b *Budget) admits(p *Pod) (a Answer, counts bool) {
	healthy := b.CurrentHealthy >= b.DesiredHealthy && b.DesiredHealthy > 0
	switch {
	case p.NotReady && (b.AlwaysAllow || healthy):
		return Answer{Result: Accepted}, false
	case b.Stale():
		return Answer{Result: Refused, RetryAfter: 10 * time.Second}, false
	case b.DisruptionsAllowed < 0:
		return Answer{Result: Failed, Message: "pdb disruptions allowed is negative"}, false
	case b.Disrupted > mostDisrupted:
		return Answer{Result: Failed, Message: "too many evictions not confirmed by PDB controller"}, false
	case b.DisruptionsAllowed == 0:
		return Answer{Result: Refused}, false
	}
	return Answer{Result: Accepted}, true
}

// count updates a status as the controller of budgets does, which sees by then which pods go.
func (b *Budget) count() {
	b.DisruptionsAllowed, b.Disrupted = max(b.CurrentHealthy-b.DesiredHealthy, 0), 0
}
