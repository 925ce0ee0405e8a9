package machine_test

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
)

// tokenModel makes bootstrap tokens. A cluster lets a VM join that was made with
// the token its machine has, and while this lasts.
type tokenModel struct {
	w       *world
	use     machine.TokenUse
	of      map[string]bootToken // by the machine's UID
	made    int
	ensured int // calls that were answered
	removed int
	left    bool // a removal has failed
	faults  func(machine.Effect) fault
	handed  int // the token of the pass at hand; 0: none
}

type bootToken struct {
	value int
	until time.Time
}

// tokens has the world's user data ask for tokens, which are made.
func (w *world) needTokens() *tokenModel {
	w.tokens = &tokenModel{w: w, use: machine.TokenNeeded, of: map[string]bootToken{}}
	return w.tokens
}

// tokenUse is what caches show of the user data.
func (w *world) tokenUse() machine.TokenUse {
	if w.tokens == nil {
		return machine.TokenUnused
	}
	w.tokens.handed = 0 // a new pass
	return w.tokens.use
}

// call carries out an effect on a machine's token.
func (m *tokenModel) call(o *machine.Observation, effect machine.Effect) {
	var f fault
	if m.faults != nil {
		f = m.faults(effect)
	}
	answer := &machine.Outcome{}
	if f.code != codes.OK {
		answer = pointer(failed(f.code))
	}
	happens := f.code == codes.OK || f.done
	switch e := effect.(type) {
	case machine.EnsureToken:
		require.Equal(m.w.t, e.Until, e.Until.Truncate(time.Second))
		require.True(m.w.t, e.Until.After(m.w.now), "a token that is over")
		require.True(m.w.t, o.Fenced, "P13: a token that this pass's write did not announce: its reader may be stale")
		if o.TokenEnsured = answer; happens {
			m.ensure(o.Machine.UID, e.Until)
		}
		if f.code != codes.OK {
			m.handed = 0
		}
	case machine.RenewToken:
		require.True(m.w.t, e.Until.After(m.w.now), "a token that is over")
		o.TokenEnsured = answer
		if _, exists := m.of[o.Machine.UID]; happens && exists {
			m.ensure(o.Machine.UID, e.Until)
		} else if happens {
			answer.Code = codes.NotFound
		}
	case machine.RemoveToken:
		if o.TokenRemoved = answer; happens {
			delete(m.of, o.Machine.UID)
			m.removed++
		}
		m.left = m.left || !happens
	}
}

func (m *tokenModel) ensure(uid string, until time.Time) {
	m.ensured++
	has, ok := m.of[uid]
	if !ok {
		m.made++
		has.value = m.made
	}
	if until.After(has.until) {
		has.until = until
	}
	m.of[uid] = has
	m.handed = has.value
}

// handOut holds a call that hands out the user data to having a token in it, and
// returns that; 0: none is needed.
func (m *tokenModel) handOut(o *machine.Observation) int {
	if m == nil || m.use == machine.TokenUnused {
		return 0
	}
	require.Equal(m.w.t, machine.TokenNeeded, m.use, "a VM with a placeholder")
	require.NotZero(m.w.t, m.handed, "a VM with a placeholder")
	require.Equal(m.w.t, m.handed, m.of[o.Machine.UID].value)
	return m.handed
}

// admits reports whether a VM may join; if its token is over, it tries again
// later, for as long as it is waited for.
func (m *tokenModel) admits(v *vm) bool {
	if m == nil || m.use == machine.TokenUnused {
		return true
	}
	has, ok := m.of["uid-"+v.name]
	if !ok || has.value != v.token {
		v.boots = false
		return false
	}
	if m.w.now.After(has.until) {
		v.bootAt = m.w.now.Add(time.Minute)
		waiting := m.w.store.live()
		v.boots = waiting != nil && waiting.Status.Phase == machine.PhasePending
		return false
	}
	return true
}
