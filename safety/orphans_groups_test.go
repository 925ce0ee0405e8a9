package safety_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/test/safetytest"
)

func poolNamed(name, group string) *machinepool.Pool {
	p := &machinepool.Pool{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: name}}}
	p.Status.GroupID = group
	return p
}

// doomedGroup returns an observation at now of a group that was seen before and has no pool.
func doomedGroup(p *safety.Policy, now time.Time) *safety.OrphanObservation {
	class := object.Key{Namespace: "fleet", Name: "a"}
	return &safety.OrphanObservation{
		Groups: true, Pools: []*machinepool.Pool{poolNamed("other", "g-other")}, Read: decision.Freshness{Began: now},
		Classes: []safety.OrphanClass{{Key: class, Asked: now, Listing: &safety.Listing{
			Asked: now, Answered: now, VMs: map[string]string{"g-web": "fleet/web", "g-other": "fleet/other"},
		}}},
		Sightings: []safety.Sighting{{Class: class, ProviderID: "g-web", Name: "fleet/web", Since: now.Add(-p.OrphanGap)}},
	}
}

// TestOrphanGroupsAreGuarded: a group that was seen twice without a pool is deleted, and each
// single reason to keep it does keep it.
func TestOrphanGroupsAreGuarded(t *testing.T) {
	now := safetytest.Epoch.Add(time.Hour)
	decide := func(change func(*safety.OrphanObservation, *safety.Policy)) safety.OrphanPlan {
		p := safety.DefaultPolicy()
		o := doomedGroup(p, now)
		if change != nil {
			change(o, p)
		}
		plan, err := safety.DecideOrphans(o, p, now)
		require.NoError(t, err)
		return plan
	}
	plan := decide(nil)
	require.Len(t, plan.Delete, 1)
	require.Equal(t, "g-web", plan.Delete[0].ProviderID)
	require.Equal(t, "group g-web was made for pool fleet/web, which is gone", plan.Delete[0].Why.String())
	for name, change := range map[string]func(*safety.OrphanObservation, *safety.Policy){
		"seen once":             func(o *safety.OrphanObservation, _ *safety.Policy) { o.Sightings = nil },
		"seen twice in no time": func(o *safety.OrphanObservation, _ *safety.Policy) { o.Sightings[0].Since = now.Add(-time.Second) },
		"seen for another pool": func(o *safety.OrphanObservation, _ *safety.Policy) { o.Sightings[0].Name = "fleet/before" },
		"pools from a cache":    func(o *safety.OrphanObservation, _ *safety.Policy) { o.Read = decision.Freshness{} },
		"pools read before": func(o *safety.OrphanObservation, _ *safety.Policy) {
			o.Read = decision.Freshness{Began: now.Add(-time.Second)}
		},
		"a pool of its name": func(o *safety.OrphanObservation, _ *safety.Policy) {
			o.Pools = append(o.Pools, poolNamed("web", "g-new"))
		},
		"a pool that records it": func(o *safety.OrphanObservation, _ *safety.Policy) {
			o.Pools = append(o.Pools, poolNamed("renamed", "g-web"))
		},
		"an empty store":  func(o *safety.OrphanObservation, _ *safety.Policy) { o.Pools = []*machinepool.Pool{nil} },
		"frozen":          func(o *safety.OrphanObservation, _ *safety.Policy) { o.Frozen = true },
		"another fleet's": func(_ *safety.OrphanObservation, p *safety.Policy) { p.OrphanPrefix = "fleet" },
		"the brake": func(o *safety.OrphanObservation, _ *safety.Policy) {
			o.Spent = []safety.Spent{{ID: "x", At: now}, {ID: "y", At: now}, {ID: "z", At: now}}
		},
	} {
		assert.Empty(t, decide(change).Delete, name)
	}
	for name, change := range map[string]func(*safety.OrphanObservation, *safety.Policy){
		"sets in the store":   func(o *safety.OrphanObservation, _ *safety.Policy) { o.Pools, o.Owners = nil, 1 },
		"empty by policy":     func(o *safety.OrphanObservation, p *safety.Policy) { o.Pools, p.OrphansOfEmptyStore = nil, true },
		"this fleet's prefix": func(_ *safety.OrphanObservation, p *safety.Policy) { p.OrphanPrefix = "we" },
		"a machine of that name owns nothing": func(o *safety.OrphanObservation, _ *safety.Policy) {
			m := &machine.Machine{Meta: object.Meta{Key: object.Key{Name: "fleet/web"}}}
			m.Spec.ProviderID = "g-web"
			o.Machines = append(o.Machines, m)
		},
	} {
		assert.Len(t, decide(change).Delete, 1, name)
	}
}

// TestOrphanGroupsSpeakOfGroups: no sentence about a group speaks of VMs.
func TestOrphanGroupsSpeakOfGroups(t *testing.T) {
	p, now := safety.DefaultPolicy(), safetytest.Epoch.Add(time.Hour)
	p.OrphanPrefix = "web"
	said := map[decision.Reason]string{}
	hear := func(o *safety.OrphanObservation) {
		plan, err := safety.DecideOrphans(o, p, now)
		require.NoError(t, err)
		all := append([]decision.Why{plan.Why}, plan.Warn...)
		for i := range plan.List {
			all = append(all, plan.List[i].Why)
		}
		for i := range plan.Delete {
			all = append(all, plan.Delete[i].Why)
		}
		for _, why := range all {
			said[why.Reason] = why.String()
		}
	}
	for _, change := range []func(*safety.OrphanObservation){
		func(*safety.OrphanObservation) {},
		func(o *safety.OrphanObservation) { o.Classes[0].Listing, o.Classes[0].Asked = nil, time.Time{} },
		func(o *safety.OrphanObservation) { o.Read = decision.Freshness{} },
		func(o *safety.OrphanObservation) { o.Sightings = nil },
		func(o *safety.OrphanObservation) { o.Pools = nil },
		func(o *safety.OrphanObservation) { o.Classes[0].Listing.VMs = nil },
		func(o *safety.OrphanObservation) {
			o.Classes[0].Listing.VMs = map[string]string{"": "fleet/web", "g": "", "h": "fleet/cattle"}
		},
		func(o *safety.OrphanObservation) { o.Classes[0].Listing.Code = codes.Unavailable },
		func(o *safety.OrphanObservation) {
			o.Tries = []safety.Try{{ProviderID: "g-web", At: now, Code: codes.Aborted, Failures: 1}}
		},
		func(o *safety.OrphanObservation) {
			o.Spent = []safety.Spent{{ID: "x", At: now}, {ID: "y", At: now}, {ID: "z", At: now}}
		},
	} {
		o := doomedGroup(p, now)
		change(o)
		hear(o)
	}
	for _, reason := range []decision.Reason{
		safety.ReasonListGroups, safety.ReasonReadPools, safety.ReasonOrphanGroup, safety.ReasonGroupSecondLook, safety.ReasonGroupDeleteFailed,
		safety.ReasonListGroupsFailed, safety.ReasonGroupNoID, safety.ReasonGroupNoName, safety.ReasonGroupOfOthers, safety.ReasonNoOrphanGroups,
		safety.ReasonGroupsBraked, safety.ReasonNoPoolInStore,
	} {
		assert.Contains(t, said, reason)
	}
	for reason, sentence := range said {
		assert.NotContains(t, sentence, "VM", reason)
		assert.Contains(t, sentence, "group", reason)
	}
}

// TestNoOwnedGroupIsDeleted: pools are made, changed and deleted between the listings. No order
// names a group of a pool that the live read shows.
func TestNoOwnedGroupIsDeleted(t *testing.T) {
	deletes := 0
	rapid.Check(t, func(t *rapid.T) {
		p, now := safety.DefaultPolicy(), safetytest.Epoch
		names := []string{"a", "b", "c"}
		pools := func(label string) (all []*machinepool.Pool) {
			all = append(all, poolNamed("other", "g-other"))
			for _, name := range names {
				if rapid.Bool().Draw(t, label+" "+name) {
					all = append(all, poolNamed(name, rapid.SampledFrom([]string{"", "g-a", "g-b", "g-x"}).Draw(t, label+" group of "+name)))
				}
			}
			return all
		}
		o := &safety.OrphanObservation{Groups: true, Deleted: map[string]bool{}}
		class := safety.OrphanClass{Key: object.Key{Name: "a"}}
		for range 3 {
			now = now.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "pause")) * time.Second)
			listed := map[string]string{}
			for _, name := range names {
				if rapid.Bool().Draw(t, "listed "+name) {
					listed["g-"+name] = "fleet/" + name
				}
			}
			class.Asked, class.Listing = now, &safety.Listing{Asked: now, Answered: now, VMs: listed}
			o.Classes, o.Pools, o.Read = []safety.OrphanClass{class}, pools("pools"), decision.Freshness{Began: now}
			plan, err := safety.DecideOrphans(o, p, now)
			require.NoError(t, err)
			for i := range plan.Delete {
				deletes++
				for _, pool := range o.Pools {
					require.NotEqual(t, pool.Key.String(), plan.Delete[i].Name)
					require.NotEqual(t, pool.Status.GroupID, plan.Delete[i].ProviderID)
					require.True(t, plan.Delete[i].StillOrphanGroup(pool))
				}
				require.Contains(t, o.Sightings, safety.Sighting{
					Class: class.Key, ProviderID: plan.Delete[i].ProviderID, Name: plan.Delete[i].Name, Since: sightedAt(o.Sightings, plan.Delete[i].ProviderID),
				})
				require.False(t, now.Before(sightedAt(o.Sightings, plan.Delete[i].ProviderID).Add(p.OrphanGap)))
			}
			o.Sightings, o.Spent = plan.Sightings, plan.Spent
		}
	})
	assert.Positive(t, deletes, "no group was ever deleted")
}

func sightedAt(all []safety.Sighting, id string) time.Time {
	for _, s := range all {
		if s.ProviderID == id {
			return s.Since
		}
	}
	return safetytest.Epoch.Add(24 * time.Hour)
}

// TestStillOrphanGroup: just before a delete all pools are checked once more.
func TestStillOrphanGroup(t *testing.T) {
	order := safety.DeleteOrphan{ProviderID: "g-web", Name: "fleet/web"}
	assert.True(t, order.StillOrphanGroup(nil))
	assert.True(t, order.StillOrphanGroup(poolNamed("other", "g-other")))
	assert.False(t, order.StillOrphanGroup(poolNamed("web", "")), "it may be about to adopt it")
	assert.False(t, order.StillOrphanGroup(poolNamed("web", "g-new")), "its name is on it")
	assert.False(t, order.StillOrphanGroup(poolNamed("other", "g-web")), "it has recorded it")
}
