package drivertest

import (
	"context"
	"testing"
	"time"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/object"
)

var poolOptions = MemoryPoolOptions{Token: "a-token-of-some-length"}

func poolSetupOf(m *MemoryPools, d pooldriver.Driver) PoolSetup {
	key := func(name string) object.Key { return object.Key{Namespace: "fleet", Name: name} }
	s := PoolSetup{
		Driver:       d,
		Class:        m.Class(key("small"), MemorySpec{Cluster: "blue", Size: "small"}),
		Secret:       m.Secret(key("cloud")),
		Bootstrap:    m.Secret(key("boot")),
		Changed:      m.Class(key("large"), MemorySpec{Cluster: "blue", Size: "large"}),
		OtherCluster: m.Class(key("green"), MemorySpec{Cluster: "green", Size: "small"}),
		Invalid:      m.Class(key("none"), MemorySpec{Cluster: "blue"}),
		Count:        m.Count,
		AskDrain:     m.AskDrain,
	}
	if m.slow {
		s.Settle = func(context.Context) { m.Work() }
	}
	return s
}

func memoryPoolSuite(o MemoryPoolOptions) PoolSuite {
	return PoolSuite{New: func(*testing.T) PoolSetup {
		m := NewMemoryPools(o)
		return poolSetupOf(m, m)
	}}
}

func TestMemoryPools(t *testing.T) {
	t.Run("at once", func(t *testing.T) { RunPools(t, memoryPoolSuite(poolOptions)) })
	t.Run("slow", func(t *testing.T) { RunPools(t, memoryPoolSuite(MemoryPoolOptions{Slow: true})) })
	t.Run("shared", func(t *testing.T) {
		m := NewMemoryPools(poolOptions)
		RunPools(t, PoolSuite{New: func(*testing.T) PoolSetup { return poolSetupOf(m, m) }})
		if m.Groups() != 0 || m.Count() != 0 {
			t.Errorf("%d groups with %d instances are left behind", m.Groups(), m.Count())
		}
	})
	t.Run("decorated", func(t *testing.T) {
		m := NewMemoryPools(poolOptions)
		d := pooldriver.Validate(pooldriver.Intercept(pooldriver.Intercept(m, driver.Deadline(driver.Timeouts{Default: time.Minute})), driver.Recover(nil)), nil)
		RunPools(t, PoolSuite{New: func(*testing.T) PoolSetup { return poolSetupOf(m, d) }})
	})
}

// A driver and a setup that leave out all that is optional pass, and leave checks out.
func TestBarePools(t *testing.T) {
	suite := PoolSuite{New: func(*testing.T) PoolSetup {
		m := NewMemoryPools(MemoryPoolOptions{})
		key := object.Key{Namespace: "fleet", Name: "small"}
		bare := struct{ pooldriver.Driver }{needed{m: m}}
		return PoolSetup{Driver: bare, Class: m.Class(key, MemorySpec{Cluster: "blue", Size: "small"})}
	}}
	skipped := 0
	for _, o := range poolOutcomes(t, suite) {
		if o.Failed() {
			t.Errorf("%s: %s", o.check, o.text())
		}
		if o.skipped {
			skipped++
			if o.reason == "" {
				t.Errorf("%s is skipped without a reason", o.check)
			}
		}
	}
	if skipped < 8 {
		t.Errorf("only %d checks are left out", skipped)
	}
}

// needed has the five calls that every pool driver has.
type needed struct {
	pooldriver.UnimplementedPools
	m *MemoryPools
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

// poolOutcomes runs every check of the suite, each on its own.
func poolOutcomes(t *testing.T, s PoolSuite) []outcome {
	var all []outcome
	for _, g := range poolGroups() {
		for _, c := range g.checks {
			record := &recorder{TB: t}
			trial := newPoolTrial(record, s, s.New(t))
			alone(func() { trial.tryPool(c) })
			for _, f := range record.cleanups {
				alone(f)
			}
			all = append(all, outcome{g.name + "/" + c.name, record, trial.skipped})
		}
	}
	return all
}

// Each broken driver is found out by the checks that should, and each check
// finds some broken driver.
func TestBrokenPoolDriversFail(t *testing.T) {
	found := map[string]bool{}
	for _, v := range poolVariants {
		t.Run(v.name, func(t *testing.T) {
			judge(t, poolOutcomes(t, brokenPoolSuite(v)), v.fails, found)
		})
	}
	for _, o := range poolOutcomes(t, memoryPoolSuite(poolOptions)) {
		if o.skipped || o.Failed() {
			t.Errorf("%s: skipped %t, failed %t: %s", o.check, o.skipped, o.Failed(), o.text())
		}
		if !found[o.check] {
			t.Errorf("no broken driver was made to fail %s", o.check)
		}
	}
}

func brokenPoolSuite(v poolVariant) PoolSuite {
	return PoolSuite{
		Prompt: promptFor(v.fails),
		New: func(t *testing.T) PoolSetup {
			m := NewMemoryPools(poolOptions)
			b := newBrokenPools(m)
			end := make(chan struct{})
			b.end = end
			t.Cleanup(func() { close(end) })
			v.spoil(b)
			return poolSetupOf(m, b)
		},
	}
}
