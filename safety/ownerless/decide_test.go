package ownerless_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/ownerless"
	"github.com/millwright-go/millwright/test/safetytest"
)

// store has machines, sets and deployments, and a process that deletes those without an owner.
type store struct {
	safetytest.Journal
	t           require.TestingT
	policy      *safety.Policy
	machines    []*machine.Machine
	sets        []*machineset.Set
	deployments []*deployment.Deployment
	stale       *ownerless.Observation // what caches show; nil: the current state
	between     func()                 // what others do between a read and a delete

	candidates []ownerless.Candidate
	spent      []safety.Spent
	looked     time.Time
	reads      int
	frozen     bool
	gone       map[string]time.Time // when objects were deleted, by UID
	plan       ownerless.Plan
}

func newStore(t require.TestingT) *store {
	return &store{Journal: safetytest.Journal{Now: safetytest.Epoch}, t: t, policy: safety.DefaultPolicy(), gone: map[string]time.Time{}}
}

func metaOf(name string, kind, owner string) object.Meta {
	m := object.Meta{Key: object.Key{Namespace: "fleet", Name: name}, UID: "u-" + name, CreatedAt: safetytest.Epoch}
	if owner != "" {
		m.Owner = &object.Owner{Kind: kind, Name: owner, UID: "u-" + owner}
	}
	return m
}

func (f *store) machine(name, set string) *machine.Machine {
	m := &machine.Machine{Meta: metaOf(name, machineset.OwnerKind, set)}
	f.machines = append(f.machines, m)
	return m
}

func (f *store) set(name, owner string) *machineset.Set {
	s := &machineset.Set{Meta: metaOf(name, deployment.OwnerKind, owner)}
	f.sets = append(f.sets, s)
	return s
}

func (f *store) deployment(name string) {
	f.deployments = append(f.deployments, &deployment.Deployment{Meta: metaOf(name, "", "")})
}

// meta returns the object that has a name at present.
func (f *store) meta(set bool, name string) *object.Meta {
	for _, m := range f.machines {
		if !set && m.Name == name {
			return &m.Meta
		}
	}
	for _, s := range f.sets {
		if set && s.Name == name {
			return &s.Meta
		}
	}
	return nil
}

func (f *store) owner(order *ownerless.Delete) *object.Meta {
	if !order.Set {
		return f.meta(true, order.Owner.Name)
	}
	for _, d := range f.deployments {
		if d.Name == order.Owner.Name {
			return &d.Meta
		}
	}
	return nil
}

func (f *store) read(o *ownerless.Observation) {
	o.Machines, o.Sets, o.Deployments = slices.Clone(f.machines), slices.Clone(f.sets), slices.Clone(f.deployments)
}

// pass decides and carries out plans until there is nothing to do.
func (f *store) pass() {
	o := &ownerless.Observation{}
	f.read(o)
	if f.stale != nil {
		*o = *f.stale
	}
	o.Candidates, o.Spent, o.Looked, o.Frozen, o.Ordered = f.candidates, f.spent, f.looked, f.frozen, map[string]bool{}
	for range 50 {
		plan, err := ownerless.Decide(o, f.policy, f.Now)
		require.NoError(f.t, err)
		f.plan, f.candidates, f.spent = plan, plan.Candidates, plan.Spent
		o.Candidates, o.Spent = plan.Candidates, plan.Spent
		f.Warn(plan.Warn...)
		switch {
		case plan.Read:
			f.Line("", "read all live", plan.Why)
			f.read(o)
			o.Read, o.Looked, f.looked = decision.Freshness{Began: f.Now}, f.Now, f.Now
			f.reads++
		case len(plan.Delete) > 0:
			if f.between != nil {
				f.between()
			}
			for i := range plan.Delete {
				f.remove(&plan.Delete[i])
				o.Ordered[plan.Delete[i].UID] = true
			}
		default:
			f.Line("", "wait until "+f.Since(plan.At), plan.Why)
			return
		}
	}
	require.Fail(f.t, "the pass does not end")
}

// remove deletes an object if the last check before a delete allows it.
func (f *store) remove(order *ownerless.Delete) {
	if !order.StillOwnerless(f.meta(order.Set, order.Key.Name), f.owner(order)) {
		f.Line("", "leave "+order.Key.Name, order.Why)
		return
	}
	f.Line("", "delete "+order.Key.Name, order.Why)
	f.gone[order.UID] = f.Now
	f.machines = slices.DeleteFunc(slices.Clone(f.machines), func(m *machine.Machine) bool { return m.UID == order.UID })
	f.sets = slices.DeleteFunc(slices.Clone(f.sets), func(s *machineset.Set) bool { return s.UID == order.UID })
}

// wait makes n passes, each at the time that the last plan names.
func (f *store) wait(n int) {
	for range n {
		f.Now = f.plan.At
		f.pass()
	}
}

var stories = map[string]func(*store){
	"ownerless machine that came late": func(f *store) {
		f.machine("own", "web-1")
		f.set("web-1", "web")
		f.deployment("web")
		f.pass()
		f.machine("late", "web-0")
		f.Say("a create of set web-0 comes in; the set went a while ago")
		f.Now = f.Now.Add(time.Minute)
		f.pass()
		f.wait(2)
	},
	"ownerless set that came late": func(f *store) {
		f.machine("m-1", "web-0")
		f.set("web-0", "web")
		f.pass()
		f.wait(1)
		f.Say("its machines are its own to delete; this one came when it was gone")
		f.Now = f.Now.Add(time.Minute)
		f.pass()
		f.wait(1)
	},
	"ownerless to the cache only": func(f *store) {
		f.machine("m-1", "web-0")
		f.stale = &ownerless.Observation{Machines: f.machines}
		f.set("web-0", "")
		f.pass()
		f.Now = f.Now.Add(time.Minute)
		f.pass()
	},
	"ownerless and braked": func(f *store) {
		f.Say("the sets are not where they are looked for")
		for i := range 5 {
			f.machine(fmt.Sprint("m-", i), "web-0")
		}
		f.pass()
		f.wait(3)
	},
	"ownerless machine that moves": func(f *store) {
		m := f.machine("m-1", "web-0")
		f.pass()
		f.between = func() { m.Owner = &object.Owner{Kind: machineset.OwnerKind, Name: "web-1", UID: "u-web-1"} }
		f.wait(1)
	},
}

// TestStories compares what is deleted with the files in testdata.
func TestStories(t *testing.T) {
	for name, run := range stories {
		t.Run(name, func(t *testing.T) {
			f := newStore(t)
			run(f)
			safetytest.Compare(t, name, &f.Journal)
		})
	}
}

// busyStore is a store in which objects are created, deleted and handed to other owners while passes run.
type busyStore struct {
	*store
	rapid                     *rapid.T
	serial                    int
	setNames, deploymentNames []string             // all names so far, each used once
	lost                      map[string]time.Time // since when a UID has no owner
}

// note records which objects have lost their owner by now.
func (b *busyStore) note() {
	for _, m := range b.machines {
		b.judge(b.lost, &m.Meta, machineset.OwnerKind, b.meta(true, ownerName(&m.Meta)))
	}
	for _, s := range b.sets {
		order := &ownerless.Delete{Set: true, Owner: object.Owner{Name: ownerName(&s.Meta)}}
		b.judge(b.lost, &s.Meta, deployment.OwnerKind, b.owner(order))
	}
}

// act makes one thing happen.
func (b *busyStore) act() {
	b.serial++
	name := fmt.Sprint("x-", b.serial)
	set, owner := rapid.SampledFrom(b.setNames).Draw(b.rapid, "set"), rapid.SampledFrom(b.deploymentNames).Draw(b.rapid, "deployment")
	switch rapid.SampledFrom([]string{"machine", "set", "deployment", "no set", "no deployment", "move", "foreign", "free"}).Draw(b.rapid, "act") {
	case "machine":
		b.machine(name, set)
	case "free":
		b.machine(name, "")
		b.set(fmt.Sprint("free-", b.serial), "")
	case "set":
		b.set(name, owner)
		b.setNames = append(b.setNames, name)
	case "deployment":
		b.deployment(name)
		b.deploymentNames = append(b.deploymentNames, name)
	case "no set":
		b.sets = slices.DeleteFunc(slices.Clone(b.sets), func(s *machineset.Set) bool { return s.Name == set })
	case "no deployment":
		b.deployments = slices.DeleteFunc(slices.Clone(b.deployments), func(d *deployment.Deployment) bool { return d.Name == owner })
	case "move":
		b.move(set)
	case "foreign":
		b.machine(name, "never").Owner.Kind = "Other"
	}
	b.note()
}

// move hands a machine to a set that exists.
func (b *busyStore) move(set string) {
	if n := len(b.machines); n > 0 && b.meta(true, set) != nil {
		m := b.machines[rapid.IntRange(0, n-1).Draw(b.rapid, "which")].Clone()
		m.Owner = metaOf("", machineset.OwnerKind, set).Owner
		b.machines = append(slices.DeleteFunc(slices.Clone(b.machines), func(o *machine.Machine) bool { return o.UID == m.UID }), m)
	}
}

// acts makes some things happen, at most the given number.
func (b *busyStore) acts(most int) {
	for range rapid.IntRange(0, most).Draw(b.rapid, "acts") {
		b.act()
	}
	b.note()
}

// step makes things happen, runs a pass, and checks what it deletes.
func (b *busyStore) step() {
	b.Now = b.Now.Add(time.Duration(rapid.IntRange(0, 150).Draw(b.rapid, "pause")) * time.Second)
	b.acts(3)
	if rapid.IntRange(0, 3).Draw(b.rapid, "lag") == 0 {
		b.stale = &ownerless.Observation{}
		b.read(b.stale)
	}
	b.pass()
	for uid, at := range b.gone {
		if at.Equal(b.Now) {
			since, was := b.lost[uid]
			require.True(b.t, was && !b.Now.Before(since.Add(b.policy.OwnerGap)), "%s was deleted before it had no owner for OwnerGap", uid)
		}
	}
}

// TestOwnerlessAreDeleted: objects are created, deleted and moved, and caches are stale. No object is deleted if its
// owner exists, or existed less than OwnerGap ago, or if it names no owner or one of another kind. In the end no
// object is left whose owner is gone.
// Invariants: P29
func TestOwnerlessAreDeleted(t *testing.T) {
	deletes := 0
	rapid.Check(t, func(t *rapid.T) {
		b := &busyStore{store: newStore(t), rapid: t, setNames: []string{"never"}, deploymentNames: []string{"never"}, lost: map[string]time.Time{}}
		b.between = func() { b.acts(2) }
		for range rapid.IntRange(3, 25).Draw(t, "steps") {
			b.step()
		}
		deletes += len(b.gone)
		b.stale, b.between = nil, nil
		for range 40 {
			b.Now = b.plan.At
			b.pass()
		}
		clear(b.lost)
		b.note()
		require.Empty(t, b.lost, "objects without an owner are left")
	})
	assert.Positive(t, deletes)
}

func ownerName(m *object.Meta) string {
	if m.Owner == nil {
		return ""
	}
	return m.Owner.Name
}

// judge records since when an object has no owner, by the model's own rule.
func (f *store) judge(lost map[string]time.Time, m *object.Meta, kind string, owner *object.Meta) {
	if m.Owner == nil || m.Owner.Kind != kind || owner != nil && owner.UID == m.Owner.UID {
		delete(lost, m.UID)
		return
	}
	if _, known := lost[m.UID]; !known {
		lost[m.UID] = f.Now
	}
}

// TestOwnerlessReadsSeldom: a cache that stays stale causes a live read at most every OwnerGap. If the clock is set
// back, an object must be seen without its owner twice again.
func TestOwnerlessReadsSeldom(t *testing.T) {
	f := newStore(t)
	f.machine("m-1", "web-0")
	f.stale = &ownerless.Observation{Machines: f.machines}
	f.set("web-0", "")
	for range 600 {
		f.pass()
		f.Now = f.Now.Add(time.Second)
	}
	assert.Equal(t, 5, f.reads)
	f.sets, f.stale = nil, nil
	f.Now = f.Now.Add(time.Hour)
	f.pass()
	f.Now = f.Now.Add(-time.Hour)
	f.pass()
	f.wait(1)
	assert.Empty(t, f.machines)
	assert.Less(t, f.Now.Sub(safetytest.Epoch), 15*time.Minute)
}

// TestOwnerlessLeavesAlone: while the fleet is frozen, nothing is deleted. If other programs manage the deployments,
// no set is.
// Invariants: P29
func TestOwnerlessLeavesAlone(t *testing.T) {
	f := newStore(t)
	f.machine("m-1", "web-0")
	f.frozen = true
	f.pass()
	f.Now = f.Now.Add(time.Hour)
	f.pass()
	assert.Len(t, f.machines, 1)
	assert.Zero(t, f.reads)
	s := &machineset.Set{Meta: metaOf("web-0", deployment.OwnerKind, "web")}
	o := &ownerless.Observation{Sets: []*machineset.Set{s}, NoDeployments: true}
	plan, err := ownerless.Decide(o, f.policy, safetytest.Epoch)
	require.NoError(t, err)
	assert.Equal(t, ownerless.ReasonAllOwned, plan.Why.Reason)
	o.NoDeployments = false
	plan, err = ownerless.Decide(o, f.policy, safetytest.Epoch)
	require.NoError(t, err)
	assert.True(t, plan.Read)
	s.DeletedAt = safetytest.Epoch
	plan, err = ownerless.Decide(o, f.policy, safetytest.Epoch)
	require.NoError(t, err)
	assert.False(t, plan.Read, "the set is being deleted")
}

// TestStillOwnerless: just before a delete, the object and its owner are checked once more.
func TestStillOwnerless(t *testing.T) {
	order := ownerless.Delete{UID: "u-m", Owner: object.Owner{Name: "web-0", UID: "u-web-0"}}
	child := metaOf("m", machineset.OwnerKind, "web-0")
	other, owner := metaOf("web-0", "", ""), metaOf("web-0", "", "")
	other.UID = "another"
	assert.True(t, order.StillOwnerless(&child, nil))
	assert.True(t, order.StillOwnerless(&child, &other), "another object has the owner's name")
	assert.False(t, order.StillOwnerless(&child, &owner), "the owner exists")
	assert.False(t, order.StillOwnerless(nil, nil))
	for _, change := range []func(*object.Meta){
		func(m *object.Meta) { m.DeletedAt = safetytest.Epoch },
		func(m *object.Meta) { m.UID = "another" },
		func(m *object.Meta) { m.Owner = nil },
		func(m *object.Meta) { m.Owner = &object.Owner{Name: "web-0", UID: "another"} },
	} {
		changed := child
		change(&changed)
		assert.False(t, order.StillOwnerless(&changed, nil))
	}
}

// TestOwnerlessWithAnotherOwner: an object must be seen twice without the same owner. If it was handed to another
// set, which is gone too, counting begins again.
func TestOwnerlessWithAnotherOwner(t *testing.T) {
	f := newStore(t)
	m := f.machine("m-1", "web-0")
	f.pass()
	m.Owner = metaOf("", machineset.OwnerKind, "web-1").Owner
	f.wait(1)
	assert.Len(t, f.machines, 1)
	f.wait(1)
	assert.Empty(t, f.machines)
}

func anyObservation(t *rapid.T) *ownerless.Observation {
	return &ownerless.Observation{
		Machines: safetytest.List(t, "machines", safetytest.AnyMachine), Sets: safetytest.List(t, "lone sets", safetytest.AnySet), Deployments: safetytest.List(t, "deployments", safetytest.AnyDeployment),
		NoDeployments: rapid.Bool().Draw(t, "no deployments"), Read: decision.Freshness{Began: safetytest.AnyTime.Draw(t, "owners live")}, Looked: safetytest.AnyTime.Draw(t, "looked"),
		Candidates: safetytest.List(t, "candidates", func(t *rapid.T) ownerless.Candidate {
			return ownerless.Candidate{UID: safetytest.AnyWord.Draw(t, "uid"), Owner: safetytest.AnyWord.Draw(t, "of"), Since: safetytest.AnyTime.Draw(t, "since")}
		}),
		Spent: safetytest.List(t, "spent", safetytest.AnySpent), Began: safetytest.AnyTime.Draw(t, "began"), Frozen: rapid.IntRange(0, 9).Draw(t, "frozen") == 0,
	}
}

// Invariants: P11 P27
func TestP11P27AnythingHasOnePlan(t *testing.T) {
	safetytest.OnePlan(t, ownerless.Decide, anyObservation)
}

// Invariants: P11 P27
func FuzzDecide(f *testing.F) {
	safetytest.Fuzz(f, ownerless.Decide, anyObservation, func(t testing.TB, p ownerless.Plan) {
		safetytest.Explained(t, time.Time{}, p.Why) // At counts from the live read, which may have been long ago
	}, nil)
}

func TestMain(m *testing.M) { os.Exit(safetytest.Run(m)) }
