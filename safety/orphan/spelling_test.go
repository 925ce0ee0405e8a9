package orphan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/orphan"
	"github.com/millwright-go/millwright/test/safetytest"
)

// anySpelling draws another spelling of identities: case, a prefix, slashes.
func anySpelling(t *rapid.T, label string) func(string) string {
	fold := rapid.SampledFrom([]func(string) string{strings.Clone, strings.ToUpper, strings.ToLower}).Draw(t, label+" case")
	prefix := rapid.SampledFrom([]string{"", "list-", "/", "cloud:///Region-1/"}).Draw(t, label+" prefix")
	end := rapid.SampledFrom([]string{"", "/"}).Draw(t, label+" end")
	return func(s string) string { return prefix + fold(s) + end }
}

var phases = []machine.Phase{
	machine.PhaseNew, machine.PhasePending, machine.PhaseAvailable, machine.PhaseRunning, machine.PhaseUnknown,
	machine.PhaseFailed, machine.PhaseTerminating, machine.PhaseCrashLoopBackOff, machine.PhaseInPlaceUpdating,
}

// However lists spell the IDs and names of machines' VMs, and in any phase of the machines, none of
// these VMs goes. What was spelled otherwise is told once.
// Invariants: P48
func TestP48SpelledOtherwise(t *testing.T) {
	spelled, gone := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		c := newCloud(t, "a", "b")
		c.shared = rapid.Bool().Draw(t, "shared")
		id, name := anySpelling(t, "ID"), anySpelling(t, "name")
		c.spell = func(v *vm) (string, string) { return id(v.id), name(v.name) }
		own := map[string]bool{}
		for i := range rapid.IntRange(1, 6).Draw(t, "machines") {
			class := rapid.SampledFrom(c.classes).Draw(t, "class")
			v := c.boot(fmt.Sprintf("Web-%d", i), class)
			own[v.id] = true
			m := c.give(v.name, class, rapid.SampledFrom(phases).Draw(t, "phase"), v.id)
			if rapid.IntRange(0, 4).Draw(t, "deleted") == 0 {
				m.DeletedAt = c.Now
			}
		}
		strangers := rapid.IntRange(0, 3).Draw(t, "strangers")
		for range strangers {
			c.boot("gone", rapid.SampledFrom(c.classes).Draw(t, "of"))
		}
		c.begin()
		c.wait(60)
		left := c.left()
		for _, id := range left {
			delete(own, id)
		}
		require.Empty(t, own, "VMs of machines that went")
		if id("p://1") != "p://1" && name("Web-0") != "Web-0" {
			require.Positive(t, c.warned[orphan.ReasonSpelled])
			spelled++
		}
		gone += strangers + len(c.machines) - len(left)
	})
	assert.Positive(t, spelled)
	assert.Positive(t, gone, "nothing is collected")
}

// A class none of whose available machines is listed, though others are, may be listed by other IDs
// and names: none of those goes, in this pass or a later one, through this class or another one.
// Invariants: P48
func TestNoneOfAClassIsListed(t *testing.T) {
	c := newCloud(t, "a", "b")
	c.shared = true
	for i := range 5 {
		name := fmt.Sprintf("web-%d", i)
		c.give(name, "b", machine.PhaseRunning, c.boot(name, "b").id)
	}
	c.spell = func(v *vm) (string, string) { return "x" + v.id[4:], "x" + v.name }
	c.begin()
	c.wait(20)
	require.Len(t, c.left(), 5)
	require.Positive(t, c.warned[orphan.ReasonStrangersOnly])
	c.hints = append(c.hints, orphan.Hint{Class: c.known["a"].Key, At: c.Now}) // a is listed, and b is not
	c.wait(4)
	require.Len(t, c.left(), 5)

	c.spell = nil
	stray := c.boot("gone", "a")
	c.Now = c.Now.Add(time.Hour)
	c.wait(4)
	require.Len(t, c.left(), 5, "the list is right again")
	require.NotContains(t, c.left(), stray.id)
}

// A VM whose name is alike to a machine's is none of it if the machine's own VM is listed.
func TestAlikeNameBesideTheOwnVM(t *testing.T) {
	c := newCloud(t, "a")
	own := c.boot("web-1", "a")
	c.give("web-1", "a", machine.PhaseRunning, own.id)
	c.boot("prod-web-1", "a")
	c.begin()
	c.wait(4)
	require.Equal(t, []string{own.id}, c.left())
}

// An order is dropped for a machine whose recorded ID is the order's in another spelling.
func TestStillOrphanComparesSpellings(t *testing.T) {
	m := &machine.Machine{}
	m.Name, m.Spec.ProviderID = "web-1", "cloud:///Blue/1"
	assert.False(t, (&orphan.Delete{ProviderID: "CLOUD:///BLUE/1/", Name: "gone"}).StillOrphan(m))
	assert.True(t, (&orphan.Delete{ProviderID: "cloud:///Blue/11", Name: "gone"}).StillOrphan(m))
}

// A list shows no machine that became available when it had been asked for, and is right all the same.
func TestMachinesThatComeAfterTheList(t *testing.T) {
	for _, since := range []time.Duration{-time.Hour, -time.Second, 0, time.Second} {
		m := &machine.Machine{}
		m.Name, m.Spec.ProviderID, m.Spec.Class.Name = "web-1", "cloud:///1", "a"
		m.Status.Phase, m.Status.Since = machine.PhaseRunning, safetytest.Epoch.Add(since)
		l := &orphan.Listing{Asked: safetytest.Epoch, Answered: safetytest.Epoch, VMs: map[string]string{"cloud:///9": "gone"}}
		o := &orphan.Observation{Owners: 1, Machines: []*machine.Machine{m}, Classes: []orphan.Class{{Asked: safetytest.Epoch, Listing: l}}}
		o.Read, o.Classes[0].Key.Name = decision.Freshness{Began: safetytest.Epoch}, "a"
		plan, err := orphan.Decide(o, safety.DefaultPolicy(), safetytest.Epoch)
		require.NoError(t, err)
		require.Equal(t, since < 0, len(plan.Blind) > 0, since)
		require.Equal(t, since >= 0, len(plan.Candidates) > 0, since)
	}
}

// The instances of pools are no strangers in another spelling either.
// Invariants: P48
func TestInstancesSpelledOtherwise(t *testing.T) {
	o := &orphan.Observation{Owners: 1, Instances: map[string]bool{"cloud:///Blue/1": true}}
	l := &orphan.Listing{Asked: safetytest.Epoch, Answered: safetytest.Epoch, VMs: map[string]string{"cloud:///BLUE/1": "vmss-1", "cloud:///BLUE/2": "vmss-2"}}
	o.Classes, o.Read = []orphan.Class{{Asked: safetytest.Epoch, Listing: l}}, decision.Freshness{Began: safetytest.Epoch}
	o.Classes[0].Key.Name = "a"
	plan, err := orphan.Decide(o, safety.DefaultPolicy(), safetytest.Epoch)
	require.NoError(t, err)
	require.Len(t, plan.Candidates, 1)
	assert.Equal(t, "cloud:///BLUE/2", plan.Candidates[0].ProviderID)
}
