package orphan

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
)

// Which VM belongs to which machine. A VM is made by a create that some machine issued, under that
// machine's name, while the machine was in the store. A reservation alone, a name that a set has
// given out and not used yet, makes no VM, even if the create of the machine itself arrives late.
// So machines that are read after a VM was listed include the machine it was made for, or that
// machine is gone. While it is there and has not recorded which VM is its own, every VM of its name
// may be. A later machine of the same name, from a reservation that is still open, is new and has
// recorded none either.

// ownership is what a machine of a VM's name, but with another provider ID or none, means for the
// VM.
type ownership int

const (
	inFlight ownership = iota // the VM may be the machine's, or may become it
	extra                     // the machine's VM is another one
	several                   // the provider says that it has several
)

// verdictOn returns the ownership of VMs that carry the machine's name and whose ID it has not
// recorded. oneOfSeveral: the driver has answered OUT_OF_RANGE to GetMachineStatus, and the machine
// has made no progress since. A machine that is paused, by an annotation of the key, keeps all of
// them, because the user who paused it may be inspecting any of them.
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

// noCreateInFlight reports whether a machine had no create in flight when its deletion found it in
// that phase.
func noCreateInFlight(from machine.Phase) bool {
	return from != machine.PhaseNew && from != machine.PhaseCrashLoopBackOff
}

// hasSeveral reports whether a machine is still where OUT_OF_RANGE left it. A create that it issues
// is first announced in the store, which moves it on.
func hasSeveral(m *machine.Machine) bool {
	op := &m.Status.LastOperation
	return !m.Deleted() && m.Status.Phase == machine.PhaseCrashLoopBackOff &&
		op.Kind == machine.OperationCreate && op.State == machine.StateFailed && op.Code == codes.OutOfRange
}

// owners finds the machine of a VM, or the pool of a group.
type owners struct {
	unowned decision.Reason   // why something without an owner is an orphan
	pools   map[string]string // the recorded group ID of each pool, by "namespace/name"
	paused  string            // the key of that annotation
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

// ownersOfGroups returns the owners of groups. A pool owns the group that it has recorded, and
// every group of its name, because one may exist whose ID it does not know yet.
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

// judge reports whether a VM is an orphan, and why. If it is none, there is a reason only if it can't
// be told from its machine's own. The list may know a machine's VM by another ID than CreateMachine
// does. So a VM with the machine's name is a second one only if the recorded one is listed beside
// it.
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
