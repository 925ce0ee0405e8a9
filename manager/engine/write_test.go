package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// wired are states of lamps: all moves are legal, except those to errWire.
type wired struct {
	err  error
	seen any
}

var errWire = errors.New("the wire is cut")

func (w *wired) Fire(_ context.Context, _, _ *lamp, seen any, _ ...decision.Move) error {
	w.seen = seen
	return w.err
}

// TestWrite: moves are fired before the write, and reported after it, in order, if the write is stored. A hook
// that panics changes nothing.
// Invariants: P44
func TestWrite(t *testing.T) {
	lit, dimmed := decision.Move{Table: "lamp", To: "lit"}, decision.Move{Table: "lamp", From: "lit", To: "dim"}
	why := decision.Why{Reason: reasonSwitch, Detail: "on"}
	for name, c := range map[string]struct {
		stateless bool
		prepare   func(w *engine.Write[*lamp], states *wired)
		err       error
		reported  []decision.Move
	}{
		"stored":              {reported: []decision.Move{lit, dimmed}},
		"refused":             {prepare: func(_ *engine.Write[*lamp], s *wired) { s.err = errWire }, err: errWire},
		"conflict":            {prepare: func(w *engine.Write[*lamp], _ *wired) { w.Before.Version, w.After.Version = "7", "7" }, err: store.ErrConflict},
		"of another version":  {prepare: func(w *engine.Write[*lamp], _ *wired) { w.Before.Version = "7" }, err: engine.ErrUnexplained},
		"of another object":   {prepare: func(w *engine.Write[*lamp], _ *wired) { w.Before.UID = "7" }, err: engine.ErrUnexplained},
		"no states":           {stateless: true, err: engine.ErrUnexplained},
		"no states, no moves": {stateless: true, prepare: func(w *engine.Write[*lamp], _ *wired) { w.Moves = make([]decision.Move, 2) }},
	} {
		t.Run(name, func(t *testing.T) {
			var reported []decision.Move
			e := engine.New(engine.Options{Hooks: engine.Hooks{
				Transition: func(kind string, at object.Key, move decision.Move, because decision.Why) {
					require.Equal(t, "lamp", kind)
					require.Equal(t, key, at)
					require.Equal(t, why, because)
					reported = append(reported, move)
					panic("a hook")
				},
			}})
			stored, states := store.NewMemory[*lamp](nil, nil), &wired{}
			before, err := stored.Create(t.Context(), &lamp{Meta: object.Meta{Key: key}})
			require.NoError(t, err)
			after := before.Clone()
			after.Lit = true
			w := &engine.Write[*lamp]{
				Before: before.Clone(), After: after, Status: true, Moves: []decision.Move{lit, {}, dimmed}, Why: why, Seen: "dusk",
			}
			if c.prepare != nil {
				c.prepare(w, states)
			}
			lamps := engine.NewObjects(e, "lamp", stored, engine.States[*lamp](states))
			if c.stateless {
				lamps = engine.NewObjects[*lamp](e, "lamp", stored, nil)
			}
			made, err := lamps.Write(t.Context(), w)
			require.ErrorIs(t, err, c.err)
			require.Equal(t, c.reported, reported)
			now, missing := lamps.Live().Get(t.Context(), key)
			require.NoError(t, missing)
			require.Equal(t, c.err == nil, now.Lit)
			if c.err == nil {
				require.Equal(t, now, made)
			}
			if name == "stored" {
				require.Equal(t, "dusk", states.seen)
			}
		})
	}
	require.Nil(t, engine.NewObjects[*lamp](engine.New(engine.Options{}), "lamp", nil, nil))
}

// TestOrdersAreAboutWhatWasRead: an order to change an object that the pass has not read is not carried out.
func TestOrdersAreAboutWhatWasRead(t *testing.T) {
	e := engine.New(engine.Options{})
	stored := store.NewMemory[*lamp](nil, nil)
	b := &engine.Batch[*lamp]{Pass: &engine.Pass{Engine: e}, Objects: engine.NewObjects[*lamp](e, "lamp", stored, nil)}
	made, err := stored.Create(t.Context(), &lamp{Meta: object.Meta{Key: key}})
	require.NoError(t, err)
	change := made.Clone()
	change.On = true
	_, err = b.Update(nil)(t.Context(), change)
	require.Error(t, err)
	after, err := b.Update([]*lamp{made})(t.Context(), change)
	require.NoError(t, err)
	require.True(t, after.On)
	require.NoError(t, stored.Delete(t.Context(), key, ""))
	gone, err := b.Update([]*lamp{after})(t.Context(), after.Clone())
	require.NoError(t, err)
	require.Nil(t, gone)
	_, err = b.Change([]*lamp{after})(t.Context(), after.Clone())
	require.ErrorIs(t, err, store.ErrNotFound)
}
