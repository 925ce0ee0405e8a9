package orphan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/orphan"
	"github.com/millwright-go/millwright/test/safetytest"
)

// listings is a machine without a cluster, and the listings of its class.
type listings struct {
	t    *testing.T
	p    *safety.Policy
	now  time.Time
	o    orphan.Observation
	m    *machine.Machine
	code codes.Code
}

func newListings(t *testing.T) *listings {
	class := object.Key{Namespace: "fleet", Name: "a"}
	m := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "m-1"}, UID: "1"}}
	m.Spec.ProviderID, m.Spec.Class.Name = "p://1", "a"
	m.Status.Phase, m.Status.Since = machine.PhaseAvailable, safetytest.Epoch.Add(-10*time.Minute)
	return &listings{t: t, p: safety.DefaultPolicy(), now: safetytest.Epoch, m: m, o: orphan.Observation{
		NoCluster: true, Classes: []orphan.Class{{Key: class}}, Machines: []*machine.Machine{m},
	}}
}

// pass makes a pass with a listing of the given VMs. It returns the last plan, and whether the machine's VM is
// missing.
func (l *listings) pass(vms map[string]string) (plan orphan.Plan, missing bool) {
	l.o.Classes[0].Listing = &orphan.Listing{Outcome: machine.Outcome{Code: l.code}, Asked: l.now, Answered: l.now, VMs: vms}
	l.o.Classes[0].Asked, l.o.Classes[0].Code = l.now, l.code
	l.o.Read = decision.Freshness{Began: l.now}
	for range 2 { // a second decision with the same listing must change nothing
		var err error
		plan, err = orphan.Decide(&l.o, l.p, l.now)
		require.NoError(l.t, err)
		l.o.Unlisted, l.o.Candidates, l.o.Sighted = plan.Unlisted, plan.Candidates, plan.Sighted
	}
	for _, u := range plan.Unlisted {
		missing = missing || u.Machine == l.m.Key && !u.Missing.IsZero()
	}
	return plan, missing
}

// warns reports whether a plan warns of something.
func warns(plan orphan.Plan, reason decision.Reason) bool {
	return slices.ContainsFunc(plan.Warn, func(w decision.Why) bool { return w.Reason == reason })
}

// TestMissingTwice: a VM is missing if a second listing, a minute after the first, does not have it either. It stays
// missing until a listing has it. A warning names the VM from the first listing on.
// Invariants: P41 P54
func TestMissingTwice(t *testing.T) {
	l := newListings(t)
	plan, missing := l.pass(nil)
	require.False(t, missing)
	require.True(t, warns(plan, orphan.ReasonNotListed))
	require.Equal(t, l.now.Add(time.Minute), plan.At, "the second listing")
	l.now = plan.At.Add(-time.Second)
	_, missing = l.pass(nil)
	require.False(t, missing, "the second listing came too early")
	l.now = plan.At
	plan, missing = l.pass(nil)
	require.True(t, missing)
	require.Equal(t, l.now.Add(l.p.VMPeriod), plan.At, "the next regular listing")
	l.code = codes.Unavailable
	_, missing = l.pass(nil)
	require.True(t, missing, "a listing that fails does not count")
	l.code, l.now = codes.OK, plan.At
	plan, missing = l.pass(nil)
	require.True(t, missing)
	require.Equal(t, l.now, plan.Unlisted[0].Missing)
	plan, _ = l.pass(map[string]string{"p://1": "m-1"})
	require.Empty(t, plan.Unlisted)
	require.Empty(t, plan.Warn)
	_, missing = l.pass(nil)
	require.False(t, missing, "after a listing with the VM, two without it are necessary again")
}

// TestVMsAreListedAtARate: without a cluster, a class with a machine that is up is listed every VMPeriod. All other
// classes are listed every OrphanPeriod, also if VMPeriod is off.
// Invariants: P54
func TestVMsAreListedAtARate(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*listings)
		want    time.Duration
	}{
		"a machine that is up": {nil, time.Minute},
		"another rate":         {func(l *listings) { l.p.VMPeriod = 5 * time.Minute }, 5 * time.Minute},
		"none is up":           {func(l *listings) { l.m.Status.Phase = machine.PhasePending }, 15 * time.Minute},
		"another class":        {func(l *listings) { l.m.Spec.Class.Name = "b" }, 15 * time.Minute},
		"off":                  {func(l *listings) { l.p.VMPeriod = object.Off }, 15 * time.Minute},
		"there is a cluster":   {func(l *listings) { l.o.NoCluster = false }, 15 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			l := newListings(t)
			if c.prepare != nil {
				c.prepare(l)
			}
			l.pass(map[string]string{"p://1": "m-1"})
			l.o.Classes[0].Listing = nil
			for at, listed := range map[time.Duration]bool{c.want - time.Second: false, c.want: true} {
				plan, err := orphan.Decide(&l.o, l.p, l.now.Add(at))
				require.NoError(t, err)
				require.Equal(t, listed, len(plan.List) > 0, at)
			}
		})
	}
}

// TestMostVMsMissing: if a listing lacks most VMs of its class, and at least two, they count as missing only after
// 10 min, because an incident may hide them.
// Invariants: P54
func TestMostVMsMissing(t *testing.T) {
	l := newListings(t)
	for _, n := range []string{"2", "3"} {
		other := l.m.Clone()
		other.Name, other.UID, other.Spec.ProviderID = "m-"+n, n, "p://"+n
		l.o.Machines = append(l.o.Machines, other)
	}
	one := map[string]string{"p://3": "m-3"}
	l.pass(one)
	l.now = safetytest.Epoch.Add(10*time.Minute - time.Second)
	_, missing := l.pass(one)
	require.False(t, missing)
	two := map[string]string{"p://2": "m-2", "p://3": "m-3"}
	_, missing = l.pass(two)
	require.True(t, missing, "only one of three VMs is not listed now")
	l.now = safetytest.Epoch.Add(10 * time.Minute)
	_, missing = l.pass(one)
	require.True(t, missing)
}

// TestSightedVMsAreMissedWithoutDelay: in the first ten minutes after a machine became available, a listing without
// its VM counts only if an earlier listing had the VM.
// Invariants: P54
func TestSightedVMsAreMissedWithoutDelay(t *testing.T) {
	l := newListings(t)
	l.m.Status.Since = safetytest.Epoch.Add(-time.Second)
	plan, _ := l.pass(nil)
	require.Empty(t, plan.Unlisted, "listings may lag behind")
	l.now = l.now.Add(time.Minute)
	plan, _ = l.pass(map[string]string{"p://1": "m-1"})
	require.Equal(t, []string{"p://1"}, plan.Sighted)
	l.now = l.now.Add(time.Minute)
	l.code = codes.Unavailable
	plan, _ = l.pass(nil)
	require.Equal(t, []string{"p://1"}, plan.Sighted, "a listing that fails does not count")
	l.code = codes.OK
	plan, missing := l.pass(nil)
	require.Len(t, plan.Unlisted, 1)
	require.False(t, missing)
	l.now = l.now.Add(time.Minute)
	_, missing = l.pass(nil)
	require.True(t, missing)
	l.now = safetytest.Epoch.Add(10 * time.Minute)
	plan, _ = l.pass(map[string]string{"p://1": "m-1"})
	require.Empty(t, plan.Sighted, "ten minutes later, listings no longer lag behind")
}

// TestNoVMOfAClassIsListed: if a listing has none of the VMs of a class's machines, and these are at least two, they
// count as missing only after an hour, and a warning says so. If it has one, the other is missing after a minute.
// Invariants: P41
func TestNoVMOfAClassIsListed(t *testing.T) {
	l := newListings(t)
	other := l.m.Clone()
	other.Name, other.UID, other.Spec.ProviderID = "m-2", "2", "p://2"
	l.o.Machines = append(l.o.Machines, other)
	plan, missing := l.pass(map[string]string{"p://9": "of another account"})
	require.False(t, missing)
	require.True(t, slices.ContainsFunc(plan.Warn, func(w decision.Why) bool { return w.Reason == orphan.ReasonNoneListed && w.Have == 2 }))
	require.False(t, warns(plan, orphan.ReasonNotListed), "one warning for the class is enough")
	l.now = safetytest.Epoch.Add(time.Hour - time.Second)
	_, missing = l.pass(nil)
	require.False(t, missing, "an hour has not passed")
	l.now = safetytest.Epoch.Add(time.Hour)
	_, missing = l.pass(nil)
	require.True(t, missing)

	l.o.Unlisted, l.now = nil, safetytest.Epoch
	_, missing = l.pass(nil)
	require.False(t, missing)
	l.now = safetytest.Epoch.Add(time.Minute)
	plan, missing = l.pass(map[string]string{"p://2": "m-2"})
	require.True(t, missing, "the other VM is listed")
	require.False(t, warns(plan, orphan.ReasonNoneListed))
}

// TestUnhealthyVMs: a plan names a machine whose VM is listed as unhealthy, if decisions about the machine are
// allowed.
func TestUnhealthyVMs(t *testing.T) {
	for name, c := range map[string]struct {
		prepare   func(*listings)
		unhealthy bool
	}{
		"it is up":            {func(*listings) {}, true},
		"it is Unknown":       {func(l *listings) { l.m.Status.Phase = machine.PhaseUnknown }, true},
		"there is a cluster":  {func(l *listings) { l.o.NoCluster = false }, false},
		"it is being created": {func(l *listings) { l.m.Status.Phase = machine.PhasePending }, false},
		"another VM is":       {func(l *listings) { l.m.Spec.ProviderID = "p://2" }, false},
		"it is being deleted": {func(l *listings) { l.m.DeletedAt = safetytest.Epoch }, false},
		"it is paused":        {func(l *listings) { l.m.Annotations = map[string]string{l.p.Keys.Paused: "true"} }, false},
		"the listing failed":  {func(l *listings) { l.code = codes.Unavailable }, false},
		"it is preserved": {func(l *listings) {
			l.m.Status.Preservation = machine.Preservation{Since: safetytest.Epoch, Until: safetytest.Epoch.Add(time.Hour)}
		}, false},
	} {
		l := newListings(t)
		c.prepare(l)
		l.o.Classes[0].Listing = &orphan.Listing{
			Outcome: machine.Outcome{Code: l.code}, Asked: l.now, Answered: l.now,
			VMs: map[string]string{"p://1": "m-1"}, Unhealthy: map[string]bool{"p://1": true},
		}
		l.o.Classes[0].Asked, l.o.Classes[0].Code, l.o.Read = l.now, l.code, decision.Freshness{Began: l.now}
		plan, err := orphan.Decide(&l.o, l.p, l.now)
		require.NoError(t, err)
		want := []orphan.Unhealthy(nil)
		if c.unhealthy {
			want = []orphan.Unhealthy{{Machine: l.m.Key, UID: "1", Class: l.o.Classes[0].Key, ProviderID: "p://1", Listed: l.now}}
		}
		require.Equal(t, want, plan.Unhealthy, name)
	}
}

// TestVMsThatAreNotMissing has VMs that need not be listed, and VMs that are listed in some form. None is missing.
// Invariants: P41
func TestVMsThatAreNotMissing(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*listings)
		vms     map[string]string
	}{
		"it is listed":        {nil, map[string]string{"p://1": "other"}},
		"under another ID":    {nil, map[string]string{"p://1?zone=1": "m-1"}},
		"there is a cluster":  {func(l *listings) { l.o.NoCluster = false }, nil},
		"frozen":              {func(l *listings) { l.o.Frozen = true }, nil},
		"it is new":           {func(l *listings) { l.m.Status.Since = safetytest.Epoch.Add(-10*time.Minute + 31*time.Second) }, nil},
		"it is being created": {func(l *listings) { l.m.Status.Phase = machine.PhasePending }, nil},
		"it has failed":       {func(l *listings) { l.m.Status.Phase = machine.PhaseFailed }, nil},
		"no ID is recorded":   {func(l *listings) { l.m.Spec.ProviderID = " " }, nil},
		"it is being deleted": {func(l *listings) { l.m.DeletedAt = safetytest.Epoch }, nil},
		"it is paused":        {func(l *listings) { l.m.Annotations = map[string]string{l.p.Keys.Paused: "true"} }, nil},
		"it is preserved": {func(l *listings) {
			l.m.Status.Preservation = machine.Preservation{Since: safetytest.Epoch, Until: safetytest.Epoch.Add(time.Hour)}
		}, nil},
		"its class is not listed": {func(l *listings) { l.m.Spec.Class.Name = "b" }, nil},
		"the listing failed":      {func(l *listings) { l.code = codes.Unavailable }, nil},
		"an earlier machine of its name": {func(l *listings) {
			l.o.Unlisted = []orphan.Unlisted{{Machine: l.m.Key, UID: "0", ProviderID: "p://1", Class: l.o.Classes[0].Key, Since: safetytest.Epoch.Add(-time.Hour)}}
			l.now = safetytest.Epoch
			l.p.OrphanGap = time.Hour
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := newListings(t)
			if c.prepare != nil {
				c.prepare(l)
			}
			for range 2 {
				_, missing := l.pass(c.vms)
				require.False(t, missing)
				l.now = l.now.Add(10 * time.Minute) // by then two listings without a VM make it missing
			}
		})
	}
}
