package safety

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
)

// Which VM is a machine's. A VM comes to be by a create that some machine
// issued, under that machine's name, while the machine was in the store: a
// reservation alone, a name that a set has given out and not used yet, makes
// no VM, however late the create of the machine itself comes in. So whatever
// machines are read after a VM was listed, the one it was made for is among
// them, or is gone; and while it is there and has not recorded which VM is its
// own, every VM of its name may be. A machine that comes later under the same
// name, through an unsettled reservation, is new and in that state too.

// ownership is what a machine of a VM's name, but with another provider ID or
// none, means for the VM.
type ownership int

const (
	inFlight ownership = iota // the VM may be the machine's, or come to be
	extra                     // the machine's VM is another one
	several                   // the provider says that it has several
)

// verdictOn is the ownership of VMs that a machine's name is on and whose ID it
// has not recorded. oneOfSeveral: the driver has answered OUT_OF_RANGE to
// GetMachineStatus, and the machine has gone no further since.
// A machine that is paused, by an annotation of the key, keeps them all: whoever
// paused it may be looking into any of them.
func verdictOn(m *machine.Machine, oneOfSeveral bool, pausedKey string) ownership {
	if isPaused(m, pausedKey) {
		return inFlight
	}
	if oneOfSeveral && hasSeveral(m) {
		return several
	}
	switch {
	case m.Spec.ProviderID == "":
		return inFlight // also where it is being deleted: its VMs are its own until it is gone
	case m.Status.Phase == machine.PhaseNew, m.Status.Phase == machine.PhaseCrashLoopBackOff:
		return inFlight
	case m.Deleted() && !cameUp(m.Status.DeletedFrom):
		return inFlight
	}
	return extra
}

// cameUp tells whether a machine that was found in a phase by its deletion had
// no create in flight.
func cameUp(from machine.Phase) bool {
	return from != machine.PhaseNew && from != machine.PhaseCrashLoopBackOff
}

// hasSeveral tells whether a machine stands where OUT_OF_RANGE has left it: a
// create that it issues is announced in the store first, and takes it from
// there.
func hasSeveral(m *machine.Machine) bool {
	op := &m.Status.LastOperation
	return !m.Deleted() && m.Status.Phase == machine.PhaseCrashLoopBackOff &&
		op.Kind == machine.OperationCreate && op.State == machine.StateFailed && op.Code == codes.OutOfRange
}

// owners finds the machine of a VM, or the pool of a group.
type owners struct {
	unowned decision.Reason     // of what none has
	pools   map[string]struct{} // that there are, "namespace/name"
	paused  string              // the key of that annotation
	ids     map[string]struct{}
	byName  map[string]*named
	listed  func(id string) bool // in this pass
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

// ownersOfGroups are those of groups. A pool owns the group that it has recorded, and
// every group of its name: one may be there whose ID it does not know yet.
func ownersOfGroups(pools []*machinepool.Pool) owners {
	o := owners{unowned: reasonOrphanGroup, ids: make(map[string]struct{}, len(pools)), pools: make(map[string]struct{}, len(pools))}
	for _, p := range pools {
		if p == nil {
			continue
		}
		if id := p.Status.GroupID; id != "" {
			o.ids[id] = struct{}{}
		}
		o.pools[p.Key.String()] = struct{}{}
	}
	return o
}

// owners are those of what is looked for.
func (d *collection) owners() owners {
	if d.o.Groups {
		return ownersOfGroups(d.o.Pools)
	}
	o := ownersOf(d.o.Machines, d.p.Keys.Paused)
	o.listed = d.lists
	return o
}

// judge says why a VM is an orphan; false: it is none, or can't be told from its
// machine's own, with the reason of that. A machine's VM may be known to the
// list by another ID than to CreateMachine: what carries its name is a second
// one only if the recorded one is listed beside it.
func (o *owners) judge(id, name string, outOfRange map[string]time.Time) (reason decision.Reason, yes bool) {
	if _, owned := o.ids[id]; owned {
		return decision.Reason{}, false
	}
	if _, owned := o.pools[name]; owned {
		return decision.Reason{}, false
	}
	reason = o.unowned
	for n := o.byName[name]; n != nil; n = n.next {
		answered, told := outOfRange[name]
		own := n.machine.Spec.ProviderID
		told = told && !answered.Before(n.machine.Status.LastOperation.Time)
		verdict := verdictOn(n.machine, told || n.machine.Status.LastOperation.Stage == machine.StageGetVMStatus, o.paused)
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
