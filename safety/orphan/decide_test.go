package orphan_test

import (
	"fmt"
	"strings"
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

// busyCloud is a cloud in which machines and VMs change while the collector runs.
type busyCloud struct {
	*cloud
	rapid *rapid.T
	late  []func() // creates that are still on their way
	names int
}

// pick returns any machine, or nil if there is none.
func (f *busyCloud) pick() *machine.Machine {
	if len(f.machines) == 0 {
		return nil
	}
	all := f.live()
	return f.machines[all[rapid.IntRange(0, len(all)-1).Draw(f.rapid, "machine")].Name]
}

// act makes one thing happen to a machine or a VM.
func (f *busyCloud) act() {
	m := f.pick()
	op := rapid.SampledFrom([]string{
		"new", "announce", "call", "call", "late", "status", "fail", "run", "run", "delete", "gone", "orphaned",
	}).Draw(f.rapid, "act")
	switch {
	case op == "new":
		f.names++
		f.addMachine("m-"+string(rune('a'+f.names%26))+string(rune('0'+f.names/26)), rapid.SampledFrom(f.classes).Draw(f.rapid, "class"), machine.PhaseNew, "")
	case op == "late" && len(f.late) > 0:
		f.late[0]()
		f.late = f.late[1:]
	case op == "orphaned":
		f.createVM("ghost", f.classes[0])
	case m == nil:
	case op == "gone" && m.Deleted():
		f.finishDeletion(m)
	case op == "delete" && !m.Deleted():
		m.DeletedAt, m.Status.DeletedFrom, m.Status.Phase = f.Now, m.Status.Phase, machine.PhaseTerminating
	case !m.Deleted():
		f.create(m, op)
	}
}

// create makes the next thing happen in a machine's creation.
func (f *busyCloud) create(m *machine.Machine, op string) {
	s := &m.Status
	switch {
	case op == "announce" && m.Spec.ProviderID == "":
		s.Phase = machine.PhasePending
		s.LastOperation = machine.Operation{
			Kind: machine.OperationCreate, State: machine.StateProcessing, Stage: machine.StageCreateVM, Time: f.Now.Truncate(time.Second),
		}
	case op == "call" && s.Phase == machine.PhasePending && m.Spec.ProviderID == "":
		name, class := m.Name, m.Spec.Class.Name
		if rapid.Bool().Draw(f.rapid, "delayed") {
			f.late = append(f.late, func() { f.createVM(name, class) })
			return
		}
		id := f.createVM(name, class).id
		if rapid.Bool().Draw(f.rapid, "answered") {
			m.Spec.ProviderID = id
		}
	case op == "status" && m.Spec.ProviderID == "":
		f.status(m)
	case op == "fail" && s.Phase != machine.PhaseRunning:
		s.Phase = machine.PhaseCrashLoopBackOff
		s.LastOperation = machine.Operation{
			Kind: machine.OperationCreate, State: machine.StateFailed, Stage: machine.StageCreateVM, Code: codes.Unavailable, Time: f.Now.Truncate(time.Second),
		}
	case op == "run" && m.Spec.ProviderID != "":
		s.Phase = machine.PhaseRunning
	}
}

// status does what a machine's pass does with the answer to GetMachineStatus.
func (f *busyCloud) status(m *machine.Machine) {
	var ids []string
	for _, v := range f.vms {
		if v.name == m.Name && v.gone.IsZero() {
			ids = append(ids, v.id)
		}
	}
	switch len(ids) {
	case 0:
	case 1:
		m.Spec.ProviderID, m.Status.Phase = ids[0], machine.PhasePending
	default:
		outOfRange(m, f.Now)
		f.hints = append(f.hints, orphan.Hint{
			Class: object.Key{Namespace: "fleet", Name: m.Spec.Class.Name}, At: f.Now, Several: m.Name,
		})
	}
}

// finishDeletion removes a machine and its VMs: those with its ID, or those with its name if it has no ID.
func (f *busyCloud) finishDeletion(m *machine.Machine) {
	for _, v := range f.vms {
		if v.gone.IsZero() && (v.id == m.Spec.ProviderID || m.Spec.ProviderID == "" && v.name == m.Name) {
			v.gone = f.Now
		}
	}
	delete(f.machines, m.Name)
}

// inFlight reports whether a create of the machine may still be under way, by the model's own rule.
func inFlight(m *machine.Machine) bool {
	op := m.Status.LastOperation
	if m.Status.Phase == machine.PhaseCrashLoopBackOff && op.Code == codes.OutOfRange && op.Stage == machine.StageGetVMStatus {
		return false
	}
	return m.Spec.ProviderID == "" || m.Status.Phase == machine.PhaseNew || m.Status.Phase == machine.PhaseCrashLoopBackOff
}

// TestP15NoVMOfACreateInFlight: calls are delayed or lost, processes are killed, and reads are stale. No VM is
// deleted (P15, P17) if a machine has recorded its ID, or if the machine of its name has a create in flight. In the
// end the VMs without an owner are gone, and all others exist.
// Invariants: P15
func TestP15NoVMOfACreateInFlight(t *testing.T) {
	deletes := 0
	rapid.Check(t, func(t *rapid.T) {
		f := &busyCloud{cloud: newCloud(t, "a", "b"), rapid: t}
		f.shared = rapid.Bool().Draw(t, "shared")
		f.lag = time.Duration(rapid.IntRange(0, 50).Draw(t, "lag")) * time.Second
		old := f.live()
		f.stale = func() []*machine.Machine { return old }
		f.port = func(string) error {
			if rapid.IntRange(0, 2).Draw(t, "meanwhile") == 0 {
				f.Now = f.Now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "took")) * time.Second)
				f.act()
			}
			if rapid.IntRange(0, 20).Draw(t, "kill") == 0 {
				return safetytest.ErrKilled
			}
			return nil
		}
		sighted := map[string]time.Time{}
		f.deleting = func(d orphan.Delete) {
			deletes++
			require.NotEmpty(t, d.ProviderID)
			for _, m := range f.machines {
				require.NotEqual(t, d.ProviderID, m.Spec.ProviderID, "the VM is recorded by %s", m.Name)
			}
			if m := f.machines[d.Name]; m != nil {
				require.False(t, inFlight(m), "%s has a create in flight: %+v", d.Name, m.Status)
			}
			first, seen := sighted[d.ProviderID]
			require.True(t, seen && !f.Now.Before(first.Add(f.policy.OrphanGap)), "the VM was not listed twice, %s apart", f.policy.OrphanGap)
		}
		for range rapid.IntRange(5, 40).Draw(t, "steps") {
			f.Now = f.Now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "pause")) * time.Second)
			for range rapid.IntRange(0, 4).Draw(t, "acts") {
				f.act()
			}
			if f.pass() != nil || rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
				f.restart()
				clear(sighted)
			}
			for _, s := range f.candidates {
				if _, seen := sighted[s.ProviderID]; !seen {
					sighted[s.ProviderID] = s.Since
				}
			}
			if rapid.Bool().Draw(t, "cache catches up") {
				old = f.live()
			}
		}
		f.settle(t)
	})
	assert.Positive(t, deletes, "no orphan was ever deleted")
}

// settle ends everything in progress, and checks that machines own all VMs that are left.
func (f *busyCloud) settle(t *rapid.T) {
	f.port, f.stale, f.deleting = nil, nil, nil
	for _, create := range f.late {
		create()
	}
	for _, m := range f.live() {
		m := f.machines[m.Name]
		if m.Deleted() {
			f.finishDeletion(m)
			continue
		}
		if m.Status.LastOperation.Code != codes.OutOfRange {
			f.status(m)
		}
		if m.Spec.ProviderID != "" {
			m.Status.Phase, m.Status.LastOperation = machine.PhaseRunning, machine.Operation{}
		}
	}
	f.Now = f.Now.Add(time.Hour)
	for range 6 + len(f.vms) { // the brake allows three deletes in a period
		require.NoError(t, f.pass())
		f.Now = f.plan.At
	}
	owned := map[string]bool{}
	for _, m := range f.machines {
		owned[m.Spec.ProviderID] = m.Spec.ProviderID != ""
	}
	for _, id := range f.left() {
		require.True(t, owned[id], "VM %s has no owner and still exists", id)
		delete(owned, id)
	}
	for id, was := range owned {
		if was {
			require.Fail(t, "a machine lost its VM", "%s", id)
		}
	}
}

// TestP17EmptyIDsAndNames: a VM without an ID or without a name is never deleted.
// Invariants: P17
func TestP17EmptyIDsAndNames(t *testing.T) {
	c := newCloud(t, "a")
	c.addMachine("m-1", "a", machine.PhaseRunning, "")
	c.createVM("gone", "a").id = ""
	c.createVM("", "a")
	c.deleting = func(d orphan.Delete) { assert.Fail(t, "deleted", "%+v", d) }
	for range 5 {
		require.NoError(t, c.pass())
		c.Now = c.Now.Add(time.Minute)
	}
}

// TestMachinesAreReadAfterTheListing: a slow listing may show VMs that were created after a read of machines which
// was made meanwhile. Such a read does not count.
// Invariants: P15
func TestMachinesAreReadAfterTheListing(t *testing.T) {
	p := safety.DefaultPolicy()
	class := object.Key{Name: "a"}
	asked := safetytest.Epoch.Add(time.Hour)
	o := &orphan.Observation{
		Classes: []orphan.Class{{Key: class, Asked: asked, Listing: &orphan.Listing{
			Asked: asked, Answered: asked.Add(time.Minute), VMs: map[string]string{"p://1": "m-1"},
		}}},
		Candidates: []orphan.Candidate{{Class: class, ProviderID: "p://1", Name: "m-1", Since: asked.Add(-p.OrphanGap)}},
		Read:       decision.Freshness{Began: asked.Add(59 * time.Second)}, Owners: 1,
	}
	plan, err := orphan.Decide(o, p, asked.Add(time.Minute))
	require.NoError(t, err)
	assert.True(t, plan.ReadMachines)
	o.Read = decision.Freshness{Began: asked.Add(time.Minute)}
	plan, err = orphan.Decide(o, p, asked.Add(time.Minute))
	require.NoError(t, err)
	assert.Len(t, plan.Delete, 1)
	o.Candidates[0].Since = o.Candidates[0].Since.Add(time.Nanosecond)
	plan, err = orphan.Decide(o, p, asked.Add(time.Minute))
	require.NoError(t, err)
	assert.Empty(t, plan.Delete, "the two listings were less than OrphanGap apart")
	o.Candidates[0].Since, o.Candidates[0].Name = o.Candidates[0].Since.Add(-time.Minute), "m-2"
	plan, err = orphan.Decide(o, p, asked.Add(time.Minute))
	require.NoError(t, err)
	assert.Empty(t, plan.Delete, "in the earlier listing the VM had another name")
}

// TestOneIDUnderTwoNames: a VM that is listed with two names stays while either name has a machine.
// Invariants: P15
func TestOneIDUnderTwoNames(t *testing.T) {
	c := newCloud(t, "a", "b")
	c.vms = append(c.vms, &vm{id: "p://1", name: "gone", class: "a"}, &vm{id: "p://1", name: "m-1", class: "b"})
	c.addMachine("m-1", "b", machine.PhasePending, "")
	for range 4 {
		require.NoError(t, c.pass())
		c.Now = c.Now.Add(time.Minute)
		for _, class := range c.known {
			class.Asked = time.Time{}
		}
	}
	assert.Equal(t, []string{"p://1", "p://1"}, c.left())
	delete(c.machines, "m-1")
	deletes := 0
	c.deleting = func(orphan.Delete) { deletes++ }
	for range 3 {
		require.NoError(t, c.pass())
		c.Now = c.Now.Add(time.Minute)
	}
	assert.Empty(t, c.left())
	assert.Equal(t, 1, deletes)
}

// TestManyOrphansAndManyHints: many orphans are deleted in one pass, Burst at a time. Hints make a class be listed
// at most every OrphanGap.
func TestManyOrphansAndManyHints(t *testing.T) {
	c := newCloud(t, "a")
	c.policy.Burst, c.policy.BrakeShare = 7, 100
	for range 50 {
		c.createVM("gone", "a")
	}
	require.NoError(t, c.pass())
	c.Now = c.Now.Add(c.policy.OrphanGap)
	require.NoError(t, c.pass())
	assert.Empty(t, c.left())
	lists := c.lists
	for range 60 {
		c.Now = c.Now.Add(time.Second)
		c.hints = append(c.hints, orphan.Hint{Class: object.Key{Namespace: "fleet", Name: "a"}, At: c.Now})
		require.NoError(t, c.pass())
	}
	assert.Equal(t, 2, c.lists-lists)
}

// TestExtrasOfAMachineBeingDeleted: a create that was in flight when the machine's deletion began counts as in flight
// until the machine is gone. Extra VMs of a machine that ran before its deletion are deleted.
func TestExtrasOfAMachineBeingDeleted(t *testing.T) {
	for from, deleted := range map[machine.Phase]bool{
		machine.PhaseNew: false, machine.PhaseCrashLoopBackOff: false, machine.PhaseRunning: true, machine.PhasePending: true,
	} {
		c := newCloud(t, "a")
		own := c.createVM("m-1", "a")
		c.createVM("m-1", "a")
		m := c.addMachine("m-1", "a", machine.PhaseTerminating, own.id)
		m.DeletedAt, m.Status.DeletedFrom = safetytest.Epoch, from
		for range 3 {
			require.NoError(t, c.pass())
			c.Now = c.Now.Add(c.policy.OrphanGap)
			c.known["a"].Asked = time.Time{}
		}
		assert.Equal(t, deleted, len(c.left()) == 1, "deleted in phase %q", from)
		assert.Contains(t, c.left(), own.id)
	}
}

// TestStillOrphan: just before a delete, the machine of the VM's name is checked once more.
func TestStillOrphan(t *testing.T) {
	order := orphan.Delete{ProviderID: "p://1", Name: "m-1"}
	m := &machine.Machine{Meta: object.Meta{Key: object.Key{Name: "m-1"}}}
	m.Spec.ProviderID, m.Status.Phase = "p://2", machine.PhaseRunning
	assert.True(t, order.StillOrphan(nil))
	assert.True(t, order.StillOrphan(m), "the machine has another VM")
	m.Spec.ProviderID = ""
	assert.False(t, order.StillOrphan(m), "the machine has no VM yet")
	m.Name = "m-2"
	assert.True(t, order.StillOrphan(m), "a machine of another name without a VM")
	m.Spec.ProviderID = "p://1"
	assert.False(t, order.StillOrphan(m), "a machine of another name has recorded the VM")
	m.Name = "m-1"
	assert.False(t, order.StillOrphan(m), "the machine has recorded the VM")
}

// TestP15PausedMachinesKeepTheirVMs: a paused machine owns every VM of its name, also in the check just before a
// delete.
// Invariants: P15
func TestP15PausedMachinesKeepTheirVMs(t *testing.T) {
	class := object.Key{Namespace: "fleet", Name: "small"}
	for _, paused := range []string{"true", "false"} {
		m := safetytest.Member("m-1", machine.PhaseRunning, paused)
		o := &orphan.Observation{Machines: []*machine.Machine{m}}
		var orders []orphan.Delete
		for at := safetytest.Noon; at.Before(safetytest.Noon.Add(2 * time.Minute)); at = at.Add(time.Minute) {
			listing := &orphan.Listing{Asked: at, Answered: at, VMs: map[string]string{"p://other": "m-1", "p://m-1": "m-1"}}
			o.Classes = []orphan.Class{{Key: class, Asked: at, Listing: listing}}
			o.Read = decision.Freshness{Began: at}
			plan, err := orphan.Decide(o, safety.DefaultPolicy(), at)
			require.NoError(t, err)
			o.Candidates, orders = plan.Candidates, plan.Delete
		}
		if paused == "true" {
			require.Empty(t, orders)
			continue
		}
		require.Len(t, orders, 1)
		require.True(t, orders[0].StillOrphan(m))
		m.Annotations[safetytest.PausedKey] = "true"
		require.False(t, orders[0].StillOrphan(m), "the machine has been paused since")
	}
}

// anySpelling draws a function that changes the spelling of IDs or names: case, prefix, slashes.
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

// TestP48SpelledOtherwise: no VM of a machine is deleted, however listings spell its ID and name, and whatever the
// machine's phase. A warning says that they are spelled in another way.
// Invariants: P48
func TestP48SpelledOtherwise(t *testing.T) {
	spelled, collected := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		c := newCloud(t, "a", "b")
		c.shared = rapid.Bool().Draw(t, "shared")
		id, name := anySpelling(t, "ID"), anySpelling(t, "name")
		c.spell = func(v *vm) (string, string) { return id(v.id), name(v.name) }
		own := map[string]bool{}
		for i := range rapid.IntRange(1, 6).Draw(t, "machines") {
			class := rapid.SampledFrom(c.classes).Draw(t, "class")
			v := c.createVM(fmt.Sprintf("Web-%d", i), class)
			own[v.id] = true
			m := c.addMachine(v.name, class, rapid.SampledFrom(phases).Draw(t, "phase"), v.id)
			if rapid.IntRange(0, 4).Draw(t, "deleted") == 0 {
				m.DeletedAt = c.Now
			}
		}
		strangers := rapid.IntRange(0, 3).Draw(t, "strangers")
		for range strangers {
			c.createVM("gone", rapid.SampledFrom(c.classes).Draw(t, "of"))
		}
		c.firstPass()
		c.wait(60)
		left := c.left()
		for _, id := range left {
			delete(own, id)
		}
		require.Empty(t, own, "VMs of machines were deleted")
		if id("p://1") != "p://1" && name("Web-0") != "Web-0" {
			require.Positive(t, c.warned[orphan.ReasonSpelled])
			spelled++
		}
		collected += strangers + len(c.machines) - len(left)
	})
	assert.Positive(t, spelled)
	assert.Positive(t, collected, "no orphan was ever deleted")
}

// TestNoneOfAClassIsListed: if a class's listing has VMs but none of the class's machines, the machines' VMs may be
// listed with other IDs and names. So no listed VM is deleted, in any pass and through any class.
// Invariants: P48
func TestNoneOfAClassIsListed(t *testing.T) {
	c := newCloud(t, "a", "b")
	c.shared = true
	for i := range 5 {
		name := fmt.Sprintf("web-%d", i)
		c.addMachine(name, "b", machine.PhaseRunning, c.createVM(name, "b").id)
	}
	c.spell = func(v *vm) (string, string) { return "x" + v.id[4:], "x" + v.name }
	c.firstPass()
	c.wait(20)
	require.Len(t, c.left(), 5)
	require.Positive(t, c.warned[orphan.ReasonUnknownOnly])
	c.hints = append(c.hints, orphan.Hint{Class: c.known["a"].Key, At: c.Now}) // only class a is listed
	c.wait(4)
	require.Len(t, c.left(), 5)

	c.spell = nil
	orphaned := c.createVM("gone", "a")
	c.Now = c.Now.Add(time.Hour)
	c.wait(4)
	require.Len(t, c.left(), 5, "the listing has the machines' VMs again, and the orphan is deleted")
	require.NotContains(t, c.left(), orphaned.id)
}

// TestAlikeNameBesideTheOwnVM: a VM whose name is similar to a machine's is an orphan if the machine's own VM is
// listed too.
func TestAlikeNameBesideTheOwnVM(t *testing.T) {
	c := newCloud(t, "a")
	own := c.createVM("web-1", "a")
	c.addMachine("web-1", "a", machine.PhaseRunning, own.id)
	c.createVM("prod-web-1", "a")
	c.firstPass()
	c.wait(4)
	require.Equal(t, []string{own.id}, c.left())
}

// TestStillOrphanComparesSpellings: an order is dropped if a machine has recorded the VM's ID in another spelling.
func TestStillOrphanComparesSpellings(t *testing.T) {
	m := &machine.Machine{}
	m.Name, m.Spec.ProviderID = "web-1", "cloud:///Blue/1"
	assert.False(t, (&orphan.Delete{ProviderID: "CLOUD:///BLUE/1/", Name: "gone"}).StillOrphan(m))
	assert.True(t, (&orphan.Delete{ProviderID: "cloud:///Blue/11", Name: "gone"}).StillOrphan(m))
}

// TestMachinesThatComeAfterTheList: a listing is trusted although it lacks a machine, if the machine became available
// after the listing was requested.
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

// TestInstancesSpelledOtherwise: an instance of a pool is no orphan if it is listed in another spelling.
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
