package remote_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/lead"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/remote"
	"github.com/millwright-go/millwright/remote/remotetest"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/record"
	"github.com/millwright-go/millwright/store/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, remotetest.Collections(func(*testing.T) func() remote.Engine { return remotetest.NewMemory().Engine }))
}

// world is a database, and what its processes have raised.
type world struct {
	*testing.T
	ctx      context.Context //nolint:containedctx // as long as the test
	database *remotetest.Memory
}

func newWorld(t *testing.T) *world {
	ctx, done := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(done)
	return &world{t, ctx, remotetest.NewMemory()}
}

// process is a process with a DB.
type process struct {
	*remote.DB
	mu     sync.Mutex
	raised []remote.Alarm
}

// open opens the database as another process.
func (w *world) open(o remote.Options) *process {
	w.Helper()
	p := &process{}
	o.Alarm = func(a remote.Alarm) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.raised = append(p.raised, a)
	}
	var err error
	p.DB, err = remote.Open(w.ctx, w.database.Engine(), o)
	require.NoError(w, err)
	w.Cleanup(p.Close)
	return p
}

// alarm returns what is wrong at present.
func (p *process) alarm(k remote.AlarmKind) error { return p.Health().Alarms[k] }

// told returns how often an alarm began and ended.
func (p *process) told(k remote.AlarmKind) (began, ended int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.raised {
		switch {
		case a.Kind != k:
		case a.Err != nil:
			began++
		default:
			ended++
		}
	}
	return began, ended
}

func (w *world) eventually(what string, done func() bool) {
	w.Helper()
	require.Eventually(w, done, time.Minute, time.Millisecond, what)
}

var keyA = object.Key{Namespace: "fleet", Name: "a"}

func (w *world) create(p *process) *machine.Machine {
	w.Helper()
	m, err := p.Machines().Create(w.ctx, &machine.Machine{Meta: object.Meta{Key: keyA, Finalizers: []string{"example.org/hold"}}})
	require.NoError(w, err)
	return m
}

func note(ctx context.Context, c store.Collection[*machine.Machine], m *machine.Machine, text string) (*machine.Machine, error) {
	next := m.Clone()
	next.Status.LastOperation.Message = text
	return c.UpdateStatus(ctx, next)
}

// leads lets a process lead until the test ends. The channel has its terms.
func (w *world) leads(p *process, id string) <-chan *lead.Held {
	ctx, cancel := context.WithCancel(w.ctx)
	terms, ended := make(chan *lead.Held, 100), make(chan error, 1)
	go func() {
		ended <- p.Lead(ctx, lead.Options{ID: id, TTL: lead.MinTTL}, func(term *lead.Held) error {
			terms <- term
			<-term.Context().Done()
			return nil
		})
	}()
	w.Cleanup(func() {
		cancel()
		require.NoError(w, <-ended)
	})
	return terms
}

func (w *world) next(terms <-chan *lead.Held) *lead.Held {
	w.Helper()
	select {
	case term := <-terms:
		return term
	case <-w.ctx.Done():
		require.FailNow(w, "no term")
		return nil
	}
}

// TestOwnWritesAreRead: what was written is read by its writer, although the database shows nothing. A live list is
// right, too.
func TestOwnWritesAreRead(t *testing.T) {
	w := newWorld(t)
	p, peer := w.open(remote.Options{CallTimeout: 50 * time.Millisecond}), w.open(remote.Options{})
	w.eventually("all was read", func() bool { return p.Health().Ready && peer.Health().Ready })
	w.database.Set(remotetest.Faults{Held: true})
	m := w.create(p)
	m, err := note(w.ctx, p.Machines(), m, "noted")
	require.NoError(t, err)
	got, err := p.Machines().Get(w.ctx, keyA)
	require.NoError(t, err)
	require.Equal(t, m, got)
	_, err = note(w.ctx, peer.Machines(), m, "by a peer")
	require.NoError(t, err)
	all, err := p.Machines().Live().List(w.ctx, store.Query{})
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, "by a peer", all[0].Status.LastOperation.Message)
	w.database.Set(remotetest.Faults{})
	w.eventually("the cache", func() bool {
		got, err := p.Machines().Get(w.ctx, keyA)
		return err == nil && got.Status.LastOperation.Message == "by a peer"
	})
}

// TestLostAnswer: the effect of a write whose answer was lost is not known, and the error is none that says something
// else.
func TestLostAnswer(t *testing.T) {
	w := newWorld(t)
	p := w.open(remote.Options{})
	w.database.Set(remotetest.Faults{LoseAnswers: true})
	_, err := p.Machines().Create(w.ctx, &machine.Machine{Meta: object.Meta{Key: keyA}})
	require.Error(t, err)
	for _, known := range []error{store.ErrConflict, store.ErrNotFound, store.ErrAlreadyExists, store.ErrInvalid, store.ErrFenced} {
		require.NotErrorIs(t, err, known)
	}
	require.ErrorContains(t, err, "create fleet/a")
	w.database.Set(remotetest.Faults{})
	_, err = p.Machines().Live().Get(w.ctx, keyA)
	require.NoError(t, err)
}

// TestNoAnswer: a call does not wait for a database that is away, and its end is said.
func TestNoAnswer(t *testing.T) {
	w := newWorld(t)
	p := w.open(remote.Options{CallTimeout: 20 * time.Millisecond})
	m := w.create(p)
	w.eventually("all was read", func() bool { return p.Health().Ready })
	w.database.Set(remotetest.Faults{Away: true})
	_, err := note(w.ctx, p.Machines(), m, "x")
	require.ErrorIs(t, err, remote.ErrNoAnswer)
	_, err = p.Machines().Live().Get(w.ctx, keyA)
	require.ErrorIs(t, err, remote.ErrNoAnswer)
	w.eventually("the alarm", func() bool { return p.alarm(remote.AlarmAway) != nil })
	_, err = p.Machines().Get(w.ctx, keyA)
	require.NoError(t, err, "cached reads go on")
	w.database.Set(remotetest.Faults{})
	w.eventually("the end of the alarm", func() bool { return p.alarm(remote.AlarmAway) == nil })
	began, ended := p.told(remote.AlarmAway)
	require.Equal(t, began, ended)
}

// TestFull: a database without space alarms until a write succeeds.
func TestFull(t *testing.T) {
	w := newWorld(t)
	p := w.open(remote.Options{})
	m := w.create(p)
	w.database.Set(remotetest.Faults{Full: true})
	_, err := note(w.ctx, p.Machines(), m, "x")
	require.ErrorIs(t, err, remote.ErrFull)
	require.ErrorIs(t, p.alarm(remote.AlarmFull), remote.ErrFull)
	w.database.Set(remotetest.Faults{})
	_, err = note(w.ctx, p.Machines(), m, "x")
	require.NoError(t, err)
	require.NoError(t, p.alarm(remote.AlarmFull))
}

// TestTermsTakeTurns: nothing of an old term lands after the next one began, and its holder is told.
func TestTermsTakeTurns(t *testing.T) {
	w := newWorld(t)
	a, b := w.open(remote.Options{}), w.open(remote.Options{})
	m := w.create(a)
	old := w.next(w.leads(a, "a"))
	require.True(t, a.Health().Leading)
	ofOld := a.ManagerOptions(old).Store.Machines
	m, err := note(w.ctx, ofOld, m, "by a")
	require.NoError(t, err)
	termsOfB := w.leads(b, "b")
	w.database.Advance(time.Hour) // a has not renewed its lease
	next := w.next(termsOfB)
	require.Greater(t, next.Token(), old.Token())
	_, err = note(w.ctx, ofOld, m, "late")
	require.ErrorIs(t, err, store.ErrFenced)
	require.ErrorContains(t, err, "fleet/a")
	_, err = a.Cluster(old).Nodes().Create(w.ctx, &machine.Node{Meta: object.Meta{Key: object.Key{Name: "n"}}})
	require.ErrorIs(t, err, store.ErrFenced)
	require.ErrorIs(t, old.Err(), lead.ErrLost)
	got, err := b.ManagerOptions(next).Store.Machines.Get(w.ctx, keyA)
	require.NoError(t, err)
	require.Equal(t, "by a", got.Status.LastOperation.Message, "a new term shows what earlier ones wrote")
	_, err = note(w.ctx, b.ManagerOptions(next).Store.Machines, got, "by b")
	require.NoError(t, err)
	w.eventually("the alarm", func() bool { return errors.Is(a.alarm(remote.AlarmLost), lead.ErrLost) })
}

func recordKey(kind string) remote.Key { return remote.Key{Kind: kind, Key: keyA} }

// TestUnreadable: a process that can't read a record does not lead. Reads of its kind say so, and all is well when it is
// gone.
func TestUnreadable(t *testing.T) {
	for name, bad := range map[string]struct {
		kind, content string
		cause         error
	}{
		"a field of a newer program": {"machine", `{"Namespace":"fleet","Name":"a","UID":"u","Newer":1}`, record.ErrContent},
		"no JSON":                    {"machine", `{`, record.ErrContent},
		"another object":             {"machine", `{"Namespace":"fleet","Name":"b","UID":"u"}`, nil},
		"no UID":                     {"machine", `{"Namespace":"fleet","Name":"a"}`, nil},
		"sealed":                     {"secret", `{"Sealed":"abcd"}`, record.ErrSealed},
		"a kind of a newer program":  {"gadget", `{}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p := w.open(remote.Options{})
			terms := w.leads(p, "p")
			term := w.next(terms)
			w.database.Put(recordKey(bad.kind), bad.content)
			<-term.Context().Done()
			require.ErrorIs(t, term.Err(), remote.ErrUnreadable)
			if bad.cause != nil {
				require.ErrorIs(t, term.Err(), bad.cause)
			}
			require.Len(t, p.Unreadable(), 1)
			require.Equal(t, recordKey(bad.kind), p.Unreadable()[0].Key)
			require.ErrorIs(t, p.alarm(remote.AlarmUnreadable), remote.ErrUnreadable)
			require.ErrorContains(t, p.alarm(remote.AlarmUnreadable), bad.kind+" fleet/a")
			require.NotContains(t, p.alarm(remote.AlarmUnreadable).Error(), "abcd")
			if bad.kind == "machine" {
				_, err := p.Machines().List(w.ctx, store.Query{})
				require.ErrorIs(t, err, remote.ErrUnreadable)
				_, err = p.Machines().Live().List(w.ctx, store.Query{})
				require.ErrorIs(t, err, remote.ErrUnreadable)
				for _, r := range []store.Reader[*machine.Machine]{p.Machines(), p.Machines().Live()} {
					_, err = r.Get(w.ctx, keyA)
					require.ErrorIs(t, err, remote.ErrUnreadable)
				}
				_, err = p.Machines().Create(w.ctx, &machine.Machine{Meta: object.Meta{Key: keyA}})
				require.ErrorIs(t, err, store.ErrAlreadyExists)
			}
			select {
			case <-terms:
				t.Fatal("it leads")
			default:
			}
			w.database.Remove(recordKey(bad.kind))
			w.next(terms)
			require.Empty(t, p.Unreadable())
			require.NoError(t, p.alarm(remote.AlarmUnreadable))
			_, err := p.Machines().List(w.ctx, store.Query{})
			require.NoError(t, err)
		})
	}
}

// TestLayout: a program does not use a database with a layout that it does not know, and leads no longer when another
// one has changed it.
func TestLayout(t *testing.T) {
	w := newWorld(t)
	p := w.open(remote.Options{})
	term := w.next(w.leads(p, "p"))
	layout := remote.Key{Kind: "about", Key: object.Key{Name: "layout"}}
	require.JSONEq(t, `{"Layout":1}`, w.database.Content(layout))
	w.database.Put(layout, `{"Layout":2}`)
	<-term.Context().Done()
	require.ErrorIs(t, term.Err(), remote.ErrLayout)
	_, err := remote.Open(w.ctx, w.database.Engine(), remote.Options{})
	require.ErrorIs(t, err, remote.ErrLayout)
	require.ErrorContains(t, err, "layout 2")
	w.database.Put(layout, `nonsense`)
	_, err = remote.Open(w.ctx, w.database.Engine(), remote.Options{})
	require.ErrorIs(t, err, remote.ErrUnreadable)
}

// TestRestored: a database that has gone back ends the term. What is stored then counts, also against own writes.
func TestRestored(t *testing.T) {
	w := newWorld(t)
	p := w.open(remote.Options{})
	m := w.create(p)
	terms := w.leads(p, "p")
	term := w.next(terms)
	restore := w.database.Save()
	m, err := note(w.ctx, p.Machines(), m, "lost")
	require.NoError(t, err)
	lost, err := p.Classes().Create(w.ctx, &machine.Class{Meta: object.Meta{Key: keyA}})
	require.NoError(t, err)
	restore()
	<-term.Context().Done()
	require.ErrorIs(t, term.Err(), remote.ErrLostWrites)
	w.eventually("what was lost is gone", func() bool {
		_, err := p.Classes().Get(w.ctx, lost.Key)
		return errors.Is(err, store.ErrNotFound)
	})
	_, err = note(w.ctx, p.Machines(), m, "on what was lost")
	require.ErrorIs(t, err, store.ErrConflict)
	w.next(terms)
	began, ended := p.told(remote.AlarmLostWrites)
	require.Equal(t, []int{1, 1}, []int{began, ended})
}

// TestClosed: reads and watches end with the DB.
func TestClosed(t *testing.T) {
	w := newWorld(t)
	p := w.open(remote.Options{})
	w.create(p)
	watched := make(chan error, 1)
	started := make(chan struct{})
	go func() {
		for change, err := range p.Machines().Watch(w.ctx) {
			if err != nil {
				watched <- err
				return
			}
			if change.New != nil {
				close(started)
			}
		}
		watched <- nil
	}()
	<-started
	p.Close()
	require.ErrorIs(t, <-watched, remote.ErrClosed)
	_, err := p.Machines().Get(w.ctx, keyA)
	require.ErrorIs(t, err, remote.ErrClosed)
	_, err = p.Machines().List(w.ctx, store.Query{})
	require.ErrorIs(t, err, remote.ErrClosed)
}

// reversed seals by turning the bytes around.
type reversed struct{}

func (reversed) Seal(content []byte) ([]byte, error) { return turned(content), nil }
func (reversed) Open(sealed []byte) ([]byte, error)  { return turned(sealed), nil }

func turned(b []byte) []byte {
	t := make([]byte, len(b))
	for i := range b {
		t[len(b)-1-i] = b[i]
	}
	return t
}

// TestSealed: a sealed secret is nowhere in the database or an export, and is read by who can open it.
func TestSealed(t *testing.T) {
	w := newWorld(t)
	p := w.open(remote.Options{Seal: reversed{}})
	const word = "correct horse battery staple"
	made, err := p.Secrets().Create(w.ctx, &machine.Secret{Meta: object.Meta{Key: keyA}, Data: map[string][]byte{"k": []byte(word)}})
	require.NoError(t, err)
	require.Equal(t, word, string(made.Data["k"]))
	w.create(p)
	var export bytes.Buffer
	require.NoError(t, p.Export(w.ctx, &export))
	for _, text := range []string{w.database.Content(recordKey("secret")), export.String()} {
		require.NotContains(t, text, word)
		require.NotContains(t, text, base64.StdEncoding.EncodeToString([]byte(word)))
	}
	peer := w.open(remote.Options{Seal: reversed{}})
	got, err := peer.Secrets().Live().Get(w.ctx, keyA)
	require.NoError(t, err)
	require.Equal(t, made, got)
}

// export returns an export of a fleet, and the objects in it.
func (w *world) export(p *process) string {
	w.Helper()
	var out bytes.Buffer
	require.NoError(w, p.Export(w.ctx, &out))
	return out.String()
}

// TestMoved: a fleet that is exported and imported is the same, but for its versions.
func TestMoved(t *testing.T) {
	w := newWorld(t)
	p := w.open(remote.Options{})
	m := w.create(p)
	_, err := note(w.ctx, p.Machines(), m, "noted")
	require.NoError(t, err)
	require.NoError(t, p.Machines().Delete(w.ctx, keyA, ""))
	_, err = p.Secrets().Create(w.ctx, &machine.Secret{Meta: object.Meta{Key: keyA}, Data: map[string][]byte{"k": []byte("v")}})
	require.NoError(t, err)
	want, err := p.Machines().Live().Get(w.ctx, keyA)
	require.NoError(t, err)
	require.True(t, want.Deleted())

	there := newWorld(t)
	other := there.open(remote.Options{})
	n, err := other.Import(w.ctx, strings.NewReader(w.export(p)))
	require.NoError(t, err)
	require.Equal(t, 2, n)
	got, err := other.Machines().Live().Get(w.ctx, keyA)
	require.NoError(t, err)
	want = want.Clone()
	want.Version = got.Version
	require.Equal(t, want, got)
	require.Equal(t, w.export(p), there.export(other))
	there.next(there.leads(other, "b"))
	_, err = other.Import(w.ctx, strings.NewReader(w.export(p)))
	require.ErrorIs(t, err, remote.ErrNotEmpty)
}

// TestImportBrokenOff: nobody leads a fleet of which a part is there. It can be cleared, and imported again.
func TestImportBrokenOff(t *testing.T) {
	w := newWorld(t)
	p := w.open(remote.Options{})
	w.create(p)
	for i := range 3 {
		_, err := p.Classes().Create(w.ctx, &machine.Class{Meta: object.Meta{Key: object.Key{Name: fmt.Sprint("c", i)}}})
		require.NoError(t, err)
	}
	whole := w.export(p)
	lines := strings.SplitAfter(whole, "\n")
	for name, broken := range map[string]string{
		"in a line":         whole[:len(whole)/2],
		"without its end":   strings.Join(lines[:len(lines)-2], ""),
		"without a line":    strings.Join(append(append([]string{}, lines[:2]...), lines[3:]...), ""),
		"with another kind": strings.Replace(whole, `"kind":"class"`, `"kind":"gadget"`, 1),
		"with a field":      strings.Replace(whole, `"object":{`, `"object":{"Newer":1,`, 1),
		"of another format": strings.Replace(whole, `"millwrightFleet":1`, `"millwrightFleet":2`, 1),
		"of something else": `{"hello":"world"}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p := w.open(remote.Options{})
			_, err := p.Import(w.ctx, strings.NewReader(broken))
			require.Error(t, err)
			w.eventually("all was read", func() bool { return p.Health().Ready })
			refused := make(chan error, 1)
			ctx, cancel := context.WithCancel(w.ctx)
			notify := func(e lead.Event) {
				if e.Kind == lead.Failed {
					refused <- e.Err
					cancel()
				}
			}
			require.NoError(t, p.Lead(ctx, lead.Options{ID: "p", Notify: notify}, func(*lead.Held) error { return errors.New("it leads") }))
			require.ErrorIs(t, <-refused, remote.ErrImporting)
			require.NoError(t, p.Clear(w.ctx))
			_, err = p.Import(w.ctx, strings.NewReader(whole))
			require.NoError(t, err)
			w.next(w.leads(p, "p"))
		})
	}
}

// silentRelease is an engine whose lease does not answer when it is given back, until its context ends.
type silentRelease struct {
	remote.Engine
	behind atomic.Bool
}

func (e *silentRelease) Fresh(ctx context.Context) error {
	if e.behind.CompareAndSwap(true, false) {
		return remote.ErrBehind
	}
	return e.Engine.Fresh(ctx)
}

func (e *silentRelease) Lease() lead.Lease { return silentLease{e.Engine.Lease()} }

type silentLease struct{ lead.Lease }

func (l silentLease) Release(ctx context.Context, t lead.Token) error {
	<-ctx.Done()
	return errors.Join(ctx.Err(), l.Lease.Release(context.WithoutCancel(ctx), t))
}

// TestReleaseHangs: a candidate that can't use the lease it has taken does not wait for ever to give it back.
func TestReleaseHangs(t *testing.T) {
	w := newWorld(t)
	e := &silentRelease{Engine: w.database.Engine()}
	db, err := remote.Open(w.ctx, e, remote.Options{CallTimeout: 100 * time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	_, err = db.Machines().List(w.ctx, store.Query{})
	require.NoError(t, err)
	e.behind.Store(true)
	require.NoError(t, db.Lead(w.ctx, lead.Options{ID: "a", TTL: 3 * time.Second}, func(*lead.Held) error { return nil }))
}

// ending is a reader that ends a context when it is read.
type ending struct {
	io.Reader
	end func()
}

func (r ending) Read(b []byte) (int, error) {
	r.end()
	return r.Reader.Read(b)
}

// TestImportCancelled: an import whose context is cancelled says that it has not ended.
func TestImportCancelled(t *testing.T) {
	w := newWorld(t)
	a := w.open(remote.Options{})
	w.create(a)
	exported := w.export(a)
	w = newWorld(t)
	b := w.open(remote.Options{})
	cancelled, cancel := context.WithCancel(w.ctx)
	_, err := b.Import(cancelled, ending{strings.NewReader(exported), cancel})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, b.Clear(cancelled), context.Canceled)
}

// TestAlarmsInOrder: the end of an alarm is told after its beginning, also if it comes while Alarm is called; and Alarm may
// use the DB.
func TestAlarmsInOrder(t *testing.T) {
	w := newWorld(t)
	var db *remote.DB
	var m *machine.Machine
	var mu sync.Mutex
	var told []bool
	db, err := remote.Open(w.ctx, w.database.Engine(), remote.Options{Alarm: func(a remote.Alarm) {
		if a.Kind != remote.AlarmFull {
			return
		}
		if a.Err != nil {
			w.database.Set(remotetest.Faults{})
			_, err := note(w.ctx, db.Machines(), m, "room")
			require.NoError(t, err)
		}
		mu.Lock()
		defer mu.Unlock()
		told = append(told, a.Err != nil)
	}})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	m = w.create(&process{DB: db})
	w.database.Set(remotetest.Faults{Full: true})
	_, err = note(w.ctx, db.Machines(), m, "no room")
	require.ErrorIs(t, err, remote.ErrFull)
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, []bool{true, false}, told)
}
