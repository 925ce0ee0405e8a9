package simtest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/sim"
)

// answers checks the driver's answers against what the driver lists when nothing fails. That finds mistakes
// that no invariant can see, because the VMs are at a provider that the world does not know.
type answers struct {
	vms      map[string]vm // the VMs that are known to belong to a machine, by ID
	underWay []*call
	broken   map[codes.Call]error // the first false answer of each kind of call

	full   func() bool // reports whether the quota is used up
	faults func() int  // returns how many requests have failed so far
}

// vm is a VM that was created for a machine, and the call whose answer named it.
type vm struct {
	machine *machine.Machine
	from    *call
}

func newAnswers(full func() bool, faults func() int) *answers {
	return &answers{vms: map[string]vm{}, broken: map[codes.Call]error{}, full: full, faults: faults}
}

// checked are the calls whose answers are checked.
var checked = []codes.Call{codes.CreateMachine, codes.DeleteMachine, codes.GetMachineStatus, codes.ListMachines}

// ruleOf returns the name of the rule that a call's answers are true.
func ruleOf(method codes.Call) string { return "answer of " + method.String() }

// answerProperties returns a property for each kind of call: its answers are true.
func answerProperties(b **bench) (all []sim.Property) {
	for _, method := range checked {
		all = append(all, sim.Property{Name: ruleOf(method), Check: func(*sim.World) error {
			return (*b).answers.broken[method]
		}})
	}
	return all
}

// around makes a call and checks its answer.
func (a *answers) around(ctx context.Context, c *call, d driver.Driver, do func()) {
	if !slices.Contains(checked, c.method) {
		do()
		return
	}
	for _, other := range a.underWay {
		if c.machine != nil && other.machine != nil && other.machine.Name == c.machine.Name {
			c.shared, other.shared = true, true
		}
	}
	a.underWay = append(a.underWay, c)
	defer func() { a.underWay = slices.DeleteFunc(a.underWay, func(other *call) bool { return other == c }) }()
	truth := observer{sim.Undisturbed(ctx), d, c}
	before, listed := truth.list()
	full, faults := a.full(), a.faults()
	do()
	if full && a.full() && faults == a.faults() {
		a.refused(c, before)
	}
	after, still := truth.list()
	if !listed || !still {
		return // without lists there is nothing to compare
	}
	switch c.method {
	case codes.CreateMachine:
		a.created(c, truth, before, after)
	case codes.DeleteMachine:
		a.deleted(c, after)
	case codes.GetMachineStatus:
		a.lookedUp(c, after)
	default:
		a.listed(c, truth, before, after)
	}
}

func (a *answers) blame(method codes.Call, format string, args ...any) {
	if a.broken[method] == nil {
		a.broken[method] = fmt.Errorf(format, args...)
	}
}

// created checks that a create made at most one VM with the machine's name.
func (a *answers) created(c *call, truth observer, before, after map[string]string) {
	if c.shared {
		return
	}
	own := a.own(c.machine, before)
	for _, id := range slices.Sorted(maps.Keys(after)) {
		_, existed := before[id]
		if existed || after[id] != c.machine.Name {
			continue
		}
		a.vms[id] = vm{c.machine, c}
		if len(own) > 0 {
			a.blame(codes.CreateMachine, "VM %s was made for machine %s, which had VM %s", id, c.machine.Name, own[0])
		}
		own = append(own, id)
	}
	if c.err != nil {
		return
	}
	a.vms[c.id] = vm{c.machine, c}
	switch name, there := after[c.id]; {
	case !there:
		a.checkListed(truth, after)
	case name != c.machine.Name:
		a.blame(codes.CreateMachine, "it says that VM %s is machine %s's, and ListMachines that it is machine %s's", c.id, c.machine.Name, name)
	}
}

// refused checks the code of a create that failed only because the quota was used up.
func (a *answers) refused(c *call, before map[string]string) {
	switch code := codes.Of(c.err); {
	case c.method != codes.CreateMachine, c.shared, slices.Contains(slices.Collect(maps.Values(before)), c.machine.Name):
	case code != codes.OK && code != codes.ResourceExhausted && code != codes.Canceled && code != codes.DeadlineExceeded:
		a.blame(codes.CreateMachine, "it says %s for machine %s while the quota is used up, not %s", code, c.machine.Name, codes.ResourceExhausted)
	}
}

// own returns the IDs of the listed VMs that are known to belong to a machine.
func (a *answers) own(m *machine.Machine, listed map[string]string) (ids []string) {
	for id := range listed {
		if known, ok := a.vms[id]; ok && m.UID != "" && known.machine.UID == m.UID {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// existing returns the IDs of a machine's listed VMs: its provider ID or, if it has none, those of own.
func (a *answers) existing(m *machine.Machine, listed map[string]string) []string {
	id := m.Spec.ProviderID
	if id == "" {
		return a.own(m, listed)
	}
	if _, there := listed[id]; there {
		return []string{id}
	}
	return nil
}

// deleted checks that no VM is listed after the driver said that it is deleted or not found.
func (a *answers) deleted(c *call, after map[string]string) {
	if code := codes.Of(c.err); c.shared || code != codes.OK && code != codes.NotFound {
		return
	}
	for _, id := range a.existing(c.machine, after) {
		a.blame(codes.DeleteMachine, "it says %s for machine %s, and VM %s is still there", codes.Of(c.err), c.machine.Name, id)
	}
	maps.DeleteFunc(a.vms, func(id string, of vm) bool {
		return id == c.machine.Spec.ProviderID || c.machine.UID != "" && of.machine.UID == c.machine.UID
	})
}

// lookedUp checks that no VM is listed after the driver said that it is not found.
func (a *answers) lookedUp(c *call, after map[string]string) {
	if c.err == nil && c.id != "" && !c.shared {
		a.vms[c.id] = vm{c.machine, c}
	}
	if c.shared || codes.Of(c.err) != codes.NotFound {
		return
	}
	for _, id := range a.existing(c.machine, after) {
		a.blame(codes.GetMachineStatus, "it says %s for machine %s, and VM %s is there", codes.NotFound, c.machine.Name, id)
	}
}

// listed checks that a list has all VMs that existed all the time. If some were deleted meanwhile, it
// checks nothing, because VMs may have moved between the pages of a provider's list.
func (a *answers) listed(c *call, truth observer, before, after map[string]string) {
	if c.err != nil {
		return
	}
	for id := range before {
		if _, still := after[id]; !still {
			return
		}
	}
	for _, id := range slices.Sorted(maps.Keys(after)) {
		_, existed := before[id]
		if _, listed := c.list[id]; existed && !listed {
			a.blame(codes.ListMachines, "VM %s of machine %s is missing", id, after[id])
		}
	}
	a.checkListed(truth, after)
}

// checkListed checks that GetMachineStatus does not find VMs that are not listed.
func (a *answers) checkListed(truth observer, listed map[string]string) {
	for _, id := range slices.Sorted(maps.Keys(a.vms)) {
		known := a.vms[id]
		if _, ok := listed[id]; ok || known.from.class.Key != truth.call.class.Key {
			continue
		}
		if truth.gone(known, id) {
			delete(a.vms, id)
			continue
		}
		a.blame(codes.ListMachines, "VM %s of machine %s is missing, and GetMachineStatus finds it", id, known.machine.Name)
	}
}

// observer calls the driver without faults, to check the answer of a call.
type observer struct {
	ctx    context.Context //nolint:containedctx // of the call that is checked
	driver driver.Driver
	call   *call
}

// list returns what the driver lists for the class of the call. It returns false if the driver returns an
// error.
func (o observer) list() (map[string]string, bool) {
	out, err := o.driver.ListMachines(o.ctx, &driver.ListMachinesRequest{Class: o.call.class, Secret: o.call.secret})
	if err != nil || out == nil {
		return nil, false
	}
	return out.Machines, true
}

// gone reports whether GetMachineStatus does not find a VM, or returns another error.
func (o observer) gone(of vm, id string) bool {
	m := of.machine.Clone()
	m.Spec.ProviderID = id
	_, err := o.driver.GetMachineStatus(o.ctx, &driver.GetMachineStatusRequest{Machine: m, Class: o.call.class, Secret: o.call.secret})
	return err != nil
}
