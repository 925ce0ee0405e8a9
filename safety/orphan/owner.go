package orphan

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
)

// Which VM belongs to which machine: a VM is created for a machine, under its name, while the machine is in the
// store. (A name that a set has reserved and not used yet leads to no VM, even if the create of the machine takes
// effect late.) So if the machines are read after a VM was listed, either they include the VM's machine, or that
// machine is gone. While the machine exists and has not recorded its VM, each VM with its name may be its own.
// That also holds for a later machine with the same name, from a reservation that is still open: it is new, and
// has recorded no VM either.

// ownership says whether a VM may belong to a machine that has its name, but has recorded another provider ID or
// none.
type ownership int

const (
	inFlight ownership = iota // the VM may be the machine's, or may become it
	extra                     // the machine has another VM
	several                   // the provider says that the machine has several VMs
)

// verdictOn returns the ownership of VMs that have the machine's name and whose ID it has not recorded.
// oneOfSeveral: the driver has answered OUT_OF_RANGE to GetMachineStatus, and the machine has made no progress
// since. A machine that is paused (pausedKey) keeps all these VMs, because the user who paused it may be inspecting
// any of them.
func verdictOn(m *machine.Machine, oneOfSeveral bool, pausedKey string) ownership {
	if paused, _ := machine.Paused(&m.Meta, pausedKey); paused {
		return inFlight
	}
	if oneOfSeveral && hasSeveral(m) {
		return several
	}
	switch {
	case m.Spec.ProviderID == "":
		return inFlight // even while it is being deleted: its VMs are its own until it is gone
	case m.Status.Phase == machine.PhaseNew, m.Status.Phase == machine.PhaseCrashLoopBackOff:
		return inFlight
	case m.Deleted() && !noCreateInFlight(m.Status.DeletedFrom):
		return inFlight
	}
	return extra
}

// noCreateInFlight reports whether a machine had no create in flight when it was deleted, given its phase at that
// time.
func noCreateInFlight(from machine.Phase) bool {
	return from != machine.PhaseNew && from != machine.PhaseCrashLoopBackOff
}

// hasSeveral reports whether a machine is still in the state after an answer OUT_OF_RANGE. Before it issues a
// create, it announces that in the store, which changes this state.
func hasSeveral(m *machine.Machine) bool {
	op := &m.Status.LastOperation
	return !m.Deleted() && m.Status.Phase == machine.PhaseCrashLoopBackOff &&
		op.Kind == machine.OperationCreate && op.State == machine.StateFailed && op.Code == codes.OutOfRange
}

// owners finds the machine of a VM, or the pool of a group.
type owners struct {
	unowned decision.Reason     // the reason of an orphan
	pools   map[string]string   // the recorded group ID of each pool, by "namespace/name"
	paused  string              // the key of the pause annotation
	ids     map[string]struct{} // the recorded IDs
	byName  map[string]*named
	listed  func(id string) bool // reports whether a VM was listed in this pass
}

// named is a machine, and the next one of the same name in another namespace.
type named struct {
	machine *machine.Machine
	next    *named
}

func ownersOf(machines []*machine.Machine, pausedKey string) owners {
	o := owners{unowned: reasonOrphan, paused: pausedKey, ids: make(map[string]struct{}, len(machines)), byName: make(map[string]*named, len(machines))}
	space := make([]named, 0, len(machines))
	for _, m := range machines {
		if m == nil {
			continue
		}
		if id := m.Spec.ProviderID; id != "" {
			o.ids[id] = struct{}{}
		}
		if m.Name != "" {
			space = append(space, named{m, o.byName[m.Name]})
			o.byName[m.Name] = &space[len(space)-1]
		}
	}
	return o
}

// ownersOfGroups returns the owners of groups. A pool owns the group that it has recorded, and
// every group with its name, because it may not have recorded its group yet.
func ownersOfGroups(pools []*machinepool.Pool) owners {
	o := owners{unowned: reasonOrphanGroup, ids: make(map[string]struct{}, len(pools)), pools: make(map[string]string, len(pools))}
	for _, p := range pools {
		if p == nil {
			continue
		}
		if id := p.Status.GroupID; id != "" {
			o.ids[id] = struct{}{}
		}
		o.pools[p.Key.String()] = p.Status.GroupID
	}
	return o
}

// owners returns the owners of what is searched for.
func (d *decider) owners() owners {
	o := ownersOf(d.o.Machines, d.p.Keys.Paused)
	if d.o.Groups {
		o = ownersOfGroups(d.o.Pools)
	}
	o.listed = d.lists
	return o
}

// judge reports whether a VM is an orphan, and why. A listing may have another ID for a machine's VM than
// CreateMachine had. So a VM with a machine's name and another ID is an extra one only if the recorded VM is listed,
// too. If it is not, the VM is no orphan, and judge returns a reason for a warning.
func (o *owners) judge(id, name string, outOfRange map[string]time.Time) (reason decision.Reason, yes bool) {
	if _, owned := o.ids[id]; owned {
		return decision.Reason{}, false
	}
	if _, owned := o.pools[name]; owned {
		return decision.Reason{}, false
	}
	reason = o.unowned
	for n := o.byName[name]; n != nil; n = n.next {
		answered, oneOfSeveral := outOfRange[name]
		own := n.machine.Spec.ProviderID
		oneOfSeveral = oneOfSeveral && !answered.Before(n.machine.Status.LastOperation.Time)
		verdict := verdictOn(n.machine, oneOfSeveral || n.machine.Status.LastOperation.Stage == machine.StageGetVMStatus, o.paused)
		switch {
		case verdict == inFlight:
			return decision.Reason{}, false
		case own != "" && !o.listed(own):
			return reasonUnlisted, false
		case verdict == several:
			reason = reasonSeveral
		case reason == reasonOrphan:
			reason = reasonExtra
		}
	}
	return reason, true
}
