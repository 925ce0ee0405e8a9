// Package remotetest checks an Engine against the contract in package remote, and has one in memory that fails on request.
package remotetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/lead"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/remote"
	"github.com/millwright-go/millwright/store"
)

// Suite says how to make the engine under test.
type Suite struct {
	// New returns a function that opens a new, empty database, each time as another process would. What it opens is
	// closed through t.Cleanup.
	New func(t *testing.T) (open func() remote.Engine)
	// TTL is the shortest lease that the database keeps in time. Zero: lead.MinTTL.
	TTL time.Duration
	// Pass lets a time pass for leases. Nil: the suite waits for it.
	Pass func(time.Duration)
	// Patience is how long the suite waits for anything before it fails. Zero: a minute.
	Patience time.Duration
}

// Run checks every duty of an Engine and of its Lease, each in a subtest.
func Run(t *testing.T, s Suite) {
	t.Helper()
	if s.Patience == 0 {
		s.Patience = time.Minute
	}
	if s.TTL == 0 {
		s.TTL = lead.MinTTL
	}
	for _, duty := range duties {
		t.Run(duty.name, func(t *testing.T) {
			ctx, done := context.WithTimeout(t.Context(), s.Patience)
			defer done()
			duty.check(&trial{T: t, suite: s, ctx: ctx, open: s.New(t)})
		})
	}
}

// trial is one database under test.
type trial struct {
	*testing.T
	suite Suite
	ctx   context.Context //nolint:containedctx // as long as the test, like testing.T's own
	open  func() remote.Engine
}

var duties = []struct {
	name  string
	check func(*trial)
}{
	{"a record is what was written last", lastWrite},
	{"a swap fails unless the record is the one it names", conditions},
	{"versions do not come back, orders rise", versions},
	{"content is kept byte for byte", contents},
	{"names are any text", names},
	{"a list has one kind or all", lists},
	{"of several swaps of one record one is made", race},
	{"nothing is done when the context has ended", endedContext},
	{"follow shows everything, then each change", follows},
	{"follow begins again after it has ended", followsAgain},
	{"fresh waits for what peers have stored", fresh},
	{"a lease has one holder", oneHolder},
	{"a lease that is given back is free at once", released},
	{"a lease that is not renewed expires", expires},
	{"a lease that is renewed does not expire", renewed},
	{"swaps under an old token are refused", fenced},
	{"no swap of an old term lands after the next began", fencedWhileWriting},
}

func key(name string) remote.Key {
	return remote.Key{Kind: "thing", Key: object.Key{Namespace: "fleet", Name: name}}
}

func text(s string) []byte { return []byte(strconv.Quote(s)) }

// put stores a record, whatever is there.
func (t *trial) put(e remote.Engine, k remote.Key, content []byte) remote.Record {
	t.Helper()
	now, err := e.Get(t.ctx, k)
	require.NoError(t, err)
	next, err := e.Swap(t.ctx, remote.Swap{Key: k, Version: now.Version, Content: content})
	require.NoError(t, err)
	return next
}

// take takes the lease, which is free.
func (t *trial) take(e remote.Engine, id string) lead.Token {
	t.Helper()
	token, err := e.Lease().Take(t.ctx, id, t.suite.TTL)
	require.NoError(t, err)
	require.NotZero(t, token)
	return token
}

// pass lets time pass for leases.
func (t *trial) pass(d time.Duration) {
	if t.suite.Pass != nil {
		t.suite.Pass(d)
		return
	}
	timer := time.NewTimer(d) // a lease expires by the clock of the database
	defer timer.Stop()
	<-timer.C
}

// same requires that two records are equal.
func (t *trial) same(want, got remote.Record) {
	t.Helper()
	require.Equal(t, want.Key, got.Key)
	require.Equal(t, string(want.Content), string(got.Content))
	require.Equal(t, want.Version, got.Version)
	require.Equal(t, want.Order, got.Order)
}

func lastWrite(t *trial) {
	a, b := t.open(), t.open()
	none, err := a.Get(t.ctx, key("a"))
	require.NoError(t, err)
	require.Nil(t, none.Content)
	require.Empty(t, none.Version)
	for _, content := range []string{"one", "two", "three"} {
		made := t.put(a, key("a"), text(content))
		require.Equal(t, string(text(content)), string(made.Content))
		for _, e := range []remote.Engine{a, b} {
			got, err := e.Get(t.ctx, key("a"))
			require.NoError(t, err)
			t.same(made, got)
		}
	}
	t.put(b, key("a"), nil)
	gone, err := a.Get(t.ctx, key("a"))
	require.NoError(t, err)
	require.Nil(t, gone.Content)
}

func conditions(t *trial) {
	a, b := t.open(), t.open()
	refused := func(s remote.Swap) {
		t.Helper()
		before, err := b.Get(t.ctx, s.Key)
		require.NoError(t, err)
		_, err = a.Swap(t.ctx, s)
		require.ErrorIs(t, err, store.ErrConflict)
		after, err := b.Get(t.ctx, s.Key)
		require.NoError(t, err)
		t.same(before, after)
	}
	first := t.put(a, key("a"), text("1"))
	refused(remote.Swap{Key: key("b"), Version: first.Version, Content: text("2")})
	refused(remote.Swap{Key: key("b"), Version: first.Version})
	refused(remote.Swap{Key: key("a"), Content: text("2")})
	second := t.put(b, key("a"), text("2"))
	refused(remote.Swap{Key: key("a"), Version: first.Version, Content: text("3")})
	refused(remote.Swap{Key: key("a"), Version: first.Version})
	refused(remote.Swap{Key: key("a"), Version: "not one of ours", Content: text("3")})
	_, err := a.Swap(t.ctx, remote.Swap{Key: key("a"), Version: second.Version})
	require.NoError(t, err)
	refused(remote.Swap{Key: key("a"), Version: second.Version, Content: text("3")})
}

func versions(t *trial) {
	e := t.open()
	seen, order := map[string]bool{}, uint64(0)
	for i := range 60 {
		content := text(strconv.Itoa(i % 2))
		if i%5 == 4 {
			content = nil
		}
		r := t.put(e, key("a"), content)
		require.Greater(t, r.Order, order)
		order = r.Order
		if content != nil {
			require.NotEmpty(t, r.Version)
			require.False(t, seen[r.Version], r.Version)
			seen[r.Version] = true
		}
	}
}

func contents(t *trial) {
	e := t.open()
	for i, content := range []string{
		`{}`, `{"b":1,"a":2,"a":3}`, `{"x": 1.50,  "y":1e3}`, `"\u0000\ud83d\ude00"`, `"äöü 日本 😀"`, `[1,2,{"n":null}]`,
		`{"large":"` + strings.Repeat("x", 700_000) + `"}`,
	} {
		k := key(strconv.Itoa(i))
		made := t.put(e, k, []byte(content))
		require.Equal(t, content, string(made.Content))
		got, err := t.open().Get(t.ctx, k)
		require.NoError(t, err)
		t.same(made, got)
	}
}

func names(t *trial) {
	e := t.open()
	want := map[remote.Key]string{}
	for i, name := range []string{"a", "a/b", "a b", "ä", "%2F", "'", `"`, "..", "a\nb", "A", "日本", strings.Repeat("x", 500)} {
		for _, space := range []string{"", "fleet", "a/b", "%"} {
			k := remote.Key{Kind: "thing", Key: object.Key{Namespace: space, Name: name}}
			content := strconv.Itoa(i)
			t.put(e, k, []byte(content))
			want[k] = content
		}
	}
	all, err := t.open().List(t.ctx, "thing")
	require.NoError(t, err)
	got := map[remote.Key]string{}
	for _, r := range all {
		got[r.Key] = string(r.Content)
	}
	require.Equal(t, want, got)
}

func lists(t *trial) {
	e := t.open()
	var want []string
	for _, kind := range []string{"thing", "things", "thin"} {
		for i := range 3 {
			k := remote.Key{Kind: kind, Key: object.Key{Name: strconv.Itoa(i)}}
			t.put(e, k, text(kind))
			want = append(want, k.String())
		}
	}
	t.put(e, remote.Key{Kind: "thing", Key: object.Key{Name: "gone"}}, text("x"))
	t.put(e, remote.Key{Kind: "thing", Key: object.Key{Name: "gone"}}, nil)
	keys := func(kind string) (got []string) {
		all, err := t.open().List(t.ctx, kind)
		require.NoError(t, err)
		for _, r := range all {
			got = append(got, r.Key.String())
		}
		return got
	}
	require.ElementsMatch(t, want, keys(""))
	require.ElementsMatch(t, want[:3], keys("thing"))
	require.ElementsMatch(t, want[6:], keys("thin"))
	require.Empty(t, keys("other"))
}

func race(t *trial) {
	engines := []remote.Engine{t.open(), t.open(), t.open()}
	const writers, each = 12, 10
	var all sync.WaitGroup
	for w := range writers {
		e := engines[w%len(engines)]
		all.Go(func() {
			for done := 0; done < each; {
				now, err := e.Get(t.ctx, key("counter"))
				if err != nil {
					t.Error(err)
					return
				}
				n, _ := strconv.Atoi(string(now.Content))
				_, err = e.Swap(t.ctx, remote.Swap{Key: key("counter"), Version: now.Version, Content: []byte(strconv.Itoa(n + 1))})
				switch {
				case err == nil:
					done++
				case !errors.Is(err, store.ErrConflict):
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	got, err := engines[0].Get(t.ctx, key("counter"))
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(writers*each), string(got.Content))
}

func endedContext(t *trial) {
	e := t.open()
	ended, end := context.WithCancel(t.ctx)
	end()
	_, err := e.Swap(ended, remote.Swap{Key: key("a"), Content: text("1")})
	require.Error(t, err)
	_, err = e.Get(ended, key("a"))
	require.Error(t, err)
	_, err = e.List(ended, "")
	require.Error(t, err)
	require.Error(t, e.Fresh(ended))
	_, err = e.Lease().Take(ended, "a", t.suite.TTL)
	require.Error(t, err)
	got, err := e.Get(t.ctx, key("a"))
	require.NoError(t, err)
	require.Nil(t, got.Content)
	t.take(e, "b")
}

// view is a Sink.
type view struct {
	t *trial

	mu      sync.Mutex
	changed chan struct{} // closed with each change
	records map[remote.Key]remote.Record
	lists   int
	forgot  int
	history map[remote.Key][]string // the contents that were shown, in their order
}

func newView(t *trial) *view {
	return &view{t: t, changed: make(chan struct{}), records: map[remote.Key]remote.Record{}, history: map[remote.Key][]string{}}
}

// follow lets an engine show its records to a view until the test ends.
func (t *trial) follow(e remote.Engine) *view {
	v := newView(t)
	ctx, cancel := context.WithCancel(t.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			_ = e.Follow(ctx, v)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return v
}

func (v *view) change(do func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	do()
	close(v.changed)
	v.changed = make(chan struct{})
}

// Replace implements remote.Sink.
func (v *view) Replace(all []remote.Record, _ uint64) {
	v.change(func() {
		v.lists++
		clear(v.records)
		for _, r := range all {
			v.enter(r)
		}
	})
}

// Show implements remote.Sink.
func (v *view) Show(r remote.Record) { v.change(func() { v.enter(r) }) }

func (v *view) enter(r remote.Record) {
	if last, ok := v.records[r.Key]; ok && r.Order < last.Order {
		v.t.Errorf("%v: order %d is shown after %d", r.Key, r.Order, last.Order)
	}
	v.history[r.Key] = append(v.history[r.Key], string(r.Content))
	if r.Content == nil {
		delete(v.records, r.Key)
	} else {
		v.records[r.Key] = r
	}
}

// Forget implements remote.Sink.
func (v *view) Forget(error) { v.change(func() { v.forgot++ }) }

// Alive implements remote.Sink.
func (v *view) Alive() {}

// Space implements remote.Sink.
func (v *view) Space(error) {}

// await waits until the view has a state.
func (v *view) await(what string, done func() bool) {
	v.t.Helper()
	for {
		v.mu.Lock()
		ok, changed := done(), v.changed
		v.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-v.t.ctx.Done():
			v.t.Fatalf("not shown: %s", what)
		}
	}
}

// has returns the content that a view has under a key.
func (v *view) has(k remote.Key) string { return string(v.records[k].Content) }

func follows(t *trial) {
	writer := t.open()
	for i := range 5 {
		t.put(writer, key(strconv.Itoa(i)), text("first"))
	}
	own, peer := t.follow(writer), t.follow(t.open())
	for _, v := range []*view{own, peer} {
		v.await("what was there", func() bool { return len(v.records) >= 5 })
	}
	for n := range 20 {
		t.put(writer, key("0"), text(strconv.Itoa(n)))
	}
	t.put(writer, key("1"), nil)
	t.put(writer, key("1"), text("again"))
	t.put(writer, key("2"), nil)
	last := t.put(writer, key("5"), text("new"))
	for _, v := range []*view{own, peer} {
		v.await("all changes", func() bool {
			_, two := v.records[key("2")]
			return v.has(key("0")) == `"19"` && v.has(key("1")) == `"again"` && !two && v.has(key("5")) == `"new"`
		})
		v.mu.Lock()
		t.same(last, v.records[key("5")])
		require.Equal(t, 1, v.lists)
		require.Zero(t, v.forgot)
		require.True(t, inOrder(v.history[key("0")]), v.history[key("0")])
		v.mu.Unlock()
	}
}

// followsAgain: what has changed while nothing followed the database is shown, ends of records too.
func followsAgain(t *trial) {
	writer, e := t.open(), t.open()
	for _, name := range []string{"stays", "changes", "goes", "comes back"} {
		t.put(writer, key(name), text("first"))
	}
	v, last := newView(t), text("first")
	for round := range 3 {
		ctx, end := context.WithCancel(t.ctx)
		ended := make(chan error, 1)
		go func() { ended <- e.Follow(ctx, v) }()
		v.await("all of round "+strconv.Itoa(round), func() bool {
			_, there := v.records[key("goes")]
			return there == (round == 0) && v.has(key("stays")) == `"first"` &&
				v.has(key("changes")) == string(last) && v.has(key("comes back")) == string(last)
		})
		require.NoError(t, e.Fresh(t.ctx))
		end()
		select {
		case <-ended:
		case <-t.ctx.Done():
			t.Fatal("Follow does not end with its context")
		}
		last = text(strconv.Itoa(round + 1))
		t.put(writer, key("changes"), last)
		t.put(writer, key("comes back"), nil)
		t.put(writer, key("comes back"), last)
		if round == 0 {
			t.put(writer, key("goes"), nil)
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	require.Zero(t, v.forgot, "no write was lost")
}

// inOrder reports whether numbers rise.
func inOrder(shown []string) bool {
	var numbers []int
	for _, s := range shown {
		if n, err := strconv.Atoi(strings.Trim(s, `"`)); err == nil {
			numbers = append(numbers, n)
		}
	}
	return slices.IsSorted(numbers) && len(numbers) > 0 && numbers[len(numbers)-1] == 19
}

func fresh(t *trial) {
	writer, reader := t.open(), t.open()
	v := t.follow(reader)
	v.await("the first list", func() bool { return v.lists > 0 })
	busy, stop := context.WithCancel(t.ctx)
	other := t.open()
	var all sync.WaitGroup
	all.Go(func() { // others write all the while
		for n := 0; busy.Err() == nil; n++ {
			now, err := other.Get(busy, key("busy"))
			if err == nil {
				_, _ = other.Swap(busy, remote.Swap{Key: key("busy"), Version: now.Version, Content: []byte(strconv.Itoa(n))})
			}
		}
	})
	for n := range 50 {
		made := t.put(writer, key("a"), text(strconv.Itoa(n)))
		require.NoError(t, reader.Fresh(t.ctx))
		v.mu.Lock()
		t.same(made, v.records[key("a")])
		v.mu.Unlock()
	}
	t.put(writer, key("a"), nil)
	require.NoError(t, reader.Fresh(t.ctx))
	v.mu.Lock()
	require.NotContains(t, v.records, key("a"))
	v.mu.Unlock()
	stop()
	all.Wait()
}

func oneHolder(t *trial) {
	a, b := t.open(), t.open()
	token := t.take(a, "the first")
	for _, e := range []remote.Engine{a, b} {
		_, err := e.Lease().Take(t.ctx, "the second", t.suite.TTL)
		var held *lead.HeldError
		require.ErrorAs(t, err, &held)
		require.Equal(t, "the first", held.By)
	}
	require.ErrorIs(t, b.Lease().Renew(t.ctx, token+1, t.suite.TTL), lead.ErrLost)
	require.NoError(t, b.Lease().Release(t.ctx, token+1))
	require.NoError(t, a.Lease().Renew(t.ctx, token, t.suite.TTL))
}

func released(t *trial) {
	a, b := t.open(), t.open()
	last := lead.Token(0)
	for range 5 {
		token := t.take(a, "a")
		require.Greater(t, token, last)
		waited := make(chan error, 1)
		go func() { waited <- b.Lease().Wait(t.ctx) }()
		require.NoError(t, a.Lease().Release(t.ctx, token))
		require.NoError(t, <-waited)
		last = t.take(b, "b")
		require.Greater(t, last, token)
		require.ErrorIs(t, a.Lease().Renew(t.ctx, token, t.suite.TTL), lead.ErrLost)
		require.NoError(t, a.Lease().Release(t.ctx, token), "a late release")
		require.NoError(t, b.Lease().Renew(t.ctx, last, t.suite.TTL), "ends no other term")
		require.NoError(t, b.Lease().Release(t.ctx, last))
	}
}

// expired takes the lease for b when that of a is over.
func (t *trial) expired(b remote.Engine) lead.Token {
	t.Helper()
	for {
		token, err := b.Lease().Take(t.ctx, "b", t.suite.TTL)
		if err == nil {
			return token
		}
		require.ErrorIs(t, err, lead.ErrHeld)
		t.pass(t.suite.TTL / 4)
	}
}

func expires(t *trial) {
	a, b := t.open(), t.open()
	old := t.take(a, "a")
	require.Greater(t, t.expired(b), old)
	require.ErrorIs(t, a.Lease().Renew(t.ctx, old, t.suite.TTL), lead.ErrLost)
}

func renewed(t *trial) {
	a, b := t.open(), t.open()
	token := t.take(a, "a")
	for range 8 {
		t.pass(t.suite.TTL / 4)
		require.NoError(t, a.Lease().Renew(t.ctx, token, t.suite.TTL))
		_, err := b.Lease().Take(t.ctx, "b", t.suite.TTL)
		require.ErrorIs(t, err, lead.ErrHeld)
	}
}

func fenced(t *trial) {
	a, b := t.open(), t.open()
	old := t.take(a, "a")
	first, err := a.Swap(t.ctx, remote.Swap{Key: key("a"), Content: text("1"), Token: old})
	require.NoError(t, err)
	require.NoError(t, a.Lease().Release(t.ctx, old))
	for range 2 { // while nobody leads, and while another process does
		_, err = a.Swap(t.ctx, remote.Swap{Key: key("a"), Version: first.Version, Content: text("2"), Token: old})
		require.ErrorIs(t, err, store.ErrFenced)
		_, err = a.Swap(t.ctx, remote.Swap{Key: key("b"), Content: text("2"), Token: old})
		require.ErrorIs(t, err, store.ErrFenced)
		_, err = a.Swap(t.ctx, remote.Swap{Key: key("a"), Version: first.Version, Token: old})
		require.ErrorIs(t, err, store.ErrFenced)
		got, err := b.Get(t.ctx, key("a"))
		require.NoError(t, err)
		t.same(first, got)
		if _, err := b.Lease().Take(t.ctx, "b", t.suite.TTL); err != nil {
			require.ErrorIs(t, err, lead.ErrHeld)
		}
	}
	_, err = a.Swap(t.ctx, remote.Swap{Key: key("a"), Version: first.Version, Content: text("people"), Token: 0})
	require.NoError(t, err, "writes of people belong to no term")
}

func fencedWhileWriting(t *trial) {
	a, b := t.open(), t.open()
	const writers = 8
	for round := range 5 {
		old := t.take(a, "a")
		var all sync.WaitGroup
		for w := range writers {
			k := key(fmt.Sprint("w", w))
			all.Go(func() {
				for {
					now, err := a.Get(t.ctx, k)
					if err == nil {
						_, err = a.Swap(t.ctx, remote.Swap{Key: k, Version: now.Version, Content: text("old"), Token: old})
					}
					if errors.Is(err, store.ErrFenced) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		require.NoError(t, a.Lease().Release(t.ctx, old))
		next := t.take(b, "b")
		for w := range writers { // nothing changes from here on
			t.put(b, key(fmt.Sprint("w", w)), text(fmt.Sprint("next ", round)))
		}
		all.Wait()
		for w := range writers {
			got, err := b.Get(t.ctx, key(fmt.Sprint("w", w)))
			require.NoError(t, err)
			require.Equal(t, string(text(fmt.Sprint("next ", round))), string(got.Content))
		}
		require.NoError(t, b.Lease().Release(t.ctx, next))
	}
}
