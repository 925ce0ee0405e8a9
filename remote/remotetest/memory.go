package remotetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/millwright-go/millwright/lead"
	"github.com/millwright-go/millwright/remote"
	"github.com/millwright-go/millwright/store"
)

// Memory is a database in memory that can be made to fail. NewMemory makes it. Each Engine of it is what another
// process would have. It is safe for concurrent use.
type Memory struct {
	mu      sync.Mutex
	changed *sync.Cond
	state   state
	now     time.Time  // of the lease; Advance moves it
	tokens  lead.Token // the last one that was given out, also across restores: none is given out twice
	faults  Faults
}

// Faults are what a Memory does wrong. The zero value does nothing wrong.
type Faults struct {
	// Away: no call is answered, and Follow breaks. A call waits until its context ends.
	Away bool
	// Broken: Follow breaks. Calls are answered.
	Broken bool
	// Held: Follow shows nothing, so that Fresh does not return.
	Held bool
	// LoseAnswers: writes are made, and answered with an error.
	LoseAnswers bool
	// Full: writes are refused with remote.ErrFull.
	Full bool
}

// state is what is stored.
type state struct {
	records  map[remote.Key]remote.Record
	log      []remote.Record // all changes, in their order
	revision uint64
	// life is another one after each restore. It is part of versions.
	life   int
	holder string
	token  lead.Token
	until  time.Time
}

// NewMemory returns an empty database.
func NewMemory() *Memory {
	m := &Memory{state: state{records: make(map[remote.Key]remote.Record)}, now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	m.changed = sync.NewCond(&m.mu)
	return m
}

// Engine returns what another process has of the database.
func (m *Memory) Engine() remote.Engine { return &memoryEngine{m: m} }

// Set changes the faults.
func (m *Memory) Set(f Faults) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = f
	m.changed.Broadcast()
}

// Advance moves the clock of the lease.
func (m *Memory) Advance(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(d)
	m.changed.Broadcast()
}

// Put stores a record as another program would, whatever is there.
func (m *Memory) Put(k remote.Key, content string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.store(k, []byte(content))
}

// Remove removes a record as another program would.
func (m *Memory) Remove(k remote.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.store(k, nil)
}

// Content returns what is stored under a key; empty: nothing.
func (m *Memory) Content(k remote.Key) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return string(m.state.records[k].Content)
}

// Save returns a function that restores the records and the lease as they are now.
func (m *Memory) Save() (restore func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	saved := m.state
	saved.records, saved.log = maps.Clone(saved.records), append([]remote.Record(nil), saved.log...)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		life := m.state.life + 1
		m.state = saved
		m.state.records, m.state.log = maps.Clone(saved.records), append([]remote.Record(nil), saved.log...)
		m.state.life = life
		for k, r := range m.state.records {
			r.Version = m.version(r.Order)
			m.state.records[k] = r
		}
		m.changed.Broadcast()
	}
}

func (m *Memory) version(revision uint64) string {
	return strconv.Itoa(m.state.life) + "-" + strconv.FormatUint(revision, 10)
}

// store makes a write. The caller holds m.mu.
func (m *Memory) store(k remote.Key, content []byte) remote.Record {
	m.state.revision++
	r := remote.Record{Key: k, Content: content, Order: m.state.revision}
	if content == nil {
		delete(m.state.records, k)
	} else {
		r.Version = m.version(r.Order)
		m.state.records[k] = r
	}
	m.state.log = append(m.state.log, r)
	m.changed.Broadcast()
	return r
}

// memoryEngine implements remote.Engine.
type memoryEngine struct {
	m *Memory
	// These are what Follow has shown; m.mu guards them.
	life  int
	shown int // entries of the log
}

var (
	errAway  = errors.New("the database is away")
	errLost  = errors.New("the answer was lost")
	errBroke = errors.New("the connection broke")
)

// follow returns why Follow breaks, or nil.
func (f *Faults) follow() error {
	switch {
	case f.Away:
		return errAway
	case f.Broken:
		return errBroke
	}
	return nil
}

// answers waits until the database answers, and then holds m.mu. It returns an error without m.mu.
func (e *memoryEngine) answers(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		e.m.mu.Lock()
		defer e.m.mu.Unlock()
		e.m.changed.Broadcast()
	})
	defer stop()
	e.m.mu.Lock()
	for e.m.faults.Away && ctx.Err() == nil {
		e.m.changed.Wait()
	}
	if err := ctx.Err(); err != nil {
		e.m.mu.Unlock()
		return err
	}
	return nil
}

// Get implements remote.Engine.
func (e *memoryEngine) Get(ctx context.Context, k remote.Key) (remote.Record, error) {
	if err := e.answers(ctx); err != nil {
		return remote.Record{}, err
	}
	defer e.m.mu.Unlock()
	if r, ok := e.m.state.records[k]; ok {
		return r, nil
	}
	return remote.Record{Key: k}, nil
}

// List implements remote.Engine.
func (e *memoryEngine) List(ctx context.Context, kind string) ([]remote.Record, error) {
	if err := e.answers(ctx); err != nil {
		return nil, err
	}
	defer e.m.mu.Unlock()
	return e.m.list(kind), nil
}

func (m *Memory) list(kind string) (all []remote.Record) {
	for k, r := range m.state.records {
		if kind == "" || k.Kind == kind {
			all = append(all, r)
		}
	}
	return all
}

// Swap implements remote.Engine.
func (e *memoryEngine) Swap(ctx context.Context, s remote.Swap) (remote.Record, error) {
	if err := e.answers(ctx); err != nil {
		return remote.Record{}, err
	}
	defer e.m.mu.Unlock()
	switch {
	case s.Token != 0 && !e.m.holds(s.Token):
		return remote.Record{}, store.ErrFenced
	case e.m.state.records[s.Key].Version != s.Version:
		return remote.Record{}, store.ErrConflict
	case e.m.faults.Full && s.Content != nil:
		return remote.Record{}, remote.ErrFull
	}
	r := e.m.store(s.Key, s.Content)
	if e.m.faults.LoseAnswers {
		return remote.Record{}, errLost
	}
	return r, nil
}

func (m *Memory) holds(t lead.Token) bool { return t == m.state.token && m.now.Before(m.state.until) }

// Follow implements remote.Engine.
func (e *memoryEngine) Follow(ctx context.Context, sink remote.Sink) error {
	e.m.mu.Lock()
	err := e.m.faults.follow()
	e.life, e.shown = -1, 0
	e.m.mu.Unlock()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() {
		e.m.mu.Lock()
		defer e.m.mu.Unlock()
		e.m.changed.Broadcast()
	})
	defer stop()
	for first := true; ; first = false {
		e.m.mu.Lock()
		for ctx.Err() == nil && e.m.faults.follow() == nil && (e.m.faults.Held || e.life == e.m.state.life && e.shown == len(e.m.state.log)) {
			e.m.changed.Wait()
		}
		if err := cmp.Or(ctx.Err(), e.m.faults.follow()); err != nil {
			e.m.mu.Unlock()
			return err
		}
		var changes []remote.Record
		all, at, life, log := e.m.list(""), e.m.state.revision, e.m.state.life, len(e.m.state.log)
		again := e.life == life
		if again {
			changes = append(changes, e.m.state.log[e.shown:]...)
		}
		e.m.mu.Unlock()
		switch {
		case again:
			for _, r := range changes {
				if r.Content != nil {
					r.Version = strconv.Itoa(life) + "-" + strconv.FormatUint(r.Order, 10)
				}
				sink.Show(r)
			}
		default:
			if !first {
				sink.Forget(errors.New("an older copy was restored"))
			}
			sink.Replace(all, at)
		}
		e.m.mu.Lock()
		e.life, e.shown = life, log
		e.m.changed.Broadcast()
		e.m.mu.Unlock()
	}
}

// Fresh implements remote.Engine.
func (e *memoryEngine) Fresh(ctx context.Context) error {
	if err := e.answers(ctx); err != nil {
		return err
	}
	defer e.m.mu.Unlock()
	stop := context.AfterFunc(ctx, func() {
		e.m.mu.Lock()
		defer e.m.mu.Unlock()
		e.m.changed.Broadcast()
	})
	defer stop()
	until, life := len(e.m.state.log), e.m.state.life
	for e.life != e.m.state.life || life == e.m.state.life && e.shown < until {
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %d of %d changes", remote.ErrBehind, e.shown, until)
		}
		e.m.changed.Wait()
	}
	return nil
}

// Lease implements remote.Engine.
func (e *memoryEngine) Lease() lead.Lease { return memoryLease{e} }

// memoryLease implements lead.Lease by the clock of the database.
type memoryLease struct{ e *memoryEngine }

// Take implements lead.Lease.
func (l memoryLease) Take(ctx context.Context, id string, ttl time.Duration) (lead.Token, error) {
	if err := l.e.answers(ctx); err != nil {
		return 0, err
	}
	m := l.e.m
	defer m.mu.Unlock()
	if m.now.Before(m.state.until) {
		return 0, &lead.HeldError{By: m.state.holder}
	}
	if m.faults.Full {
		return 0, remote.ErrFull
	}
	m.tokens++
	m.state.holder, m.state.until, m.state.token = id, m.now.Add(ttl), m.tokens
	if m.faults.LoseAnswers {
		return 0, errLost
	}
	return m.state.token, nil
}

// Renew implements lead.Lease.
func (l memoryLease) Renew(ctx context.Context, t lead.Token, ttl time.Duration) error {
	if err := l.e.answers(ctx); err != nil {
		return err
	}
	m := l.e.m
	defer m.mu.Unlock()
	if !m.holds(t) {
		return lead.ErrLost
	}
	m.state.until = m.now.Add(ttl)
	return nil
}

// Release implements lead.Lease.
func (l memoryLease) Release(ctx context.Context, t lead.Token) error {
	if err := l.e.answers(ctx); err != nil {
		return err
	}
	m := l.e.m
	defer m.mu.Unlock()
	if t == m.state.token {
		m.state.until = m.now
		m.changed.Broadcast()
	}
	return nil
}

// Wait implements lead.Lease.
func (l memoryLease) Wait(ctx context.Context) error {
	if err := l.e.answers(ctx); err != nil {
		return err
	}
	m := l.e.m
	defer m.mu.Unlock()
	stop := context.AfterFunc(ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.changed.Broadcast()
	})
	defer stop()
	for m.now.Before(m.state.until) && ctx.Err() == nil && !m.faults.Away {
		m.changed.Wait()
	}
	if m.faults.Away {
		return errAway
	}
	return ctx.Err()
}
