package leadtest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/millwright-go/millwright/lead"
)

// Call is a method of lead.Lease.
type Call string

// The methods of lead.Lease.
const (
	Take    Call = "Take"
	Renew   Call = "Renew"
	Release Call = "Release"
	Wait    Call = "Wait"
)

// Fault is what is wrong with a call.
type Fault string

// The faults of a Faulty.
const (
	Works   Fault = ""
	Refused Fault = "Refused" // it has no effect, and fails with ErrFault
	Lost    Fault = "Lost"    // it has its effect, and fails with ErrFault
	Hangs   Fault = "Hangs"   // it has no effect, and returns when its context ends
	// HangsAfter: it has its effect, and returns when its context ends. For Wait it is as Hangs.
	HangsAfter Fault = "HangsAfter"
)

// ErrFault is the error of a call that a Faulty lets fail.
var ErrFault = errors.New("the store of the lease does not answer")

// Faulty is one process's view of a lease, whose calls fail as the test says. It is safe for
// concurrent use.
type Faulty struct {
	// Lease is where calls go that work.
	Lease lead.Lease

	mu     sync.Mutex
	faults map[Call]Fault
}

var _ lead.Lease = (*Faulty)(nil)

// Set says what is wrong with calls of a method from now on.
func (f *Faulty) Set(c Call, what Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.faults == nil {
		f.faults = make(map[Call]Fault)
	}
	f.faults[c] = what
}

// call makes a call as its fault says.
func (f *Faulty) call(ctx context.Context, c Call, do func() error) error {
	f.mu.Lock()
	what := f.faults[c]
	f.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	switch what {
	case Refused:
		return ErrFault
	case Lost:
		return errors.Join(ErrFault, do())
	case HangsAfter:
		_ = do() // nobody learns of it
		<-ctx.Done()
		return ctx.Err()
	case Hangs:
		<-ctx.Done()
		return ctx.Err()
	case Works:
	}
	return do()
}

// Take implements lead.Lease.
func (f *Faulty) Take(ctx context.Context, id string, ttl time.Duration) (lead.Token, error) {
	var t lead.Token
	err := f.call(ctx, Take, func() (err error) {
		t, err = f.Lease.Take(ctx, id, ttl)
		return err
	})
	if err != nil {
		t = 0
	}
	return t, err
}

// Renew implements lead.Lease.
func (f *Faulty) Renew(ctx context.Context, t lead.Token, ttl time.Duration) error {
	return f.call(ctx, Renew, func() error { return f.Lease.Renew(ctx, t, ttl) })
}

// Release implements lead.Lease.
func (f *Faulty) Release(ctx context.Context, t lead.Token) error {
	return f.call(ctx, Release, func() error { return f.Lease.Release(ctx, t) })
}

// Wait implements lead.Lease.
func (f *Faulty) Wait(ctx context.Context) error {
	return f.call(ctx, Wait, func() error { return f.Lease.Wait(ctx) })
}
