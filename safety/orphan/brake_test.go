package orphan_test

import (
	"cmp"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/orphan"
	"github.com/millwright-go/millwright/test/safetytest"
)

// brakedCloud is a cloud that checks how many VMs are deleted in any period.
type brakedCloud struct {
	*cloud
	first  map[string]time.Time // when the delete of a VM was first ordered in its period
	listed map[string]int       // how many VMs the last listing of each class has
}

// checkLimit requires that with this order no more VMs than allowed were deleted within a period.
func (g *brakedCloud) checkLimit(t require.TestingT, d orphan.Delete) {
	now, period := g.Now, max(g.policy.OrphanPeriod, time.Minute)
	if at, known := g.first[d.ProviderID]; known && now.Before(at.Add(period)) {
		return // a repeated delete
	}
	g.first[d.ProviderID] = now
	n := 0
	for _, at := range g.first {
		if now.Before(at.Add(period)) {
			n++
		}
	}
	most := 0
	for _, n := range g.listed {
		most = max(most, n)
	}
	allowed := int(g.policy.Brake)
	if !now.Before(g.began.Add(period)) {
		allowed = max(allowed, most*int(g.policy.BrakeShare)/100)
	}
	require.LessOrEqual(t, n, allowed, "too many deletes within a period, of %d VMs", most)
}

// TestBrake: however many VMs have no owner, and whichever deletes fail, the brake limits how many VMs are deleted in
// a period. In the end all orphans that can be deleted are gone.
// Invariants: P15
func TestBrake(t *testing.T) {
	several := 0
	rapid.Check(t, func(t *rapid.T) {
		g := &brakedCloud{cloud: newCloud(t, "a", "b"), first: map[string]time.Time{}, listed: map[string]int{}}
		g.began, g.shared = safetytest.Epoch, rapid.Bool().Draw(t, "shared")
		g.policy.Brake = rapid.Int32Range(1, 4).Draw(t, "brake")
		g.policy.BrakeShare = cmp.Or(rapid.Int32Range(0, 50).Draw(t, "share"), object.Off)
		g.policy.OrphanPeriod = rapid.SampledFrom([]time.Duration{time.Second, 20 * time.Second, time.Minute, 15 * time.Minute}).Draw(t, "period")
		g.policy.Burst = rapid.IntRange(1, 10).Draw(t, "burst")
		g.addMachine("own", "a", machine.PhaseRunning, g.createVM("own", "a").id)
		stuck := map[string]bool{}
		for range rapid.IntRange(1, 18).Draw(t, "orphans") {
			v := g.createVM("gone", rapid.SampledFrom(g.classes).Draw(t, "class"))
			stuck[v.id] = rapid.IntRange(0, 3).Draw(t, "stuck") == 0
		}
		g.answer = func(call, id string) codes.Code {
			if call == "list" {
				g.listed[id] = len(g.list(id))
			}
			if call == "delete" && stuck[id] {
				return codes.Unavailable
			}
			return codes.OK
		}
		g.deleting = func(d orphan.Delete) { g.checkLimit(t, d) }
		for range 2000 {
			require.NoError(t, g.pass())
			if len(g.first) > int(g.policy.Brake) {
				several++
			}
			require.True(t, g.plan.At.After(g.Now), "the pass asks to be repeated at once")
			g.Now = g.plan.At
			if g.Now.Sub(safetytest.Epoch) > 20*max(g.policy.OrphanPeriod, time.Minute) {
				break
			}
		}
		for _, id := range g.left() {
			require.True(t, stuck[id] || id == "p://1", "%s can be deleted and still exists", id)
		}
	})
	assert.Positive(t, several, "the share never allowed more than the number")
}

// TestClassesShareOneBrake: several classes that list the same VMs do not raise the limit, whenever they are listed.
// The share counts only in a process that knows what was deleted in the whole period before.
func TestClassesShareOneBrake(t *testing.T) {
	for _, began := range []time.Time{{}, safetytest.Epoch} {
		c := newCloud(t, "a", "b", "c")
		c.shared, c.began = true, began
		c.addMachine("own", "a", machine.PhaseRunning, c.createVM("own", "a").id)
		for range 79 {
			c.createVM("gone", "a")
		}
		for i := range 20 {
			c.known = map[string]*orphan.Class{} // so that the class is listed in this pass
			c.classes = [][]string{{"a"}, {"b", "c"}}[i%2]
			require.NoError(t, c.pass())
			c.Now = c.Now.Add(30 * time.Second)
		}
		assert.Len(t, c.left(), map[bool]int{true: 80 - 3, false: 80 - 8}[began == safetytest.Epoch])
		c.Now = safetytest.Epoch.Add(15 * time.Minute)
		for range 8 {
			require.NoError(t, c.pass())
			c.Now = c.Now.Add(30 * time.Second)
		}
		assert.Less(t, len(c.left()), 72)
	}
}

// TestEmptyStoreKeepsAllVMs: while the store is empty, no pass deletes a VM. Nor does the first pass when the store
// is no longer empty.
// Invariants: P15
func TestEmptyStoreKeepsAllVMs(t *testing.T) {
	c := newCloud(t, "a")
	c.owners = 0
	c.createVM("gone", "a")
	c.deleting = func(d orphan.Delete) { assert.Fail(t, "deleted", "%+v", d) }
	for range 20 {
		require.NoError(t, c.pass())
		assert.Equal(t, orphan.ReasonEmptyStore, c.plan.Why.Reason)
		assert.Equal(t, c.Now.Add(c.policy.OrphanPeriod), c.plan.At, "classes are listed as often as otherwise")
		c.Now = c.plan.At
	}
	c.owners = 1
	require.NoError(t, c.pass())
	assert.Len(t, c.left(), 1, "listings while the store was empty do not count")
	c.deleting = nil
	c.wait(1)
	assert.Empty(t, c.left())
}

// TestBrakeAfterAClockIsSetBack: when the clock is set back, earlier orders count for one period from then on.
func TestBrakeAfterAClockIsSetBack(t *testing.T) {
	class := object.Key{Name: "a"}
	o := &orphan.Observation{Owners: 1, Candidates: []orphan.Candidate{{Class: class, ProviderID: "new", Name: "gone", Since: safetytest.Epoch.Add(-time.Minute)}}}
	for i := range 3 {
		o.Spent = append(o.Spent, safety.Spent{ID: fmt.Sprint(i), At: safetytest.Epoch.Add(time.Hour)})
	}
	o.Classes = []orphan.Class{{Key: class, Asked: safetytest.Epoch, Listed: math.MaxInt}}
	p := safety.DefaultPolicy()
	p.BrakeShare = object.Off
	plan, err := orphan.Decide(o, p, safetytest.Epoch)
	require.NoError(t, err)
	assert.Len(t, plan.Spent, 3)
	assert.Equal(t, safetytest.Epoch.Add(p.OrphanPeriod), plan.At)
	o.Spent = plan.Spent
	now := safetytest.Epoch.Add(p.OrphanPeriod)
	o.Classes[0].Asked, o.Read = now, decision.Freshness{Began: now}
	o.Classes[0].Listing = &orphan.Listing{Asked: now, Answered: now, VMs: map[string]string{"new": "gone"}}
	plan, err = orphan.Decide(o, p, now)
	require.NoError(t, err)
	require.Len(t, plan.Delete, 1)
	assert.Equal(t, []safety.Spent{{ID: "new", At: now}}, plan.Spent)
}

// TestBrakeLetsRetriesPass: a failed delete is tried again even if the brake allows no other. It counts from its
// first attempt.
func TestBrakeLetsRetriesPass(t *testing.T) {
	c := newCloud(t, "a")
	for range 4 {
		c.createVM("gone", "a")
	}
	failing, tries := true, 0
	c.answer = func(call, _ string) codes.Code {
		if call != "delete" {
			return codes.OK
		}
		if tries++; failing {
			return codes.Unavailable
		}
		return codes.OK
	}
	c.firstPass()
	c.wait(1)
	assert.Equal(t, 3, tries)
	failing = false
	c.wait(1)
	assert.Equal(t, 6, tries)
	assert.Len(t, c.left(), 1)
	assert.Less(t, c.Now.Sub(safetytest.Epoch), 2*time.Minute)
	assert.Equal(t, safetytest.Epoch.Add(30*time.Second+15*time.Minute), c.plan.At)
}
