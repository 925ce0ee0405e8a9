package orphan

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// A listing may spell IDs and names differently from CreateMachine's answers, although a driver must not do that.
// Then every VM of a fleet seems to have no machine. So a VM is left alone if its ID or name is a recorded one in
// another spelling. And if a class lists VMs without machines, but none of its available machines, all that it lists
// is left alone.

// dropSimilarlySpelled removes the suspects that may be known under another spelling, and warns about them.
// It also fills in blind.
func (d *decider) dropSimilarlySpelled(owners *owners) {
	var seen map[object.Key]bool
	var known *spellings
	if len(d.suspects) > 0 {
		seen, known = d.recognized(), d.spellings(owners)
	}
	d.blind = d.blindClasses(seen)
	left := make(map[decision.Why]int64) // how many suspects were removed, by reason and class
	d.suspects = slices.DeleteFunc(d.suspects, func(s suspect) bool {
		why := decision.Why{Name: s.class.Key.String()}
		if known.has(&s, owners) {
			why.Reason = reasonSpelled
		} else if blind := d.distrusted(s.class, seen); blind != nil {
			why.Reason, why.Detail = reasonUnknownOnly, blind.String()
		} else {
			return false
		}
		left[why]++
		return true
	})
	for why, n := range left {
		why.Have = n
		d.warn = append(d.warn, why)
	}
}

// spellings are all recorded IDs and names, to be searched for other spellings.
type spellings struct{ ids, names object.Spellings }

func (d *decider) spellings(owners *owners) *spellings {
	var s spellings
	for id := range owners.ids {
		s.ids.Add(id)
	}
	for id := range d.o.Instances {
		s.ids.Add(id)
	}
	for name := range owners.byName {
		s.names.Add(name)
	}
	for name := range owners.pools {
		s.names.Add(name)
	}
	return &s
}

// has reports whether a suspect's ID is a recorded one in another spelling, or its name is the name, in another
// spelling, of an owner whose recorded ID is not listed.
func (s *spellings) has(v *suspect, owners *owners) bool {
	if len(s.ids.Alike(v.id)) > 0 {
		return true
	}
	return slices.ContainsFunc(s.names.Alike(v.name), func(name string) bool {
		return name != v.name && owners.mayOwn(name) // judge has decided about owners with exactly this name
	})
}

// mayOwn reports whether the machine or pool with this name may have a VM or group that is listed under another ID
// than the recorded one.
func (o *owners) mayOwn(name string) bool {
	if id, pool := o.pools[name]; pool {
		return id == "" || !o.listed(id)
	}
	for n := o.byName[name]; n != nil; n = n.next {
		if verdictOn(n.machine, false, o.paused) == inFlight || !o.listed(n.machine.Spec.ProviderID) {
			return true
		}
	}
	return false
}

// distrusted returns the blind class because of which nothing in the listing of c may be deleted: c itself or, if
// c's own listing shows none of its available machines, any other blind class. Nil: there is none.
func (d *decider) distrusted(c *Class, seen map[object.Key]bool) *object.Key {
	switch {
	case len(d.blind) == 0 || seen[c.Key]:
		return nil
	case slices.Contains(d.blind, c.Key):
		return &c.Key
	}
	return &d.blind[0]
}

// recognized says, for each class, whether its listing of this pass shows one of its machines that were available
// before the listing was asked for, or one of its pools' recorded groups. Classes without such a listing or such
// machines are missing in the result.
func (d *decider) recognized() map[object.Key]bool {
	seen, names := make(map[object.Key]bool), make(map[object.Key]map[string]bool)
	look := func(class object.Key, id, name string, since time.Time) {
		c := d.classOf(class)
		if c == nil || c.notListed() || seen[class] || !since.Before(c.Listing.Asked.Truncate(time.Second)) {
			return
		}
		if names[class] == nil {
			names[class] = make(map[string]bool, len(c.Listing.VMs))
			for _, name := range c.Listing.VMs {
				names[class][name] = true
			}
		}
		_, listed := c.Listing.VMs[id]
		seen[class] = listed || names[class][name]
	}
	if d.o.Groups {
		d.readyPools(look)
	} else {
		d.availableMachines(look)
	}
	return seen
}

// availableMachines calls look for each available machine whose VM is recorded, with its class, ID and name, and
// since when it is available, in whole seconds.
func (d *decider) availableMachines(look func(class object.Key, id, name string, since time.Time)) {
	for _, m := range d.o.Machines {
		if m != nil && m.Spec.ProviderID != "" && !m.Deleted() && available(m.Status.Phase) {
			look(object.Key{Namespace: m.Namespace, Name: m.Spec.Class.Name}, m.Spec.ProviderID, m.Name, m.Status.Since)
		}
	}
}

// readyPools calls look for each ready pool whose group is recorded. It is not known since when a pool is ready.
func (d *decider) readyPools(look func(class object.Key, id, name string, since time.Time)) {
	for _, p := range d.o.Pools {
		if p != nil && p.Status.GroupID != "" && !p.Deleted() && p.Status.InfrastructureReady {
			look(object.Key{Namespace: p.Namespace, Name: p.Spec.Template.Class.Name}, p.Status.GroupID, p.Key.String(), time.Time{})
		}
	}
}

func available(p machine.Phase) bool { return p == machine.PhaseAvailable || p == machine.PhaseRunning }

// blindClasses returns the classes whose last good listing had VMs without machines, and none of the class's
// available machines.
func (d *decider) blindClasses(seen map[object.Key]bool) (blind []object.Key) {
	for _, c := range d.classes {
		is := c.Blind
		if !c.notListed() {
			sees, has := seen[c.Key]
			is = has && !sees && slices.ContainsFunc(d.suspects, func(s suspect) bool {
				_, listed := c.Listing.VMs[s.id]
				return listed
			})
		}
		if is {
			blind = append(blind, c.Key)
		}
	}
	return blind
}
