package leadtest_test

import (
	"testing"
	"time"

	"github.com/millwright-go/millwright/lead"
	"github.com/millwright-go/millwright/lead/leadtest"
)

func TestMemory(t *testing.T) {
	var m *leadtest.Memory
	leadtest.Run(t, leadtest.Suite{
		New: func(*testing.T) func() lead.Lease {
			m = leadtest.NewMemory()
			return func() lead.Lease { return m }
		},
		Advance: func(d time.Duration) { m.Advance(d) },
	})
}

// TestRealTime: the suite also judges a lease whose time it can't advance.
func TestRealTime(t *testing.T) {
	leadtest.Run(t, leadtest.Suite{New: func(*testing.T) func() lead.Lease {
		m := leadtest.NewMemory()
		return func() lead.Lease { return m }
	}})
}

// TestFaulty: a view without faults is a lease.
func TestFaulty(t *testing.T) {
	var m *leadtest.Memory
	leadtest.Run(t, leadtest.Suite{
		New: func(*testing.T) func() lead.Lease {
			m = leadtest.NewMemory()
			return func() lead.Lease { return &leadtest.Faulty{Lease: m} }
		},
		Advance: func(d time.Duration) { m.Advance(d) },
	})
}
