package pooldrivertest

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/conformance"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/object"
)

var options = MemoryOptions{Token: "a-token-of-some-length"}

func setupOf(m *Memory, d pooldriver.Driver) Setup {
	key := func(name string) object.Key { return object.Key{Namespace: "fleet", Name: name} }
	s := Setup{
		Driver:       d,
		Class:        m.Class(key("small"), drivertest.MemorySpec{Cluster: "blue", Size: "small"}),
		Secret:       m.Secret(key("cloud")),
		Bootstrap:    m.Secret(key("boot")),
		Changed:      m.Class(key("large"), drivertest.MemorySpec{Cluster: "blue", Size: "large"}),
		OtherCluster: m.Class(key("green"), drivertest.MemorySpec{Cluster: "green", Size: "small"}),
		Invalid:      m.Class(key("none"), drivertest.MemorySpec{Cluster: "blue"}),
		Count:        m.Count,
		AskDrain:     m.AskDrain,
	}
	if m.slow {
		s.Settle = func(context.Context) { m.Work() }
	}
	return s
}

func memorySuite(o MemoryOptions) Suite {
	return Suite{New: func(*testing.T) Setup {
		m := NewMemory(o)
		return setupOf(m, m)
	}}
}

// Invariants: P38
func TestMemory(t *testing.T) {
	t.Run("at once", func(t *testing.T) { Run(t, memorySuite(options)) })
	t.Run("slow", func(t *testing.T) { Run(t, memorySuite(MemoryOptions{Slow: true})) })
	t.Run("shared", func(t *testing.T) {
		m := NewMemory(options)
		Run(t, Suite{New: func(*testing.T) Setup { return setupOf(m, m) }})
		if m.Groups() != 0 || m.Count() != 0 {
			t.Errorf("%d groups with %d instances are left behind", m.Groups(), m.Count())
		}
	})
	t.Run("decorated", func(t *testing.T) {
		m := NewMemory(options)
		d := pooldriver.Validate(pooldriver.Intercept(pooldriver.Intercept(m, driver.Deadline(driver.Timeouts{Default: time.Minute})), driver.Recover(nil)), nil)
		Run(t, Suite{New: func(*testing.T) Setup { return setupOf(m, d) }})
	})
}

// TestBarePools: a driver and a setup without optional parts pass, and skip checks.
func TestBarePools(t *testing.T) {
	suite := Suite{New: func(*testing.T) Setup {
		m := NewMemory(MemoryOptions{})
		key := object.Key{Namespace: "fleet", Name: "small"}
		bare := struct{ pooldriver.Driver }{needed{m: m}}
		return Setup{Driver: bare, Class: m.Class(key, drivertest.MemorySpec{Cluster: "blue", Size: "small"})}
	}}
	skipped := 0
	for _, o := range outcomes(t, suite) {
		if o.Failed {
			t.Errorf("%s: %s", o.Check, o.Text)
		}
		if o.Skipped {
			skipped++
			if o.Left == "" {
				t.Errorf("%s is skipped without a reason", o.Check)
			}
		}
	}
	if skipped < 8 {
		t.Errorf("only %d checks are left out", skipped)
	}
}

// needed is a driver with only the five calls that every pool driver has.
type needed struct {
	pooldriver.UnimplementedPools
	m *Memory
}

func (n needed) CreatePool(ctx context.Context, req *pooldriver.CreatePoolRequest) (*pooldriver.Response, error) {
	return n.m.CreatePool(ctx, req)
}

func (n needed) UpdatePool(ctx context.Context, req *pooldriver.UpdatePoolRequest) (*pooldriver.Response, error) {
	return n.m.UpdatePool(ctx, req)
}

func (n needed) ScalePool(ctx context.Context, req *pooldriver.ScalePoolRequest) (*pooldriver.Response, error) {
	return n.m.ScalePool(ctx, req)
}

func (n needed) GetPoolStatus(ctx context.Context, req *pooldriver.GetPoolStatusRequest) (*pooldriver.GetPoolStatusResponse, error) {
	return n.m.GetPoolStatus(ctx, req)
}

func (n needed) DeletePool(ctx context.Context, req *pooldriver.DeletePoolRequest) (*pooldriver.Response, error) {
	return n.m.DeletePool(ctx, req)
}

func outcomes(t *testing.T, s Suite) []conformance.Outcome {
	return conformance.Outcomes(t, s.checks())
}

// TestBrokenDriversFail: the expected checks fail for each broken driver, and each check fails for some driver.
// Invariants: P38 P48
func TestBrokenDriversFail(t *testing.T) {
	found := map[string]bool{}
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			conformance.Judge(t, outcomes(t, brokenSuite(v)), v.fails, found)
		})
	}
	for _, o := range outcomes(t, brokenSuite(variant{spoil: func(*broken) {}})) {
		if o.Skipped || o.Failed {
			t.Errorf("%s: skipped %t, failed %t: %s", o.Check, o.Skipped, o.Failed, o.Text)
		}
		if !found[o.Check] {
			t.Errorf("no broken driver was made to fail %s", o.Check)
		}
	}
}

// brokenSuite returns a suite of a broken driver, with all optional parts.
func brokenSuite(v variant) Suite {
	return Suite{
		Prompt: conformance.PromptFor(v.fails),
		New: func(t *testing.T) Setup {
			m, end := NewMemory(options), make(chan struct{})
			t.Cleanup(func() { close(end) })
			again := func() pooldriver.Driver {
				b := newBroken(m)
				b.end = end
				v.spoil(b)
				return b
			}
			b := again().(*broken)
			s := setupOf(m, b)
			s.Again, s.Exhaust, s.Leftovers = again, b.exhaust, b.leftovers
			return s
		},
	}
}

// TestOneBugFailsOneCheck: Run reports a bug once. It skips the checks that build on the duty that failed.
func TestOneBugFailsOneCheck(t *testing.T) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			failed := conformance.Failures(conformance.InOrder(t, brokenSuite(v).checks()))
			if len(failed) != 1 || v.fails[failed[0]] == "" {
				t.Errorf("failing are %q, not one of %q", failed, slices.Sorted(maps.Keys(v.fails)))
			}
		})
	}
}

func TestDuties(t *testing.T) { duties.Judge(t, (Suite{}).checks()) }
