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
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/orphan"
	"github.com/millwright-go/millwright/test/safetytest"
)

// fray is a cloud in which everything happens at once.
type fray struct {
	*cloud
	rapid *rapid.T
	late  []func() // creates that are still on their way
	names int
}

func (f *fray) pick() *machine.Machine {
	if len(f.machines) == 0 {
		return nil
	}
	all := f.live()
	return f.machines[all[rapid.IntRange(0, len(all)-1).Draw(f.rapid, "machine")].Name]
}

// act makes one thing happen to a machine or a VM.
func (f *fray) act() {
	m := f.pick()
	op := rapid.SampledFrom([]string{
		"new", "announce", "call", "call", "late", "status", "fail", "run", "run", "delete", "gone", "stray",
	}).Draw(f.rapid, "act")
	switch {
	case op == "new":
		f.names++
		f.give("m-"+string(rune('a'+f.names%26))+string(rune('0'+f.names/26)), rapid.SampledFrom(f.classes).Draw(f.rapid, "class"), machine.PhaseNew, "")
	case op == "late" && len(f.late) > 0:
		f.late[0]()
		f.late = f.late[1:]
	case op == "stray":
		f.boot("ghost", f.classes[0])
	case m == nil:
	case op == "gone" && m.Deleted():
		f.bury(m)
	case op == "delete" && !m.Deleted():
		m.DeletedAt, m.Status.DeletedFrom, m.Status.Phase = f.Now, m.Status.Phase, machine.PhaseTerminating
	case !m.Deleted():
		f.create(m, op)
	}
}

// create continues a machine's creation.
func (f *fray) create(m *machine.Machine, op string) {
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
			f.late = append(f.late, func() { f.boot(name, class) })
			return
		}
		id := f.boot(name, class).id
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
func (f *fray) status(m *machine.Machine) {
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

// bury ends a deletion: by ID, or by name if no ID is recorded.
func (f *fray) bury(m *machine.Machine) {
	for _, v := range f.vms {
		if v.gone.IsZero() && (v.id == m.Spec.ProviderID || m.Spec.ProviderID == "" && v.name == m.Name) {
			v.gone = f.Now
		}
	}
	delete(f.machines, m.Name)
}

// inFlight is the model's own idea of a create that may still be going on.
func inFlight(m *machine.Machine) bool {
	op := m.Status.LastOperation
	if m.Status.Phase == machine.PhaseCrashLoopBackOff && op.Code == codes.OutOfRange && op.Stage == machine.StageGetVMStatus {
		return false
	}
	return m.Spec.ProviderID == "" || m.Status.Phase == machine.PhaseNew || m.Status.Phase == machine.PhaseCrashLoopBackOff
}

// P15, P17: things are delayed, lost, killed or stale. No VM goes whose machine has recorded it or
// has a create in flight. In the end the VMs without an owner are gone, and all others are there.
// Invariants: P15
func TestP15NoVMOfACreateInFlight(t *testing.T) {
	deletes := 0
	rapid.Check(t, func(t *rapid.T) {
		f := &fray{cloud: newCloud(t, "a", "b"), rapid: t}
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
			require.True(t, seen && !f.Now.Before(first.Add(f.policy.OrphanGap)), "not seen twice %s apart", f.policy.OrphanGap)
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

// settle ends everything in progress, and checks that the machines own what is left.
func (f *fray) settle(t *rapid.T) {
	f.port, f.stale, f.deleting = nil, nil, nil
	for _, create := range f.late {
		create()
	}
	for _, m := range f.live() {
		m := f.machines[m.Name]
		if m.Deleted() {
			f.bury(m)
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
	for range 6 + len(f.vms) { // three go in a period
		require.NoError(t, f.pass())
		f.Now = f.plan.At
	}
	owned := map[string]bool{}
	for _, m := range f.machines {
		owned[m.Spec.ProviderID] = m.Spec.ProviderID != ""
	}
	for _, id := range f.left() {
		require.True(t, owned[id], "VM %s is nobody's and still there", id)
		delete(owned, id)
	}
	for id, was := range owned {
		if was {
			require.Fail(t, "a machine lost its VM", "%s", id)
		}
	}
}

// An empty ID belongs to no machine, and is never deleted; nor is a VM without a name.
// Invariants: P17
func TestP17EmptyIDsAndNames(t *testing.T) {
	c := newCloud(t, "a")
	c.give("m-1", "a", machine.PhaseRunning, "")
	c.boot("gone", "a").id = ""
	c.boot("", "a")
	c.deleting = func(d orphan.Delete) { assert.Fail(t, "deleted", "%+v", d) }
	for range 5 {
		require.NoError(t, c.pass())
		c.Now = c.Now.Add(time.Minute)
	}
}

// A slow listing may show VMs that are younger than a read of machines made meanwhile. Such a read
// proves nothing.
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
	assert.Empty(t, plan.Delete, "the sightings were closer together")
	o.Candidates[0].Since, o.Candidates[0].Name = o.Candidates[0].Since.Add(-time.Minute), "m-2"
	plan, err = orphan.Decide(o, p, asked.Add(time.Minute))
	require.NoError(t, err)
	assert.Empty(t, plan.Delete, "it was another machine's then")
}

// One ID under two names stays while either name keeps it.
// Invariants: P15
func TestOneIDUnderTwoNames(t *testing.T) {
	c := newCloud(t, "a", "b")
	c.vms = append(c.vms, &vm{id: "p://1", name: "gone", class: "a"}, &vm{id: "p://1", name: "m-1", class: "b"})
	c.give("m-1", "b", machine.PhasePending, "")
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

// Many orphans go, Burst at a time. A class is listed at most every OrphanGap.
func TestManyOrphansAndManyHints(t *testing.T) {
	c := newCloud(t, "a")
	c.policy.Burst, c.policy.BrakeShare = 7, 100
	for range 50 {
		c.boot("gone", "a")
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

// A create that a machine's deletion found in flight counts as in flight until the machine is gone.
// A machine that was found running has extra VMs, which go.
func TestExtrasOfAMachineBeingDeleted(t *testing.T) {
	for from, goes := range map[machine.Phase]bool{
		machine.PhaseNew: false, machine.PhaseCrashLoopBackOff: false, machine.PhaseRunning: true, machine.PhasePending: true,
	} {
		c := newCloud(t, "a")
		own := c.boot("m-1", "a")
		c.boot("m-1", "a")
		m := c.give("m-1", "a", machine.PhaseTerminating, own.id)
		m.DeletedAt, m.Status.DeletedFrom = safetytest.Epoch, from
		for range 3 {
			require.NoError(t, c.pass())
			c.Now = c.Now.Add(c.policy.OrphanGap)
			c.known["a"].Asked = time.Time{}
		}
		assert.Equal(t, goes, len(c.left()) == 1, "found %q", from)
		assert.Contains(t, c.left(), own.id)
	}
}

// Just before a delete the machine is checked once more.
func TestStillOrphan(t *testing.T) {
	order := orphan.Delete{ProviderID: "p://1", Name: "m-1"}
	m := &machine.Machine{Meta: object.Meta{Key: object.Key{Name: "m-1"}}}
	m.Spec.ProviderID, m.Status.Phase = "p://2", machine.PhaseRunning
	assert.True(t, order.StillOrphan(nil))
	assert.True(t, order.StillOrphan(m), "its VM is another one")
	m.Spec.ProviderID = ""
	assert.False(t, order.StillOrphan(m), "it has none yet")
	m.Name = "m-2"
	assert.True(t, order.StillOrphan(m), "it is another machine")
	m.Spec.ProviderID = "p://1"
	assert.False(t, order.StillOrphan(m), "it has recorded the VM meanwhile")
	m.Name = "m-1"
	assert.False(t, order.StillOrphan(m), "it has recorded the VM meanwhile")
}
