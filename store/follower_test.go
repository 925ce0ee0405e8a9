package store_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/storetest"
)

type (
	follower = store.Follower[*storetest.Object, struct{}]
	state    = store.State[*storetest.Object, struct{}]
)

// server is a store with a history, which a follower sees late.
type server struct {
	t       *rapid.T
	order   uint64
	uids    int
	now     map[object.Key]state
	history []state
	follows *follower
	ordered bool // the end of an object by an own write has an order
	shown   int  // entries of history
	highest map[object.Key]uint64
	flights []*flight
}

// flight is an own write whose answer is not known yet.
type flight struct {
	answer state
	done   func()
}

// change makes a write: a new object, another version of the one there, or its end.
func (s *server) change(k object.Key, end bool) state {
	s.order++
	next := state{Key: k, Order: s.order}
	was, found := s.now[k]
	switch {
	case end && !found:
		return was
	case end:
		next.UID = was.UID
		delete(s.now, k)
	default:
		if next.UID = was.UID; !found {
			s.uids++
			next.UID = "uid-" + strconv.Itoa(s.uids)
		}
		next.Object = &storetest.Object{Meta: object.Meta{Key: k, UID: next.UID, Version: strconv.FormatUint(s.order, 10)}}
		s.now[k] = next
	}
	s.history = append(s.history, next)
	return next
}

// shows lets the watch show its next change.
func (s *server) shows() {
	if s.shown < len(s.history) {
		s.follows.Show(s.history[s.shown])
		s.shown++
	}
}

// list shows everything at once, as it is now.
func (s *server) list() {
	var all []state
	for _, st := range s.now {
		all = append(all, st)
	}
	s.follows.Replace(all, s.order)
	s.shown = len(s.history)
}

// listOld shows everything as it was when the watch had come as far as it has.
func (s *server) listOld() {
	was, at := map[object.Key]state{}, uint64(0)
	for _, st := range s.history[:s.shown] {
		if at = st.Order; st.Object == nil {
			delete(was, st.Key)
		} else {
			was[st.Key] = st
		}
	}
	var all []state
	for _, st := range was {
		all = append(all, st)
	}
	s.follows.Replace(all, at)
}

// write begins an own write. Its answer comes later.
func (s *server) write(k object.Key, end bool) {
	done := s.follows.Writing(k)
	answer := s.change(k, end)
	if answer.Order == 0 || answer.Key != k { // there was nothing to end
		done()
		return
	}
	if answer.Object == nil && !s.ordered {
		answer.Order = 0
	}
	s.flights = append(s.flights, &flight{answer, done})
}

// answers lets the answer of one of the own writes come.
func (s *server) answers(i int) {
	f := s.flights[i]
	s.flights = append(s.flights[:i], s.flights[i+1:]...)
	s.follows.Wrote(f.answer)
	f.done()
	if f.answer.Object == nil {
		if now, ok := s.follows.State(f.answer.Key); ok && now.UID == f.answer.UID {
			s.t.Fatalf("%v is shown, although an own write has ended it", f.answer.UID)
		}
		return
	}
	s.seen(f.answer.Key, f.answer.Order)
}

// seen requires that reads show nothing older than at least, or than before.
func (s *server) seen(k object.Key, atLeast uint64) {
	s.highest[k] = max(s.highest[k], atLeast)
	now, ok := s.follows.State(k)
	got, err := s.follows.Get(context.Background(), k)
	if ok != (err == nil) || ok && got != now.Object {
		s.t.Fatalf("%v: read %v (%v), and the state is %v", k, got, err, now)
	}
	if !ok { // gone: nothing that began before may come back
		return
	}
	if now.Order < s.highest[k] {
		s.t.Fatalf("%v: order %d after %d", k, now.Order, s.highest[k])
	}
	s.highest[k] = now.Order
}

// synced reports whether the follower has a list.
func (s *server) synced() bool {
	select {
	case <-s.follows.Synced():
		return true
	default:
		return false
	}
}

// step lets something happen; if it is about one key, about k.
func (s *server) step(k object.Key) {
	end := rapid.IntRange(0, 3).Draw(s.t, "end") == 0
	happens := rapid.SampledFrom([]string{"others write", "own write", "answer", "show", "show", "list", "old list"})
	switch what := happens.Draw(s.t, "what"); {
	case what == "others write":
		s.change(k, end)
	case what == "own write":
		s.write(k, end)
	case what == "answer" && len(s.flights) > 0 && s.synced():
		s.answers(rapid.IntRange(0, len(s.flights)-1).Draw(s.t, "which"))
	case what == "show" && s.synced():
		s.shows()
	case what == "list":
		s.list()
	case what == "old list":
		s.listOld()
	}
}

// TestFollower: reads of a follower never go back, never show less than an own write that was answered, and show in the
// end what is stored. The watch may come before or after the answers, and lists in between.
func TestFollower(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &server{
			t: t, now: map[object.Key]state{}, highest: map[object.Key]uint64{}, ordered: rapid.Bool().Draw(t, "ends have an order"),
			follows: store.NewFollower[*storetest.Object, struct{}](nil),
		}
		keys := []object.Key{{Name: "a"}, {Name: "b"}}
		if rapid.Bool().Draw(t, "listed first") {
			s.list()
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			s.step(rapid.SampledFrom(keys).Draw(t, "key"))
			if s.synced() {
				for _, k := range keys {
					s.seen(k, 0)
				}
			}
		}
		if !s.synced() {
			s.list()
		}
		for len(s.flights) > 0 {
			s.answers(0)
		}
		for s.shown < len(s.history) {
			s.shows()
		}
		for _, k := range keys {
			want, exists := s.now[k]
			got, ok := s.follows.State(k)
			if ok != exists || ok && got.Object != want.Object {
				t.Fatalf("%v: in the end %v is shown, and %v stored", k, got, want)
			}
		}
	})
}

// TestFollowerForgets: after Forget a list of an older copy counts, against own writes as well, whose answers may still
// come.
func TestFollowerForgets(t *testing.T) {
	f := store.NewFollower[*storetest.Object, struct{}](nil)
	at := func(name string, order uint64) state {
		k := object.Key{Name: name}
		return state{Key: k, UID: "u-" + name, Order: order, Object: &storetest.Object{Meta: object.Meta{Key: k, UID: "u-" + name, Version: fmt.Sprint(order)}}}
	}
	f.Replace(nil, 1)
	f.Wrote(at("a", 5))
	done := f.Writing(object.Key{Name: "b"})
	f.Forget()
	f.Replace([]state{at("a", 3)}, 3)
	f.Wrote(at("b", 6)) // made before the copy was restored
	done()
	all, err := f.List(t.Context(), store.Query{})
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, "3", all[0].Version)
}

// TestFollowerWaits: nothing is read before the first list.
func TestFollowerWaits(t *testing.T) {
	f := store.NewFollower[*storetest.Object, struct{}](nil)
	ended, end := context.WithCancel(t.Context())
	end()
	_, err := f.Get(ended, object.Key{Name: "a"})
	require.ErrorIs(t, err, context.Canceled)
	listed := make(chan error, 1)
	go func() {
		_, err := f.List(t.Context(), store.Query{})
		listed <- err
	}()
	require.Empty(t, listed)
	f.Replace(nil, 0)
	require.NoError(t, <-listed)
}
