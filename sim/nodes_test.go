package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/store"
)

// typo is a node template that no API server accepts.
var typo = machine.NodeTemplate{Taints: []object.Taint{{Key: "dedicated", Effect: "NoShedule"}}}

// requireInvalid requires that the deployment's status says that its spec is invalid, and in which field.
func (r *run) requireInvalid(field string) {
	r.t.Helper()
	d, err := r.w.Deployments().Get(ctx, web)
	require.NoError(r.t, err)
	c := object.FindCondition(d.Status.Conditions, deployment.ConditionSpecValid)
	require.NotNil(r.t, c)
	require.Equal(r.t, object.False, c.Status)
	require.Contains(r.t, c.Message, field)
	require.Contains(r.t, deployment.Missing(d), field)
	require.ErrorContains(r.t, d.Validate(deployment.DefaultPolicy().Keys), field)
}

// TestNodeTemplateThatNoServerAccepts: if no API server would accept the nodes of a deployment, no machine
// is created, and the status says why. Once the template is corrected, the fleet comes up.
func TestNodeTemplateThatNoServerAccepts(t *testing.T) {
	r := &run{t: t}
	d := fleet(3, deployment.Strategy{})
	d.Spec.Template.Spec.NodeTemplate = typo
	r.open(sim.Options{Seed: 1}, d)
	r.wait(24 * time.Hour)
	require.Zero(t, r.w.Made())
	r.requireInvalid("taints[0]")
	r.edit("the effect is corrected", func(s *deployment.Spec) { s.Template.Spec.NodeTemplate.Taints[0].Effect = object.NoSchedule })
	r.awaitComplete()
	require.Equal(t, 3, r.w.Made())
}

// TestRunningFleetWithAnInvalidNodeTemplate: a running fleet keeps its machines when its node template
// becomes invalid, with any strategy. It can still be scaled, and nothing is rolled out until the template
// is corrected.
func TestRunningFleetWithAnInvalidNodeTemplate(t *testing.T) {
	one := rollout.IntOrPercent{Value: 1}
	for _, strategy := range []deployment.Strategy{
		{Kind: deployment.RollingUpdate, MaxUnavailable: one}, {Kind: deployment.RollingUpdate, MaxSurge: one}, {Kind: deployment.Recreate},
	} {
		t.Run(fmt.Sprintf("%s %s/%s", strategy.Kind, strategy.MaxSurge.String(), strategy.MaxUnavailable.String()), func(t *testing.T) {
			r := &run{t: t}
			r.open(sim.Options{Seed: 1}, fleet(4, strategy))
			r.awaitComplete()
			r.edit("another class, and a typo", func(s *deployment.Spec) {
				s.Template.Spec.Class.Name, s.Template.Spec.NodeTemplate = "large", typo
			})
			r.wait(6 * time.Hour)
			require.Equal(t, 4, r.w.Made())
			require.Equal(t, 4, r.running())
			r.requireInvalid("taints[0]")
			r.scale(3)
			r.wait(time.Hour)
			require.Equal(t, 3, r.running())
			r.scale(5)
			r.wait(time.Hour)
			require.Equal(t, 5, r.running(), "the old set, whose template is valid, grows")
			require.Equal(t, 6, r.w.Made())
			r.edit("the effect is corrected", func(s *deployment.Spec) { s.Template.Spec.NodeTemplate.Taints[0].Effect = object.NoSchedule })
			r.awaitComplete()
			require.Equal(t, 5, r.running())
		})
	}
}

// running counts the machines that run.
func (r *run) running() (n int) {
	r.t.Helper()
	all, err := r.w.Machines().List(ctx, store.Query{})
	require.NoError(r.t, err)
	for _, m := range all {
		if !m.Deleted() && m.Status.Phase == machine.PhaseRunning {
			n++
		}
	}
	return n
}

// TestAllNodesDeletedAtOnce: a mistaken cloud controller deletes the nodes of all machines while their VMs
// run. The machines are replaced one at a time while the others keep working, and each is replaced once
// (P45).
// Invariants: P45
func TestAllNodesDeletedAtOnce(t *testing.T) {
	for _, replicas := range []int32{8, 20} {
		t.Run(fmt.Sprint(replicas), func(t *testing.T) {
			r := &run{t: t}
			options := sim.Options{Seed: 1, Manager: manager.Options{Policies: manager.Policies{Safety: sim.SafetyPolicy()}}}
			r.open(options, fleet(replicas, deployment.Strategy{}))
			r.awaitComplete()
			least := int(replicas)
			r.w.Watch(func() {
				n := 0
				ms, _ := r.w.Machines().List(ctx, store.Query{})
				for _, m := range ms {
					if !m.Deleted() && m.Status.Phase == machine.PhaseRunning {
						n++
					}
				}
				least = min(least, n)
			})
			r.w.Do(&sim.Step{Do: sim.DeleteNodes, N: int(replicas)})
			require.NoError(t, r.w.Run(5*time.Hour))
			require.Equal(t, int(replicas)-1, least, "the lowest number of running machines")
			require.EqualValues(t, 2*replicas, r.w.Made(), "machines that were created; each has to be replaced once")
			nodes, err := r.w.Nodes().List(ctx, store.Query{})
			require.NoError(t, err)
			for _, n := range nodes {
				require.False(t, n.Deleted(), "node %s is still being deleted", n.Name)
			}
		})
	}
}
