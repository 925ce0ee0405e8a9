package leadtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/millwright-go/millwright/lead"
	"github.com/millwright-go/millwright/lead/leadtest"
)

// In the tests of a lease this function is TestMyLease. A lease of a real store leaves Advance out.
func ExampleRun() {
	_ = func(t *testing.T) {
		var lease *leadtest.Memory
		leadtest.Run(t, leadtest.Suite{
			New: func(*testing.T) func() lead.Lease {
				lease = leadtest.NewMemory()
				return func() lead.Lease { return lease }
			},
			Advance: func(d time.Duration) { lease.Advance(d) },
		})
	}
}

// A call whose answer was lost had its effect all the same.
func ExampleFaulty() {
	ctx := context.Background()
	lease := leadtest.NewMemory()
	process := &leadtest.Faulty{Lease: lease}

	process.Set(leadtest.Take, leadtest.Lost)
	_, err := process.Take(ctx, "host-1", time.Minute)
	fmt.Println(err)

	process.Set(leadtest.Take, leadtest.Works)
	_, err = process.Take(ctx, "host-1", time.Minute)
	fmt.Println(err, errors.Is(err, lead.ErrHeld))

	lease.Advance(time.Minute)
	token, err := process.Take(ctx, "host-1", time.Minute)
	fmt.Println(token, err)
	// Output:
	// the store of the lease does not answer
	// another process leads: host-1 true
	// 2 <nil>
}
