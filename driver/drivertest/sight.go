package drivertest

import (
	"slices"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
)

// A trial sees of the provider what ListMachines, GetMachineStatus and Setup.Count show. It ignores
// ListMachines or GetMachineStatus if that call has failed its own checks.

// listed returns the IDs of VMs in the class's cluster, by machine name.
func (r *trial) listed(c *machine.Class) (ids map[string][]string, known bool) {
	r.Helper()
	if r.FailedBefore(listShows) || r.FailedBefore(listSpells) {
		return nil, false
	}
	return r.answered(c)
}

// answered is listed without regard to failed checks of the list. Those checks themselves use it.
func (r *trial) answered(c *machine.Class) (ids map[string][]string, known bool) {
	r.Helper()
	r.Settled()
	list, err := r.list(r.Ctx, c)
	if codes.Of(err) == codes.Unimplemented {
		return nil, false
	}
	if err != nil || list == nil {
		r.Fatalf("ListMachines: %v", err)
	}
	ids = map[string][]string{}
	for id, name := range list.Machines {
		ids[name] = append(ids[name], id)
	}
	for _, of := range ids {
		slices.Sort(of)
	}
	return ids, true
}

// looked looks up a machine's VM. The call must answer that it exists or that it doesn't.
func (r *trial) looked(m *machine.Machine, c *machine.Class) (id string, known bool) {
	r.Helper()
	if r.FailedBefore(statusShows) || r.FailedBefore(statusSpells) {
		return "", false
	}
	r.Settled()
	a, err := r.statusOf(r.Ctx, m, c)
	switch code := codes.Of(err); code {
	case codes.OK, codes.Uninitialized:
		if a != nil {
			return a.ProviderID, true
		}
		r.Fatalf("GetMachineStatus answered %s without a response", code)
	case codes.NotFound:
		return "", true
	case codes.Unimplemented:
		return "", false
	default:
		r.Fatalf("GetMachineStatus of machine %s: %v", m.Name, err)
	}
	return "", false
}

// there reports whether a VM exists. known is false if no call can tell.
func (r *trial) there(v vm, c *machine.Class) (there, known bool) {
	r.Helper()
	if ids, known := r.listed(c); known {
		return slices.Contains(ids[v.machine.Name], v.id), true
	}
	id, known := r.looked(v.machine, c)
	return id == v.id, known
}

// present requires that a VM exists.
func (r *trial) present(v vm, duty string) { r.Helper(); r.presentOf(v, r.setup.Class, duty) }

func (r *trial) presentOf(v vm, c *machine.Class, duty string) {
	r.Helper()
	there, known := r.there(v, c)
	if known && !there {
		r.Errorf("VM %s of machine %s is gone: %s", v.id, v.machine.Name, duty)
	}
	r.blind = r.blind || !known && r.setup.Count == nil
}

// gone requires that a VM does not exist.
func (r *trial) gone(v vm, duty string) {
	r.Helper()
	there, known := r.there(v, r.setup.Class)
	if known && there {
		r.Errorf("VM %s of machine %s still exists: %s", v.id, v.machine.Name, duty)
	}
	r.blind = r.blind || !known && r.setup.Count == nil
}

// only requires that the VMs of a machine are those, in any order.
func (r *trial) only(m *machine.Machine, duty string, want ...vm) {
	r.Helper()
	ids, known := r.listed(r.setup.Class)
	if !known {
		r.onlyLooked(m, duty, want)
		return
	}
	var wanted []string
	for _, v := range want {
		wanted = append(wanted, v.id)
	}
	slices.Sort(wanted)
	if got := ids[m.Name]; !slices.Equal(got, wanted) {
		r.Errorf("machine %s has the VMs %q, not %q: %s", m.Name, got, wanted, duty)
	}
}

// onlyLooked does what only does, for a driver without a list.
func (r *trial) onlyLooked(m *machine.Machine, duty string, want []vm) {
	r.Helper()
	id, known := r.looked(m, r.setup.Class)
	wanted := ""
	if len(want) > 0 {
		wanted = want[0].id
	}
	if known && id != wanted {
		r.Errorf("machine %s has the VM %q, not %q: %s", m.Name, id, wanted, duty)
	}
	r.blind = r.blind || !known && r.setup.Count == nil
}

// total requires that there are n VMs more in the account than at the start, if Setup.Count can tell.
func (r *trial) total(n int, duty string) {
	r.Helper()
	if r.setup.Count == nil {
		return
	}
	r.Settled()
	if got := r.setup.Count() - r.before; got != n {
		r.Errorf("the account has %d VMs more than before, not %d: %s", got, n, duty)
	}
}

// nothingLeft requires that nothing is left of VMs that are gone, if Setup.Leftovers can tell.
func (r *trial) nothingLeft(duty string) {
	r.Helper()
	if r.setup.Leftovers == nil {
		return
	}
	r.Settled()
	left := slices.DeleteFunc(r.setup.Leftovers(), func(thing string) bool { return r.leftBefore[thing] })
	if len(left) > 0 {
		r.Errorf("%q is left of VMs that are gone: %s", left, duty)
	}
}
