package machine_test

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

func init() { maps.Copy(healthStories, grantStories) }

// answering has the budget answer the same each time.
func (w *world) answering(grant machine.Grant) {
	w.budget = func(*machine.Machine) *machine.Grant { return &grant }
}

var grantStories = map[string]func(*story){
	"replacement blocked by the budget": func(s *story) {
		s.toRunning()
		s.answering(machine.Grant{Detail: "machines in replacement: 1 of at most 1"})
		s.cluster.ready(node, object.False)
		s.later(0, "the kubelet is not ready, and another machine is in replacement")
		s.wait()
		s.wait()
		s.answering(machine.Grant{Allowed: true, Until: s.now.Add(time.Minute)})
		s.say("the other one was replaced")
		s.wait()
	},
	"replacement blocked until the node recovers": func(s *story) {
		s.toRunning()
		s.answering(machine.Grant{Detail: "machines in replacement: 1 of at most 1"})
		s.cluster.ready(node, object.False)
		s.later(0, "the kubelet is not ready, and another machine is in replacement")
		s.wait()
		s.cluster.ready(node, object.True)
		s.later(10*time.Second, "the kubelet is ready")
	},
	"creation timeout needs no grant": func(s *story) {
		s.answering(machine.Grant{Detail: "machines in replacement: 1 of at most 1"})
		s.provider.boot = -1
		s.give()
		s.later(0, "its node never joins")
		s.wait()
	},
}

// P24: while there is a budget no machine is marked failed for its health but with
// a grant, and not after its time.
func TestP24NoVerdictWithoutAGrant(t *testing.T) {
	verdicts := 0
	rapid.Check(t, func(t *rapid.T) {
		o := anyObservation(t)
		o.Budgeted = true
		if rapid.Bool().Draw(t, "ripe") {
			makeRipe(o)
		}
		plan, err := machine.Decide(o, machine.DefaultPolicy(), epoch)
		require.NoError(t, err)
		if plan.Moves[0].On != machine.EventHealthTimeout {
			return
		}
		verdicts++
		require.NotNil(t, o.Grant)
		require.True(t, o.Grant.Allowed)
		require.True(t, o.Grant.Until.IsZero() || epoch.Before(o.Grant.Until))
	})
	assert.Positive(t, verdicts, "no machine was ever given up")
}

// makeRipe makes o one of a machine whose health timeout has passed.
func makeRipe(o *machine.Observation) {
	m := o.Machine
	m.Name, m.DeletedAt, m.Finalizers = ours, time.Time{}, []string{machine.Finalizer}
	m.Spec.Class.Name, m.Spec.NodeName, m.Spec.Config = "small", node, machine.Configuration{}
	m.Status = machine.Status{Phase: machine.PhaseUnknown, Since: epoch.Add(-time.Hour)}
	o.Frozen, o.NoCluster, o.Node = false, false, &machine.NodeAnswer{Name: node, Read: readAt(epoch)}
}

// Without a budget nothing is asked for, and nothing is held back.
func TestNoBudgetNoQuestion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anyObservation(t)
		o.Budgeted = false
		if rapid.Bool().Draw(t, "ripe") {
			makeRipe(o)
		}
		plan, err := machine.Decide(o, machine.DefaultPolicy(), epoch)
		require.NoError(t, err)
		require.NotEqual(t, machine.AskGrant{}, plan.Effect)
		o.Grant = nil
		same, err := machine.Decide(o, machine.DefaultPolicy(), epoch)
		require.NoError(t, err)
		require.Equal(t, plan, same)
	})
}

// What does not ripen from health is not held back: only the verdict asks.
func TestGrantIsAskedOncePerVerdict(t *testing.T) {
	w := newWorld(t)
	w.running()
	asked := 0
	w.budget = func(*machine.Machine) *machine.Grant {
		asked++
		return &machine.Grant{Allowed: asked > 2, Detail: "no"}
	}
	s := &shell{w: w}
	w.cluster.ready(node, object.False)
	w.passes(s)
	assert.Zero(t, asked, "asked before the time is up")
	_, then := w.until(w.store.live().Status.Since.Add(w.policy.HealthTimeout + time.Second))
	assert.Equal(t, machine.PhaseUnknown, then)
	assert.Equal(t, 1, asked)
	w.now = w.now.Add(time.Minute)
	w.passes(s)
	w.now = w.now.Add(time.Minute)
	w.passes(s)
	assert.Equal(t, 3, asked)
	assert.Equal(t, machine.PhaseFailed, w.store.live().Status.Phase)
}
