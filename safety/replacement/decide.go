package replacement

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/internal/brake"
	"github.com/millwright-go/millwright/safety/internal/times"
)

// Decide decides whether a machine may be given up now: failed for its health, or deleted because
// others delete its node. It changes none of its arguments, and returns the same plan for the same
// arguments. Only a caller's mistake is an error.
//
// A machine that no set replaces counts in no budget, and gets its grant. But if it asks because others
// delete its node, the brake allows only Policy.Brake such machines within an OwnerPeriod.
//
// A machine is in replacement from the moment its slot is written until as many machines work as are wanted. The
// slot is written to one shared object before the grant, because of two machines that ask at the same time both see
// the fleet as it was before either was failed.
func Decide(o *Observation, p *safety.Policy, now time.Time) (Plan, error) {
	if o == nil || o.Machine == nil {
		return Plan{}, fmt.Errorf("replacement.Decide: %w", decision.ErrNoObservation)
	}
	if err := p.Validate(); err != nil {
		return Plan{}, err
	}
	p = p.WithDefaults()
	d := decider{o: o, p: p, now: now}
	why := decision.Why{Reason: reasonGranted, Name: o.Machine.Name}
	if o.Set == nil && o.Deployment == nil {
		return d.withoutSet(), nil
	}
	if !o.Read.Live() {
		return Plan{ReadFleet: true, Why: decision.Why{Reason: reasonReadFleet, Name: o.Machine.Name}}, nil
	}
	d.slots = ParseSlots(d.holder().Annotations[p.Keys.Slots])
	d.count()
	if o.Taken && d.own == nil { // its name can't be written down
		no := decision.Why{Reason: reasonSlotLost, Name: o.Machine.Name}
		return Plan{Grant: &machine.Grant{Detail: no.String()}, Why: no}, nil
	}
	if o.Taken {
		until := d.own.At.Add(p.GrantUse)
		why.Have, why.Want = d.busy()+1, d.limit()
		return Plan{Grant: &machine.Grant{Allowed: true, Until: until}, Why: why}, nil
	}
	if no, held := d.heldBack(); held {
		return Plan{Grant: &machine.Grant{Detail: no.String()}, Why: no}, nil
	}
	return d.takeSlot(), nil
}

// withoutSet decides about a machine that no set replaces.
func (d *decider) withoutSet() Plan {
	name := d.o.Machine.Name
	granted := Plan{Grant: &machine.Grant{Allowed: true}, Why: decision.Why{Reason: reasonAlone, Name: name}, Spent: d.o.Spent}
	if !d.o.NodeLeaves {
		return granted
	}
	b := brake.New(d.p, d.o.Spent, 0, false, d.p.OwnerPeriod, d.now)
	may := b.Take(d.o.Machine.UID)
	granted.Spent = b.Orders()
	if may {
		return granted
	}
	no := decision.Why{Reason: reasonAloneBraked, Name: name, Want: int64(b.Most), For: d.p.OwnerPeriod}
	return Plan{Grant: &machine.Grant{Detail: no.String()}, Why: no, Spent: granted.Spent}
}

// decider is one call of Decide.
type decider struct {
	o   *Observation
	p   *safety.Policy
	now time.Time

	slots    []Slot // as stored
	kept     []Slot // the stored ones that still count, without this machine's
	own      *Slot  // this machine's
	eligible bool   // the machine that asks may get a grant

	serving        int64 // machines that work, or may work again by themselves
	failedMachines int64 // machines that have failed or will fail because of their slots, and are not being deleted yet
	zone           zoneCount
}

type zoneCount struct {
	name           string
	total, unknown int64
}

// holder returns the object that slots are written on.
func (d *decider) holder() *object.Meta {
	if d.o.Deployment != nil {
		return &d.o.Deployment.Meta
	}
	return &d.o.Set.Meta
}

// wanted returns how many machines there should be.
func (d *decider) wanted() int32 {
	if d.o.Deployment != nil {
		return max(d.o.Deployment.Spec.Replicas, 0)
	}
	return max(d.o.Set.Spec.Replicas, 0)
}

// limit returns how many machines may be in replacement.
func (d *decider) limit() int64 {
	return max(1, int64(d.p.Replacements.Ceil(d.wanted())))
}

// expired reports whether a slot can no longer lead to a failed machine. A grant may be used for GrantUse, and a
// write that is issued at the end of that time may be in flight for GrantFlight. A slot too far in the future counts
// as expired, too.
func (d *decider) expired(s Slot) bool {
	life := d.p.GrantUse + d.p.GrantFlight + time.Second
	return s.At.After(d.now.Add(d.p.GrantFlight)) || !d.now.Before(s.At.Add(life))
}

// awaits reports whether a machine may be waiting for a grant, because of its health or, without a cluster, of its
// VM.
func (d *decider) awaits(m *machine.Machine) bool {
	switch m.Status.Phase {
	case machine.PhaseUnknown, machine.PhaseInPlaceUpdateFailed:
		return true
	case machine.PhaseAvailable, machine.PhaseRunning:
		return d.o.NoCluster
	case machine.PhaseNew, machine.PhasePending, machine.PhaseCrashLoopBackOff, machine.PhaseFailed,
		machine.PhaseTerminating, machine.PhaseInPlaceUpdating, machine.PhaseInPlaceUpdateSuccessful:
	}
	return false
}

// serves reports whether a machine works, or may work again. Such a machine is not in replacement.
func (d *decider) serves(m *machine.Machine) bool {
	if m.Deleted() {
		return false
	}
	if d.paused(m) {
		return true // no set replaces it
	}
	switch m.Status.Phase {
	case machine.PhaseRunning, machine.PhaseAvailable, machine.PhaseUnknown, machine.PhaseInPlaceUpdateFailed:
		return true
	case machine.PhaseNew, machine.PhasePending, machine.PhaseCrashLoopBackOff, machine.PhaseFailed,
		machine.PhaseTerminating, machine.PhaseInPlaceUpdating, machine.PhaseInPlaceUpdateSuccessful:
	}
	return d.o.Preserved[m.Name]
}

// paused reports whether a user has paused a machine (safety.Policy.Paused).
func (d *decider) paused(m *machine.Machine) bool {
	paused, _ := machine.Paused(&m.Meta, d.p.Keys.Paused)
	return paused
}

// count goes through the fleet once. A slot counts while its machine may still use the grant, and after the machine
// has failed, until it is being deleted. Then the machine is missing, which counts instead of the slot.
func (d *decider) count() {
	holds := make(map[string]Slot, len(d.slots))
	for _, s := range d.slots {
		holds[s.Machine] = s
	}
	mine := d.zoneOf(d.o.Machine)
	d.zone.name = mine
	for _, m := range d.o.Fleet {
		if m == nil {
			continue
		}
		d.countZone(m, mine)
		slot, has := holds[m.Name]
		switch {
		case m.Name == d.o.Machine.Name:
			d.eligible = !m.Deleted() && (d.o.NodeLeaves || d.awaits(m))
			if has {
				own := slot
				d.own = &own
			}
		case has && d.holdsSlot(m, slot):
			d.failedMachines++
			d.kept = append(d.kept, slot)
		case d.serves(m):
			d.serving++
			// Its slot counts again once it is neither paused nor preserved.
			if has && m.Status.Phase == machine.PhaseFailed {
				d.kept = append(d.kept, slot)
			}
		}
	}
}

// holdsSlot reports whether a machine counts as in replacement because of its slot: the slot has not expired, or the
// machine has failed, and it is not being deleted yet. While the slot has not expired, the phase does not matter,
// and a paused or preserved machine counts, too: a machine whose node or VM is deleted by others has only its slot.
func (d *decider) holdsSlot(m *machine.Machine, slot Slot) bool {
	if m.Deleted() {
		return false
	}
	return !d.expired(slot) || m.Status.Phase == machine.PhaseFailed && !d.o.Preserved[m.Name] && !d.paused(m)
}

// SlotsInUse returns how many machines of a fleet are in replacement by a slot that is written on holder: machines
// that have failed or still may, or that are gone and not yet replaced by one that works. limit is how many
// may be in replacement for this number of replicas.
func SlotsInUse(
	holder *object.Meta, replicas int32, fleet []*machine.Machine, p *safety.Policy, now time.Time,
) (used, limit int) {
	p = p.WithDefaults()
	limit = int(max(1, p.Replacements.Ceil(max(replicas, 0))))
	slots := ParseSlots(holder.Annotations[p.Keys.Slots])
	if len(slots) == 0 {
		return 0, limit
	}
	d := decider{o: &Observation{Preserved: map[string]bool{}}, p: p, now: now}
	there, serving := make(map[string]*machine.Machine, len(fleet)), 0
	for _, m := range fleet {
		if m == nil || m.Deleted() {
			continue
		}
		d.o.Preserved[m.Name] = m.Preserved(now)
		if there[m.Name] = m; d.serves(m) {
			serving++
		}
	}
	gone := 0
	for _, s := range slots {
		switch m := there[s.Machine]; {
		case m == nil:
			gone++
		case d.holdsSlot(m, s):
			used++
		}
	}
	missing := int(max(replicas, 0)) - serving
	return max(used, min(used+gone, missing)), limit
}

func (d *decider) zoneOf(m *machine.Machine) string { return d.o.Zones[m.Spec.Class.Name] }

func (d *decider) countZone(m *machine.Machine, mine string) {
	if mine == "" || m.Deleted() || d.zoneOf(m) != mine {
		return
	}
	d.zone.total++
	if m.Status.Phase == machine.PhaseUnknown {
		d.zone.unknown++
	}
}

// busy returns how many machines are in replacement, without the one that asks. It is the larger of two numbers: how
// many machines are missing, and how many hold a slot. The second matters if there are more machines than wanted.
func (d *decider) busy() int64 {
	missing := int64(d.wanted()) - d.serving - 1
	return max(missing, d.failedMachines, 0)
}

// heldBack returns why the machine gets no grant now, if there is a reason.
func (d *decider) heldBack() (decision.Why, bool) {
	name := d.o.Machine.Name
	z := &d.zone
	switch {
	case !d.eligible:
		return decision.Why{Reason: reasonNotAsking, Name: name}, true
	case d.p.ZoneRule && z.total >= 3 && 2*z.unknown > z.total:
		return decision.Why{Reason: reasonZoneFails, Name: name, Detail: z.name, Have: z.unknown, Want: z.total}, true
	case d.busy() >= d.limit():
		return decision.Why{Reason: reasonBudgetSpent, Name: name, Have: d.busy(), Want: d.limit()}, true
	}
	return decision.Why{}, false
}

// takeSlot writes a slot for the machine, even if the machine has one already: only a write in this pass proves that
// no other machine has counted this slot as free.
func (d *decider) takeSlot() Plan {
	why := decision.Why{Reason: ReasonTakeSlot, Name: d.o.Machine.Name, Have: d.busy() + 1, Want: d.limit()}
	slots := FormatSlots(append(d.kept, Slot{d.o.Machine.Name, times.Stamp(d.now)}))
	note := func(m *object.Meta) {
		annotations := make(map[string]string, len(m.Annotations)+1)
		for k, v := range m.Annotations {
			annotations[k] = v
		}
		annotations[d.p.Keys.Slots] = slots
		m.Annotations = annotations
	}
	if d.o.Deployment != nil {
		changed := d.o.Deployment.Clone()
		note(&changed.Meta)
		return Plan{Write: &TakeFromDeployment{changed}, Why: why}
	}
	changed := d.o.Set.Clone()
	note(&changed.Meta)
	return Plan{Write: &TakeFromSet{changed}, Why: why}
}

// Slot is a place in the budget of replacements, taken for one machine.
type Slot struct {
	Machine string
	At      time.Time // when it was taken, whole seconds
}

// slotsLimit is how many slots are read at most. There can't be more.
const slotsLimit = 10_000

// ParseSlots reads the slots of an annotation: "name~time", separated by commas, with times in RFC
// 3339. Entries that can't be read are skipped, because an unreadable slot must not block a fleet
// permanently. If a machine is named twice, the last entry counts.
func ParseSlots(text string) []Slot {
	if text == "" {
		return nil
	}
	var slots []Slot
	for entry := range strings.SplitSeq(text, ",") {
		name, at, found := strings.Cut(entry, "~")
		taken, err := time.Parse(time.RFC3339, at)
		taken = taken.UTC().Truncate(time.Second)
		writable := taken.Year() >= 1 && taken.Year() <= 9999 // in UTC the year may be out of range
		if !found || err != nil || !writable || name == "" || len(slots) >= slotsLimit {
			continue
		}
		slots = append(withoutSlot(slots, name), Slot{name, taken})
	}
	return slots
}

// FormatSlots returns what ParseSlots reads. It skips a slot whose machine name no store allows: an
// empty one, or one with a comma or a tilde.
func FormatSlots(slots []Slot) string {
	entries := make([]string, 0, len(slots))
	for _, s := range slots {
		if s.Machine != "" && !strings.ContainsAny(s.Machine, ",~") {
			entries = append(entries, s.Machine+"~"+s.At.UTC().Format(time.RFC3339))
		}
	}
	return strings.Join(entries, ",")
}

func withoutSlot(slots []Slot, machine string) []Slot {
	return slices.DeleteFunc(slots, func(s Slot) bool { return s.Machine == machine })
}

// The reasons of decisions about the replacement budget.
var (
	reasonReadFleet   = decision.NewReason("ReadFleet", "reading the fleet live before machine {name} is given up")
	ReasonTakeSlot    = decision.NewReason("SlotTaken", "taking a slot for machine {name}: {have} of at most {want} in replacement with it")
	reasonGranted     = decision.NewReason("Granted", "machine {name} may be given up: {have} of at most {want} in replacement with it")
	reasonBudgetSpent = decision.NewReason("BudgetSpent", "machines in replacement: {have} of at most {want}")
	reasonZoneFails   = decision.NewReason("ZoneFails", "{have} of {want} machines in zone {detail} are Unknown: the zone fails, none is given up")
	reasonAlone       = decision.NewReason("NoSetReplaces", "machine {name} may be given up: no set replaces it, and no budget counts it")
	reasonAloneBraked = decision.NewReason("TooManyLeavingNodes", "no set replaces machine {name}, and at most {want} such machines may be given up for a deleted node in {for}")
	reasonNotAsking   = decision.NewReason("NotUnhealthy", "machine {name} is not to be given up for its health")
	reasonSlotLost    = decision.NewReason("SlotLost", "the slot that was written for machine {name} is not there")
)
