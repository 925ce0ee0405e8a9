package backoff_test

import (
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/backoff"
	"github.com/millwright-go/millwright/test/safetytest"
)

// site is a class of machines that are to be created, and a provider with set answers.
type site struct {
	safetytest.Journal
	policy  *safety.Policy
	timeout time.Duration
	class   *machine.Class
	inputs  machine.Inputs
	answer  func() codes.Code

	pace  backoff.State
	calls int
}

func newSite(class string) *site {
	s := &site{Journal: safetytest.Journal{Now: safetytest.Epoch}, policy: safety.DefaultPolicy(), timeout: 20 * time.Minute}
	s.class = &machine.Class{Meta: object.Meta{Key: object.Key{Name: class}}, NodeTemplate: &machine.NodeShape{Zone: "a"}}
	s.inputs = machine.Inputs{Class: 1, Secret: "v1"}
	s.refuse(codes.OK)
	return s
}

// refuse makes the provider answer creates with the code from now on.
func (s *site) refuse(code codes.Code) { s.answer = func() codes.Code { return code } }

func named(name string) object.Key { return object.Key{Name: name} }

// state returns a word for the state of the class.
func (s *site) state() string {
	hold, trying := s.pace.Slowed(s.class, s.inputs, s.Now)
	switch {
	case hold == nil:
		return "full speed"
	case trying:
		return "recovering"
	}
	return "slowed, until " + s.Since(hold.Until)
}

// ask asks for a machine's turn to create.
func (s *site) ask(name string) (turn machine.CreatePermit) {
	s.pace, turn = s.pace.Ask(named(name), s.inputs, s.policy, s.Now)
	answer := "go ahead"
	if !turn.Given {
		answer = "ask again at " + s.Since(turn.At)
	}
	s.Printf("%-26s %s asks: %s", s.state(), name, answer)
	return turn
}

// end lets the provider answer a create.
func (s *site) end(name string) codes.Code {
	code := s.answer()
	s.calls++
	s.pace = s.pace.Answer(named(name), s.inputs, code, s.policy, s.timeout, s.Now)
	s.Printf("%-26s create of %s: %s", s.state(), name, code.Contract())
	return code
}

// try asks for a turn and creates the machine if the turn is given.
func (s *site) try(name string) (machine.CreatePermit, codes.Code) {
	turn := s.ask(name)
	if !turn.Given {
		return turn, codes.Unknown
	}
	return turn, s.end(name)
}

// later lets time pass.
func (s *site) later(d time.Duration) { s.Now = s.Now.Add(d) }

// wait lets time pass until the next machine may be tried.
func (s *site) wait() {
	hold, _ := s.pace.Slowed(s.class, s.inputs, s.Now)
	s.Now = hold.Until
}

var stories = map[string]func(*site){
	"pace of a quota that is used up and raised": func(s *site) {
		s.refuse(codes.ResourceExhausted)
		s.Say("the quota is used up")
		s.try("m-1")
		s.try("m-2")
		for range 7 {
			s.wait()
			s.try("m-2")
		}
		s.refuse(codes.OK)
		s.wait()
		s.Say("the quota was raised")
		for i := range 6 {
			s.try(fmt.Sprintf("m-%d", 3+i))
		}
	},
	"pace of a quota that has room for two more": func(s *site) {
		s.refuse(codes.ResourceExhausted)
		s.try("m-1")
		s.wait()
		s.try("m-1")
		s.wait()
		s.Say("two machines are gone")
		s.refuse(codes.OK)
		s.try("m-1")
		s.try("m-2")
		s.refuse(codes.ResourceExhausted)
		s.try("m-3")
		s.try("m-4")
	},
	"pace of several at a time": func(s *site) {
		s.refuse(codes.ResourceExhausted)
		s.try("m-1")
		s.wait()
		s.refuse(codes.OK)
		s.ask("m-1")
		s.ask("m-2")
		s.later(5 * time.Second)
		s.end("m-1")
		s.Say("two at a time")
		s.ask("m-2")
		s.ask("m-3")
		s.ask("m-4")
		s.end("m-2")
		s.Say("four at a time")
		s.ask("m-4")
		s.ask("m-5")
		s.ask("m-6")
		s.ask("m-7")
	},
	"pace of creates that were under way": func(s *site) {
		s.ask("m-1")
		s.ask("m-2")
		s.ask("m-3")
		s.refuse(codes.ResourceExhausted)
		s.end("m-1")
		s.later(time.Second)
		s.end("m-2")
		s.refuse(codes.OK)
		s.end("m-3")
		s.Say("neither a refusal nor a success of before counts")
		s.ask("m-4")
	},
	"pace of two that were tried at a time": func(s *site) {
		s.refuse(codes.ResourceExhausted)
		s.try("m-1")
		s.wait()
		s.refuse(codes.OK)
		s.try("m-1")
		s.ask("m-2")
		s.ask("m-3")
		s.refuse(codes.ResourceExhausted)
		s.end("m-2")
		s.end("m-3")
		s.Say("both are refused, which counts once")
	},
	"pace of a class that is corrected": func(s *site) {
		s.refuse(codes.InvalidArgument)
		s.try("m-1")
		s.try("m-2")
		s.inputs.Class++
		s.refuse(codes.OK)
		s.Say("the class is changed")
		s.try("m-2")
	},
	"pace of a secret that is replaced by a worse one": func(s *site) {
		s.refuse(codes.Unauthenticated)
		s.try("m-1")
		s.wait()
		s.try("m-1")
		s.inputs.Secret = "v2"
		s.refuse(codes.PermissionDenied)
		s.Say("the secret is changed")
		s.try("m-2")
	},
	"pace of a provider that is away as well": func(s *site) {
		s.refuse(codes.Unavailable)
		s.try("m-1")
		s.Say("that is about no class")
		s.refuse(codes.ResourceExhausted)
		s.try("m-1")
		s.wait()
		s.try("m-1")
		s.refuse(codes.Unavailable)
		s.wait()
		s.try("m-1")
		s.Say("the same wait again, not a longer one")
	},
	"pace of a turn that comes to nothing": func(s *site) {
		s.refuse(codes.ResourceExhausted)
		s.try("m-1")
		s.wait()
		s.ask("m-1")
		s.ask("m-1")
		s.ask("m-2")
		s.pace = s.pace.Leave(named("m-1"))
		s.Say("m-1's pass ends without a create")
		s.ask("m-2")
	},
	"pace of a short creation timeout": func(s *site) {
		s.timeout = 3 * time.Minute
		s.refuse(codes.ResourceExhausted)
		s.try("m-1")
		for range 4 {
			s.wait()
			s.try("m-1")
		}
	},
	"pace of a refusal long ago": func(s *site) {
		s.refuse(codes.ResourceExhausted)
		s.try("m-1")
		s.later(6*time.Hour + 2*time.Minute)
		s.ask("m-2")
	},
}

// TestStories compares what happens to a class with the files in testdata.
func TestStories(t *testing.T) {
	for name, run := range stories {
		t.Run(name, func(t *testing.T) {
			s := newSite("small")
			run(s)
			safetytest.Compare(t, name, &s.Journal)
		})
	}
}

// TestSlowsOnlyByCodesOfTheClass: only codes that ask for another quota, class or secret slow a class.
func TestSlowsOnlyByCodesOfTheClass(t *testing.T) {
	var slow []string
	for code := range codes.All() {
		if backoff.Slows(code) {
			slow = append(slow, code.Contract())
		}
	}
	assert.Equal(t, []string{"INVALID_ARGUMENT", "NOT_FOUND", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "OUT_OF_RANGE", "UNAUTHENTICATED"}, slow)
	assert.False(t, backoff.Slows(codes.Code(99)))
}

// waiting is a site with the machines that are not created yet.
type waiting struct {
	*site
	asksAt map[string]time.Time // when each machine asks next
}

// askAllDue lets all machines ask whose time has come, in any order.
func (c *waiting) askAllDue(t *rapid.T) {
	for name, at := range c.asksAt {
		if at.After(c.Now) {
			continue
		}
		turn, code := c.try(name)
		switch {
		case !turn.Given:
			require.True(t, turn.At.After(c.Now), "P21: the machine would ask again at once")
			c.asksAt[name] = turn.At.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "jitter")) * time.Second)
		case code == codes.OK:
			delete(c.asksAt, name)
		default:
			c.asksAt[name] = c.Now.Add(c.policy.ClassBackoffRetry)
		}
	}
}

// TestOneClassDoesNotSlowAnother has a poor class, whose quota is used up for hours, and a rich class without
// trouble. Machines of the rich class are created when they first ask. Creates of the poor class do not grow with the
// number of machines: they grow with the logarithm of the time until the longest wait is reached, and then come once
// in each longest wait. After the quota is raised, all are created within the longest wait and a little more.
// Invariants: P21
func TestOneClassDoesNotSlowAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "machines")
		poor, rich := &waiting{site: newSite("poor"), asksAt: map[string]time.Time{}}, &waiting{site: newSite("rich"), asksAt: map[string]time.Time{}}
		for i := range n {
			poor.asksAt[fmt.Sprint(i)], rich.asksAt[fmt.Sprint(i)] = safetytest.Epoch, safetytest.Epoch
		}
		poor.refuse(codes.ResourceExhausted)
		rich.askAllDue(t)
		require.Empty(t, rich.asksAt)
		require.Equal(t, n, rich.calls)

		hours := time.Duration(rapid.IntRange(1, 24).Draw(t, "hours")) * time.Hour
		for poor.Now.Before(safetytest.Epoch.Add(hours)) {
			poor.askAllDue(t)
			poor.later(10 * time.Second)
		}
		most := 1 + math.Log2(float64(poor.policy.ClassBackoffMax/poor.policy.ClassBackoffBase)) + 1 + float64(hours/poor.policy.ClassBackoffMax)
		require.LessOrEqual(t, float64(poor.calls), most, "%d creates in %s", poor.calls, hours)
		require.GreaterOrEqual(t, float64(poor.calls), float64(hours/poor.policy.ClassBackoffMax), "the poor class is tried once in each longest wait")

		poor.refuse(codes.OK)
		for end := poor.Now.Add(poor.policy.ClassBackoffMax + time.Minute + time.Duration(n)*poor.policy.ClassBackoffRetry); poor.Now.Before(end); {
			poor.askAllDue(t)
			poor.later(10 * time.Second)
		}
		require.Empty(t, poor.asksAt)
	})
}

// TestTurnsAreLimited: while a class is slowed, at most one create of it is under way. While it recovers, each
// success doubles the number of creates that may be under way. That holds in any order of questions and answers, and
// if passes end without an answer. An answer never makes a wait longer than the policy's longest.
func TestTurnsAreLimited(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSite("small")
		s.refuse(codes.ResourceExhausted)
		s.try("first")
		s.answer = func() codes.Code {
			return rapid.SampledFrom([]codes.Code{codes.OK, codes.OK, codes.ResourceExhausted, codes.Unavailable, codes.Internal}).Draw(t, "answer")
		}
		turns, room := map[string]bool{}, 1
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			name := fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "machine"))
			hold, trying := s.pace.Slowed(s.class, s.inputs, s.Now)
			if hold == nil {
				return // full speed: no turns are counted
			}
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				s.later(time.Duration(rapid.IntRange(0, 300).Draw(t, "s")) * time.Second)
			case 1:
				if turns[name] {
					s.pace = s.pace.Leave(named(name))
					delete(turns, name)
				}
			case 2:
				if turns[name] {
					delete(turns, name)
					code := s.end(name)
					if _, on := s.pace.Slowed(s.class, s.inputs, s.Now); !on {
						room = 1
					} else if code == codes.OK {
						room *= 2
					}
				}
			case 3:
				if s.ask(name).Given && !turns[name] {
					turns[name] = true
					require.False(t, s.Now.Before(hold.Until), "a turn was given before the wait was over")
					require.LessOrEqual(t, len(turns), room, "too many creates at a time")
					if !trying {
						require.Len(t, turns, 1, "a slowed class has one create at a time")
					}
				}
			}
			if after, _ := s.pace.Slowed(s.class, s.inputs, s.Now); after != nil {
				require.LessOrEqual(t, after.Until.Sub(s.Now), s.policy.ClassBackoffMax+time.Second)
			}
		}
	})
}

// TestStatesAreValues: a State is a value (P27). Methods do not change earlier values.
// Invariants: P27
func TestStatesAreValues(t *testing.T) {
	s := newSite("small")
	s.refuse(codes.ResourceExhausted)
	s.try("m-1")
	s.wait()
	before := s.pace
	text := fmt.Sprintf("%+v", before)
	first, turn := before.Ask(named("m-1"), s.inputs, s.policy, s.Now)
	require.True(t, turn.Given)
	_, again := before.Ask(named("m-2"), s.inputs, s.policy, s.Now)
	require.True(t, again.Given)
	_ = first.Answer(named("m-1"), s.inputs, codes.OK, s.policy, 0, s.Now)
	_ = first.Leave(named("m-1"))
	_, other := first.Ask(named("m-2"), s.inputs, s.policy, s.Now)
	require.False(t, other.Given)
	require.Equal(t, text, fmt.Sprintf("%+v", before))

	hold, _ := backoff.State{}.Slowed(s.class, s.inputs, s.Now)
	require.Nil(t, hold)
	hold, _ = before.Slowed(nil, s.inputs, s.Now)
	require.Nil(t, hold)
	hold, _ = before.Slowed(&machine.Class{}, s.inputs, s.Now)
	require.Empty(t, hold.Zone)
	require.True(t, backoff.State{}.Idle())
	require.False(t, before.Idle())

	off := safety.DefaultPolicy()
	off.ClassBackoffBase = object.Off
	require.NoError(t, off.Validate())
	require.True(t, backoff.State{}.Answer(named("m-1"), s.inputs, codes.ResourceExhausted, off, 0, s.Now).Idle())
}

// TestRecoveryDetails: a refusal during a recovery begins again with the first wait, and so does another error. A
// success with a changed class ends the slowing. A clock that was set back does not slow a class. Copies do not share
// their turns.
func TestRecoveryDetails(t *testing.T) {
	s := newSite("small")
	s.refuse(codes.ResourceExhausted)
	s.try("m-1")
	for range 3 {
		s.wait()
		s.try("m-1")
	}
	slowed := s.pace
	s.wait()
	s.refuse(codes.OK)
	s.try("m-1")
	recovering := s.pace
	s.refuse(codes.ResourceExhausted)
	s.later(time.Minute)
	s.try("m-2")
	hold, trying := s.pace.Slowed(s.class, s.inputs, s.Now)
	require.False(t, trying)
	require.Equal(t, s.Now.Truncate(time.Second), hold.Since)
	require.Equal(t, s.Now.Truncate(time.Second).Add(s.policy.ClassBackoffBase+time.Second), hold.Until)

	s.pace = recovering
	s.refuse(codes.Unavailable)
	s.try("m-2")
	hold, _ = s.pace.Slowed(s.class, s.inputs, s.Now)
	require.Equal(t, s.Now.Truncate(time.Second).Add(s.policy.ClassBackoffBase+time.Second), hold.Until)

	s.pace, s.inputs.Class = slowed, 2
	s.refuse(codes.OK)
	s.try("m-2")
	require.True(t, s.pace.Idle())

	s.pace, s.inputs.Class = slowed, 1
	hold, _ = s.pace.Slowed(s.class, s.inputs, safetytest.Epoch.Add(-time.Minute))
	require.Nil(t, hold)

	// Five turns grow a slice beyond its length, so that copies could share it.
	var all []backoff.State
	s.pace = recovering
	s.refuse(codes.OK)
	for _, name := range []string{"a", "b"} {
		s.try(name)
	}
	for _, name := range []string{"c", "d", "e", "f", "g", "h"} {
		all = append(all, s.pace)
		s.ask(name)
	}
	for i, before := range all {
		text := fmt.Sprintf("%+v", before)
		left := before.Leave(named("c"))
		one, _ := left.Ask(named("x"), s.inputs, s.policy, s.Now)
		unchanged := fmt.Sprintf("%+v", one)
		_, _ = left.Ask(named("y"), s.inputs, s.policy, s.Now)
		require.Equal(t, text, fmt.Sprintf("%+v", before), i)
		require.Equal(t, unchanged, fmt.Sprintf("%+v", one), i)
	}
}

// TestWait checks how long it takes until the next machine may be tried.
func TestWait(t *testing.T) {
	now := time.Unix(1_800_000_000, 0).UTC()
	p := safety.DefaultPolicy()
	require.Zero(t, backoff.State{}.Wait(now))
	slowed := backoff.State{}.Answer(object.Key{Name: "m"}, machine.Inputs{}, codes.ResourceExhausted, p, 0, now)
	require.Equal(t, p.ClassBackoffBase+time.Second, slowed.Wait(now))
	require.Zero(t, slowed.Wait(now.Add(time.Hour)))
}

func TestMain(m *testing.M) { os.Exit(safetytest.Run(m)) }
