package orphan_test

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
	"github.com/millwright-go/millwright/safety/orphan"
	"github.com/millwright-go/millwright/test/safetytest"
)

func poolNamed(name, group string) *machinepool.Pool {
	p := &machinepool.Pool{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: name}}}
	p.Status.GroupID = group
	return p
}

// groupToDelete returns an observation at now of a group that was seen before and has no pool.
func groupToDelete(p *safety.Policy, now time.Time) *orphan.Observation {
	class := object.Key{Namespace: "fleet", Name: "a"}
	return &orphan.Observation{
		Groups: true, Pools: []*machinepool.Pool{poolNamed("other", "g-other")}, Read: decision.Freshness{Began: now},
		Classes: []orphan.Class{{Key: class, Asked: now, Listing: &orphan.Listing{
			Asked: now, Answered: now, VMs: map[string]string{"g-web": "fleet/web", "g-other": "fleet/other"},
		}}},
		Candidates: []orphan.Candidate{{Class: class, ProviderID: "g-web", Name: "fleet/web", Since: now.Add(-p.OrphanGap)}},
	}
}

// TestOrphanGroupsAreGuarded: a group that was listed twice without a pool is deleted. Each single reason to keep it
// keeps it.
// Invariants: P15 P48
func TestOrphanGroupsAreGuarded(t *testing.T) {
	now := safetytest.Epoch.Add(time.Hour)
	decide := func(change func(*orphan.Observation, *safety.Policy)) orphan.Plan {
		p := safety.DefaultPolicy()
		o := groupToDelete(p, now)
		if change != nil {
			change(o, p)
		}
		plan, err := orphan.Decide(o, p, now)
		require.NoError(t, err)
		return plan
	}
	plan := decide(nil)
	require.Len(t, plan.Delete, 1)
	require.Equal(t, "g-web", plan.Delete[0].ProviderID)
	require.Equal(t, "group g-web was made for pool fleet/web, which is gone", plan.Delete[0].Why.String())
	for name, change := range map[string]func(*orphan.Observation, *safety.Policy){
		"seen once":             func(o *orphan.Observation, _ *safety.Policy) { o.Candidates = nil },
		"seen twice in no time": func(o *orphan.Observation, _ *safety.Policy) { o.Candidates[0].Since = now.Add(-time.Second) },
		"seen for another pool": func(o *orphan.Observation, _ *safety.Policy) { o.Candidates[0].Name = "fleet/before" },
		"pools from a cache":    func(o *orphan.Observation, _ *safety.Policy) { o.Read = decision.Freshness{} },
		"pools read before": func(o *orphan.Observation, _ *safety.Policy) {
			o.Read = decision.Freshness{Began: now.Add(-time.Second)}
		},
		"a pool of its name": func(o *orphan.Observation, _ *safety.Policy) {
			o.Pools = append(o.Pools, poolNamed("web", "g-new"))
		},
		"a pool that records it": func(o *orphan.Observation, _ *safety.Policy) {
			o.Pools = append(o.Pools, poolNamed("renamed", "g-web"))
		},
		"a pool that records it in another spelling": func(o *orphan.Observation, _ *safety.Policy) {
			o.Pools = append(o.Pools, poolNamed("renamed", "G-WEB/"))
		},
		"a pool of its name in another spelling": func(o *orphan.Observation, _ *safety.Policy) {
			o.Pools = append(o.Pools, poolNamed("Web", "g-new"))
		},
		"no pool's group is listed": func(o *orphan.Observation, _ *safety.Policy) {
			o.Pools = []*machinepool.Pool{poolNamed("unlisted", "g-1")}
			o.Pools[0].Spec.Template.Class.Name, o.Pools[0].Status.InfrastructureReady = "a", true
		},
		"an empty store":  func(o *orphan.Observation, _ *safety.Policy) { o.Pools = []*machinepool.Pool{nil} },
		"frozen":          func(o *orphan.Observation, _ *safety.Policy) { o.Frozen = true },
		"another fleet's": func(_ *orphan.Observation, p *safety.Policy) { p.OrphanPrefix = "fleet" },
		"the brake": func(o *orphan.Observation, _ *safety.Policy) {
			o.Spent = []safety.Spent{{ID: "x", At: now}, {ID: "y", At: now}, {ID: "z", At: now}}
		},
	} {
		assert.Empty(t, decide(change).Delete, name)
	}
	for name, change := range map[string]func(*orphan.Observation, *safety.Policy){
		"sets in the store":   func(o *orphan.Observation, _ *safety.Policy) { o.Pools, o.Owners = nil, 1 },
		"empty by policy":     func(o *orphan.Observation, p *safety.Policy) { o.Pools, p.OrphansOfEmptyStore = nil, true },
		"this fleet's prefix": func(_ *orphan.Observation, p *safety.Policy) { p.OrphanPrefix = "we" },
		"a machine of that name owns nothing": func(o *orphan.Observation, _ *safety.Policy) {
			m := &machine.Machine{Meta: object.Meta{Key: object.Key{Name: "fleet/web"}}}
			m.Spec.ProviderID = "g-web"
			o.Machines = append(o.Machines, m)
		},
	} {
		assert.Len(t, decide(change).Delete, 1, name)
	}
}

// TestOrphanGroupsSpeakOfGroups: reasons about groups name groups, and not VMs.
func TestOrphanGroupsSpeakOfGroups(t *testing.T) {
	p, now := safety.DefaultPolicy(), safetytest.Epoch.Add(time.Hour)
	p.OrphanPrefix = "web"
	sentences := map[decision.Reason]string{}
	decide := func(o *orphan.Observation) {
		plan, err := orphan.Decide(o, p, now)
		require.NoError(t, err)
		all := append([]decision.Why{plan.Why}, plan.Warn...)
		for i := range plan.List {
			all = append(all, plan.List[i].Why)
		}
		for i := range plan.Delete {
			all = append(all, plan.Delete[i].Why)
		}
		for _, why := range all {
			sentences[why.Reason] = why.String()
		}
	}
	for _, change := range []func(*orphan.Observation){
		func(*orphan.Observation) {},
		func(o *orphan.Observation) { o.Classes[0].Listing, o.Classes[0].Asked = nil, time.Time{} },
		func(o *orphan.Observation) { o.Read = decision.Freshness{} },
		func(o *orphan.Observation) { o.Candidates = nil },
		func(o *orphan.Observation) { o.Pools = nil },
		func(o *orphan.Observation) { o.Classes[0].Listing.VMs = nil },
		func(o *orphan.Observation) {
			o.Classes[0].Listing.VMs = map[string]string{"": "fleet/web", "g": "", "h": "fleet/cattle"}
		},
		func(o *orphan.Observation) { o.Classes[0].Listing.Code = codes.Unavailable },
		func(o *orphan.Observation) {
			o.Tries = []orphan.Try{{ProviderID: "g-web", At: now, Code: codes.Aborted, Failures: 1}}
		},
		func(o *orphan.Observation) {
			o.Spent = []safety.Spent{{ID: "x", At: now}, {ID: "y", At: now}, {ID: "z", At: now}}
		},
	} {
		o := groupToDelete(p, now)
		change(o)
		decide(o)
	}
	for _, reason := range []decision.Reason{
		orphan.ReasonListGroups, orphan.ReasonReadPools, orphan.ReasonOrphanGroup, orphan.ReasonGroupSecondLook, orphan.ReasonGroupDeleteFailed,
		orphan.ReasonListGroupsFailed, orphan.ReasonGroupNoID, orphan.ReasonGroupNoName, orphan.ReasonGroupOfOthers, orphan.ReasonNoOrphanGroups,
		orphan.ReasonGroupsBraked, orphan.ReasonNoPoolInStore,
	} {
		assert.Contains(t, sentences, reason)
	}
	for reason, sentence := range sentences {
		assert.NotContains(t, sentence, "VM", reason)
		assert.Contains(t, sentence, "group", reason)
	}
}

// TestNoOwnedGroupIsDeleted: pools are created, changed and deleted between the listings. No group is deleted that
// belongs to a pool of the live read.
// Invariants: P15
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
		o := &orphan.Observation{Groups: true, Deleted: map[string]bool{}}
		class := orphan.Class{Key: object.Key{Name: "a"}}
		for range 3 {
			now = now.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "pause")) * time.Second)
			listed := map[string]string{}
			for _, name := range names {
				if rapid.Bool().Draw(t, "listed "+name) {
					listed["g-"+name] = "fleet/" + name
				}
			}
			class.Asked, class.Listing = now, &orphan.Listing{Asked: now, Answered: now, VMs: listed}
			o.Classes, o.Pools, o.Read = []orphan.Class{class}, pools("pools"), decision.Freshness{Began: now}
			plan, err := orphan.Decide(o, p, now)
			require.NoError(t, err)
			for i := range plan.Delete {
				deletes++
				for _, pool := range o.Pools {
					require.NotEqual(t, pool.Key.String(), plan.Delete[i].Name)
					require.NotEqual(t, pool.Status.GroupID, plan.Delete[i].ProviderID)
					require.True(t, plan.Delete[i].StillOrphanGroup(pool))
				}
				require.Contains(t, o.Candidates, orphan.Candidate{
					Class: class.Key, ProviderID: plan.Delete[i].ProviderID, Name: plan.Delete[i].Name, Since: sightedAt(o.Candidates, plan.Delete[i].ProviderID),
				})
				require.False(t, now.Before(sightedAt(o.Candidates, plan.Delete[i].ProviderID).Add(p.OrphanGap)))
			}
			o.Candidates, o.Spent = plan.Candidates, plan.Spent
		}
	})
	assert.Positive(t, deletes, "no group was ever deleted")
}

// sightedAt returns when a group was first listed without a pool. Far in the future: never.
func sightedAt(all []orphan.Candidate, id string) time.Time {
	for _, s := range all {
		if s.ProviderID == id {
			return s.Since
		}
	}
	return safetytest.Epoch.Add(24 * time.Hour)
}

// TestStillOrphanGroup: just before a delete all pools are checked once more.
func TestStillOrphanGroup(t *testing.T) {
	order := orphan.Delete{ProviderID: "g-web", Name: "fleet/web"}
	assert.True(t, order.StillOrphanGroup(nil))
	assert.True(t, order.StillOrphanGroup(poolNamed("other", "g-other")))
	assert.False(t, order.StillOrphanGroup(poolNamed("web", "")), "the pool has no group yet and may adopt this one")
	assert.False(t, order.StillOrphanGroup(poolNamed("web", "g-new")), "the group has the pool's name")
	assert.False(t, order.StillOrphanGroup(poolNamed("other", "g-web")), "the pool has recorded the group")
}

// TestDeletesWaitForTheProvider: a delete that failed is tried again after its wait, and no sooner than
// the provider asked for.
func TestDeletesWaitForTheProvider(t *testing.T) {
	p, now := safety.DefaultPolicy(), safetytest.Epoch.Add(time.Hour)
	for _, failures := range []int{0, 1} {
		o := groupToDelete(p, now)
		o.Tries = []orphan.Try{{ProviderID: "g-web", At: now.Add(-time.Hour), Code: codes.Unavailable, Failures: failures, NotBefore: now.Add(time.Second)}}
		plan, err := orphan.Decide(o, p, now)
		require.NoError(t, err)
		assert.Empty(t, plan.Delete, "%d failures", failures)
		o.Tries[0].NotBefore = now
		plan, err = orphan.Decide(o, p, now)
		require.NoError(t, err)
		assert.Len(t, plan.Delete, 1, "%d failures", failures)
	}
}
