package machine_test

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
)

func init() {
	maps.Copy(creationStories, tokenStories)
	maps.Copy(creationStories, tokenTroubles)
	maps.Copy(scenarios, tokenScenarios)
}

// on is a fault of effects of one type.
func on[E machine.Effect](f fault) func(machine.Effect) fault {
	return func(e machine.Effect) fault {
		if _, is := e.(E); is {
			return f
		}
		return fault{}
	}
}

var tokenStories = map[string]func(*story){
	"token": func(s *story) {
		s.needTokens()
		s.give()
		s.run()
		s.later(time.Minute, "the node registers with its token")
		s.later(time.Hour, "nothing has changed")
		s.store.remove()
		s.later(0, "somebody deletes the machine")
	},
	"token that nobody makes": func(s *story) {
		s.needTokens().use = machine.TokenUnavailable
		s.give()
		s.run()
		s.wait()
		s.tokens.use, s.secret = machine.TokenUnused, "v2"
		s.later(time.Minute, "the user data is corrected")
	},
	"token that nobody makes and a deletion": func(s *story) {
		s.needTokens().use = machine.TokenUnavailable
		s.give()
		s.run()
		s.tokens.use = machine.TokenNeeded
		s.store.remove()
		s.later(time.Minute, "somebody deletes the machine: nobody was called for it")
	},
	"token that cannot be made at first": func(s *story) {
		s.needTokens().faults = on[machine.EnsureToken](fault{code: codes.Unavailable})
		s.give()
		s.run()
		s.tokens.faults = nil
		s.say("tokens can be made again")
		s.wait()
	},
	"token that cannot be deleted": func(s *story) {
		s.needTokens().faults = on[machine.RemoveToken](fault{code: codes.PermissionDenied})
		s.give()
		s.run()
		s.later(time.Minute, "the node registers")
		s.later(time.Hour, "nothing has changed")
		s.store.remove()
		s.later(0, "somebody deletes the machine")
	},
	"token of a machine that does not join": func(s *story) {
		s.needTokens()
		s.provider.boot = -1
		s.give()
		s.run()
		s.wait()
		s.store.remove()
		s.later(time.Minute, "its set replaces it")
	},
	"token of a machine deleted before": func(s *story) {
		s.needTokens()
		s.give()
		s.store.remove()
		s.run()
	},
	"token after a crash": func(s *story) {
		s.needTokens()
		s.provider.hasInit = true
		s.give()
		s.killAt, s.after = 4, true // at the create
		_, _, err := s.shell.reconcile()
		require.ErrorIs(s.t, err, errKilled)
		s.restart()
		s.run()
		s.later(time.Minute, "the node registers")
	},
	"token prolonged after a freeze": func(s *story) {
		s.needTokens()
		s.provider.boot = 30 * time.Minute
		s.give()
		s.run()
		s.pass(10 * time.Minute)
		s.thawed()
		s.tokens.faults = on[machine.RenewToken](fault{code: codes.Unavailable})
		s.later(0, "after a freeze, its clock starts again; the cluster is not quite there yet")
		s.tokens.faults = nil
		s.wait()
		s.later(19*time.Minute+55*time.Second, "it registers after the time that its token was first made for")
	},
}

var tokenTroubles = map[string]func(*story){
	"token not there to be prolonged": func(s *story) {
		s.needTokens()
		s.provider.boot = 30 * time.Minute
		s.give()
		s.run()
		clear(s.tokens.of)
		s.pass(10 * time.Minute)
		s.thawed()
		s.later(0, "after a freeze, in which somebody has deleted the token: no other would be of use to the VM")
	},
	"token that was deleted already": func(s *story) {
		s.needTokens().faults = on[machine.RemoveToken](fault{code: codes.NotFound})
		s.give()
		s.run()
		s.later(time.Minute, "the node registers")
	},
	"token not found before initialization": func(s *story) {
		s.needTokens()
		s.provider.hasInit = true
		s.give()
		s.killAt, s.after = 4, true // at the create
		_, _, err := s.shell.reconcile()
		require.ErrorIs(s.t, err, errKilled)
		s.restart()
		s.tokens.faults = on[machine.RenewToken](fault{code: codes.Unavailable})
		s.run()
		s.tokens.faults = nil
		clear(s.tokens.of)
		s.say("somebody deletes the token")
		s.wait()
	},
	"token that would be over at once": func(s *story) {
		s.needTokens()
		s.provider.hasInit, s.provider.boot = true, -1
		s.give()
		s.failing(codes.InitializeMachine, codes.Unavailable, false)
		s.run()
		s.restart()
		s.failing(codes.InitializeMachine, codes.OK, false)
		s.edit(func(m *machine.Machine) { m.Spec.Config.CreationTimeout = time.Second })
		s.later(time.Minute, "its time is up")
	},
}

// thawed restarts the machine's clock, as the end of a freeze does.
func (w *world) thawed() {
	m := w.store.live().Clone()
	m.Status.ClockFrom = w.now.Truncate(time.Second)
	w.store.force(m)
}

var tokenScenarios = map[string]func(*world){
	"creation with a token": func(w *world) {
		w.needTokens()
		w.give()
	},
	"creation with a token and initialization": func(w *world) {
		w.needTokens()
		w.provider.hasInit = true
		w.give()
	},
	"deletion of a machine that waits with a token": func(w *world) {
		w.needTokens()
		w.give()
		w.passes(&shell{w: w})
		w.store.remove()
	},
	"deletion of a machine that had a token": func(w *world) {
		w.needTokens()
		w.running()
		w.store.remove()
	},
}

// What tokens cost in calls: two for a creation, one for a deletion, none for
// anything else.
func TestTokensCostThreeCalls(t *testing.T) {
	life := func(tokens bool) (calls []int) {
		w := newWorld(t)
		if tokens {
			w.needTokens()
		}
		step := func(do func()) {
			w.calls = 0
			do()
			(&shell{w: w, noInitialize: true}).settle(bound)
			calls = append(calls, w.calls)
		}
		step(func() { w.give() })
		require.Equal(t, machine.PhaseRunning, w.store.live().Status.Phase)
		step(func() { w.cluster.ready(node, "False"); w.patient() })
		step(func() { w.cluster.ready(node, "True") })
		step(w.store.remove)
		require.Nil(t, w.store.live())
		return calls
	}
	with, without := life(true), life(false)
	assert.Equal(t, []int{without[0] + 2, without[1], without[2], without[3] + 1}, with)
}

// A token lasts for as long as its machine may take, however that is said.
func TestTokensLastUntilTheDeadline(t *testing.T) {
	w := newWorld(t)
	w.needTokens()
	w.provider.boot = -1
	w.give(func(m *machine.Machine) { m.Spec.Config.CreationTimeout = 3 * time.Hour })
	s := &shell{w: w}
	w.passes(s)
	has := w.tokens.of["uid-"+ours]
	deadline := w.store.live().CreatedAt.Add(3*time.Hour + time.Second)
	assert.Equal(t, deadline, has.until)
	before := w.tokens.ensured
	w.pass(2 * time.Hour)
	w.passes(s)
	assert.Equal(t, before, w.tokens.ensured, "nothing was prolonged")
}

// In a storm no VM is made without the token of its machine: the model fails on
// the spot. When it is over, no token is left of a machine that has joined or
// gone, unless its deletion has failed, and no machine of which no create was
// issued has had one.
func TestTokensAfterAStorm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t)
		tokens := c.needTokens()
		tokens.faults = func(machine.Effect) fault {
			if !c.stormy {
				return fault{}
			}
			return rapid.SampledFrom([]fault{{}, {}, {}, {codes.Unavailable, false}, {codes.DeadlineExceeded, true}, {codes.Unknown, false}}).Draw(t, "token fault")
		}
		c.storm(25)
		c.shell.settle(60)
		if m := c.store.live(); m != nil {
			if m.Status.Phase == machine.PhaseRunning && !tokens.left {
				require.Empty(t, tokens.of, "a token outlives the joining")
			}
			quiet(c.world)
			c.store.remove()
			c.shell.settle(20)
			tokens.left = false
		}
		require.Nil(t, c.store.live())
		require.LessOrEqual(t, len(tokens.of), 1)
		if !tokens.left {
			require.Empty(t, tokens.of, "a token outlives its machine")
		}
	})
}
