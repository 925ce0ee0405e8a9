package orphan

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// A list may spell IDs and names otherwise than CreateMachine did, although a driver must not. Every
// VM of a fleet then looks like a stranger. So what is alike to a recorded ID or name is left alone,
// and so is everything in the list of a class that shows strangers and not one available machine.

// spare removes the suspects that may be known under another spelling.
func (d *decider) spare(owners *owners) {
	var seen map[object.Key]bool
	var known *spellings
	if len(d.suspects) > 0 {
		seen, known = d.sights(), d.spellings(owners)
	}
	d.blind = d.blindClasses(seen)
	left := make(map[decision.Why]int64) // how many of each class, by why
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

// spellings are all recorded IDs and names, to find those that are alike to one.
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

// has reports whether a suspect's ID is alike to a recorded one, or its name to that of an owner that
// is not listed under the ID it has recorded.
func (s *spellings) has(v *suspect, owners *owners) bool {
	if len(s.ids.Alike(v.id)) > 0 {
		return true
	}
	return slices.ContainsFunc(s.names.Alike(v.name), func(name string) bool {
		return name != v.name && owners.mayOwn(name) // what has this very name was judged before
	})
}

// mayOwn reports whether the machine or pool of a name may have a VM or group under another ID than
// it is listed with.
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

// distrusted returns the class whose list is blind, if nothing that c lists may be deleted for that:
// c itself, or another one while c's own list shows none of c's machines. Nil: there is none.
func (d *decider) distrusted(c *Class, seen map[object.Key]bool) *object.Key {
	switch {
	case len(d.blind) == 0 || seen[c.Key]:
		return nil
	case slices.Contains(d.blind, c.Key):
		return &c.Key
	}
	return &d.blind[0]
}

// sights says of classes with a good list in this pass and with machines that were available before
// it was asked for, or with pools that have recorded a group, whether the list shows one of them.
func (d *decider) sights() map[object.Key]bool {
	seen, names := make(map[object.Key]bool), make(map[object.Key]map[string]bool)
	look := func(class object.Key, id, name string, since time.Time) {
		c := d.classOf(class)
		if c == nil || c.silent() || seen[class] || !since.Before(c.Listing.Asked.Truncate(time.Second)) {
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

// availableMachines gives the class, ID and name of each available machine whose VM is recorded, and
// since when it is so, whole seconds.
func (d *decider) availableMachines(look func(class object.Key, id, name string, since time.Time)) {
	for _, m := range d.o.Machines {
		if m != nil && m.Spec.ProviderID != "" && !m.Deleted() && available(m.Status.Phase) {
			look(object.Key{Namespace: m.Namespace, Name: m.Spec.Class.Name}, m.Spec.ProviderID, m.Name, m.Status.Since)
		}
	}
}

// readyPools gives the class, ID and name of each ready pool whose group is recorded. Since when is
// not known.
func (d *decider) readyPools(look func(class object.Key, id, name string, since time.Time)) {
	for _, p := range d.o.Pools {
		if p != nil && p.Status.GroupID != "" && !p.Deleted() && p.Status.InfrastructureReady {
			look(object.Key{Namespace: p.Namespace, Name: p.Spec.Template.Class.Name}, p.Status.GroupID, p.Key.String(), time.Time{})
		}
	}
}

func available(p machine.Phase) bool { return p == machine.PhaseAvailable || p == machine.PhaseRunning }

// blindClasses returns the classes whose last good list had strangers and none of their available
// machines.
func (d *decider) blindClasses(seen map[object.Key]bool) (blind []object.Key) {
	for _, c := range d.classes {
		is := c.Blind
		if !c.silent() {
			sees, has := seen[c.Key]
			is = has && !sees && slices.ContainsFunc(d.suspects, func(s suspect) bool {
				_, stranger := c.Listing.VMs[s.id]
				return stranger
			})
		}
		if is {
			blind = append(blind, c.Key)
		}
	}
	return blind
}
