package leadtest

import (
	"context"
	"sync"
	"time"

	"github.com/millwright-go/millwright/lead"
)

// Memory is a lease in memory. All processes of a test share it. NewMemory makes it.
type Memory struct {
	mu       sync.Mutex
	advanced time.Duration
	last     lead.Token // the highest there was
	holder   string
	expires  time.Time     // zero: nobody holds the lease
	changed  chan struct{} // closed when the lease was given back, or time was advanced
}

// NewMemory returns a lease that nobody holds. Its time is that of time.Now, and what Advance adds.
func NewMemory() *Memory { return &Memory{changed: make(chan struct{})} }

var _ lead.Lease = (*Memory)(nil)

// Advance lets time pass for the lease, and for nobody else.
func (m *Memory) Advance(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advanced += d
	m.wake()
}

// Drop takes the lease from its holder before it expires, as an operator may who removes it in the store.
func (m *Memory) Drop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expires = time.Time{}
	m.wake()
}

// Holds reports whether the lease is held under a token. A store asks that before each write of a term.
func (m *Memory) Holds(t lead.Token) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.holds(t)
}

func (m *Memory) holds(t lead.Token) bool { return t == m.last && m.left() > 0 }

// left is for how long the lease is held if nobody renews it.
func (m *Memory) left() time.Duration { return m.expires.Sub(m.now()) }

func (m *Memory) now() time.Time { return time.Now().Add(m.advanced) }

// wake wakes all who wait. The caller holds m.mu.
func (m *Memory) wake() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// Take implements lead.Lease.
func (m *Memory) Take(ctx context.Context, id string, ttl time.Duration) (lead.Token, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case m.left() > 0:
		return 0, &lead.HeldError{By: m.holder}
	}
	m.last++
	m.holder, m.expires = id, m.now().Add(ttl)
	return m.last, nil
}

// Renew implements lead.Lease.
func (m *Memory) Renew(ctx context.Context, t lead.Token, ttl time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !m.holds(t):
		return lead.ErrLost
	}
	m.expires = m.now().Add(ttl)
	return nil
}

// Release implements lead.Lease.
func (m *Memory) Release(ctx context.Context, t lead.Token) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case m.holds(t):
		m.expires = time.Time{}
		m.wake()
	}
	return nil
}

// Wait implements lead.Lease.
func (m *Memory) Wait(ctx context.Context) error {
	for {
		m.mu.Lock()
		left, changed := m.left(), m.changed
		m.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case left <= 0:
			return nil
		}
		expiry := time.NewTimer(left)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-expiry.C:
		}
		expiry.Stop()
	}
}
