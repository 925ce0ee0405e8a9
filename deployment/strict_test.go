package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment"
)

func init() { stories["strict-quota"] = strictQuota }

func strictQuota(t *testing.T) *story {
	s := settled(t, web(2))
	s.strict, s.shell.p.StrictQuota = true, true
	s.say("another class is wanted, and all machines take their time to go")
	s.edit(class("large"))
	s.decide()
	s.obeyAll()
	for _, m := range s.machines {
		s.live(m)
	}
	s.decide()
	s.obeyAll()
	s.pass(time.Minute)
	s.decide()
	s.say("the first is gone")
	s.liveAll()
	s.decide()
	return s
}

// TestP8StrictQuota: under the policy all machines, including terminating ones and those about to
// be created, are never more than R + S, in any order of events in a rollout. The rollout
// converges.
func TestP8StrictQuota(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, false, true)
		c.strict = true
		hire := func() { c.hire(); c.shell.p.StrictQuota = true }
		hire()
		require.GreaterOrEqual(t, c.rest(), 0)
		hire()
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			c.move()
			ceiling, _ := limitsOf(&c.deployment.Spec)
			all := 0
			for _, s := range c.setsOf(c.deployment.UID) {
				all += len(c.machinesOf(s.UID)) + len(c.reserved[s.UID])
			}
			require.LessOrEqual(t, all, ceiling, "P8: machines, with those being deleted: %s", c)
		}
		c.observe = func(_ *deployment.Observation, p deployment.Plan) {
			if !p.At.IsZero() {
				require.NotEmpty(t, p.Why.String())
			}
		}
		require.GreaterOrEqual(t, c.rest(), 0, "P3: never converges: %s", c)
		requireComplete(t, c.world)
	})
}
