package orphan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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

// vm is a VM of the model's provider.
type vm struct {
	id, name, class string
	created, gone   time.Time // gone is zero while the VM exists
}

// cloud is a provider with VMs, a store with machines, a collector of orphans, and a clock.
type cloud struct {
	safetytest.Journal
	t        require.TestingT
	policy   *safety.Policy
	vms      []*vm
	machines map[string]*machine.Machine
	lag      time.Duration               // how far listings lag behind
	shared   bool                        // every class lists all VMs
	spell    func(*vm) (id, name string) // how listings spell IDs and names; nil: as they are
	classes  []string
	made     int

	// What the collector's process remembers.
	known      map[string]*orphan.Class
	candidates []orphan.Candidate
	spent      []safety.Spent
	began      time.Time
	tries      []orphan.Try
	hints      []orphan.Hint
	frozen     bool
	owners     int // sets and deployments in the store

	stale    func() []*machine.Machine           // what the cache shows; nil: the current state
	port     func(call string) error             // before each call; an error ends the pass
	answer   func(call, about string) codes.Code // what the provider answers
	deleting func(orphan.Delete)                 // sees each delete that is issued
	plan     orphan.Plan
	warned   map[decision.Reason]int
	lists    int
}

func newCloud(t require.TestingT, classes ...string) *cloud {
	return &cloud{
		Journal: safetytest.Journal{Now: safetytest.Epoch}, t: t, policy: safety.DefaultPolicy(), classes: classes,
		machines: map[string]*machine.Machine{}, known: map[string]*orphan.Class{}, owners: 1,
		warned: map[decision.Reason]int{},
	}
}

// createVM adds a VM to the provider.
func (c *cloud) createVM(name, class string) *vm {
	c.made++
	v := &vm{id: fmt.Sprintf("p://%d", c.made), name: name, class: class, created: c.Now}
	c.vms = append(c.vms, v)
	return v
}

// addMachine adds a machine in a phase, with a provider ID or without one.
func (c *cloud) addMachine(name, class string, phase machine.Phase, id string) *machine.Machine {
	m := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: name}, UID: "u-" + name, CreatedAt: c.Now}}
	m.Spec.Class.Name, m.Spec.ProviderID, m.Status.Phase = class, id, phase
	c.machines[name] = m
	return m
}

// live returns what a live read of all machines returns.
func (c *cloud) live() []*machine.Machine {
	var all []*machine.Machine
	for _, name := range slices.Sorted(maps.Keys(c.machines)) {
		all = append(all, c.machines[name].Clone())
	}
	return all
}

// list returns the VMs of a class's listing. Listings lag behind.
func (c *cloud) list(class string) map[string]string {
	seen, out := c.Now.Add(-c.lag), map[string]string{}
	for _, v := range c.vms {
		visible := !v.created.After(seen) && (v.gone.IsZero() || v.gone.After(seen))
		if visible && (c.shared || v.class == class) {
			id, name := c.spelled(v)
			out[id] = name
		}
	}
	return out
}

func (c *cloud) spelled(v *vm) (id, name string) {
	if c.spell == nil {
		return v.id, v.name
	}
	return c.spell(v)
}

// left returns the IDs of the VMs that exist.
func (c *cloud) left() []string {
	var ids []string
	for _, v := range c.vms {
		if v.gone.IsZero() {
			ids = append(ids, v.id)
		}
	}
	return ids
}

func (c *cloud) call(name string) error {
	if c.port != nil {
		return c.port(name)
	}
	return nil
}

func (c *cloud) code(call, about string) codes.Code {
	if c.answer == nil {
		return codes.OK
	}
	return c.answer(call, about)
}

// restart starts a new process.
func (c *cloud) restart() {
	c.known, c.candidates, c.tries, c.hints = map[string]*orphan.Class{}, nil, nil, nil
	c.spent, c.began = nil, c.Now
}

// pass is one pass of the collector.
func (c *cloud) pass() error {
	o := &orphan.Observation{
		Machines: c.live(), Candidates: c.candidates, Tries: c.tries, Hints: c.hints, Frozen: c.frozen,
		Deleted: map[string]bool{}, Owners: c.owners, Began: c.began, Spent: c.spent,
	}
	if c.stale != nil {
		o.Machines = c.stale()
	}
	for _, name := range c.classes {
		if c.known[name] == nil {
			c.known[name] = &orphan.Class{Key: object.Key{Namespace: "fleet", Name: name}}
		}
		c.known[name].Listing = nil
		o.Classes = append(o.Classes, *c.known[name])
	}
	for range 50 {
		plan, err := orphan.Decide(o, c.policy, c.Now)
		require.NoError(c.t, err)
		c.candidates, o.Candidates, c.plan = plan.Candidates, plan.Candidates, plan
		c.spent, o.Spent = plan.Spent, plan.Spent
		for i := range o.Classes {
			o.Classes[i].Blind = slices.Contains(plan.Blind, o.Classes[i].Key)
			c.known[o.Classes[i].Key.Name].Blind = o.Classes[i].Blind
		}
		c.record(&plan)
		var failed error
		switch {
		case len(plan.List) > 0:
			failed = c.listAll(o, plan.List)
		case plan.ReadMachines:
			if failed = c.call("read"); failed == nil {
				o.Read, o.Machines = decision.Freshness{Began: c.Now}, c.live()
			}
		case len(plan.Delete) > 0:
			failed = c.deleteAll(o, plan.Delete)
		default:
			return nil
		}
		if failed != nil {
			return failed
		}
	}
	require.Fail(c.t, "the pass does not end")
	return nil
}

func (c *cloud) listAll(o *orphan.Observation, orders []orphan.ListVMs) error {
	for _, order := range orders {
		asked := c.Now
		if err := c.call("list"); err != nil {
			return err
		}
		c.lists++
		l := &orphan.Listing{Asked: asked, Answered: c.Now, VMs: c.list(order.Class.Name)}
		if l.Code = c.code("list", order.Class.Name); l.Code != codes.OK {
			l.Message, l.VMs = "no answer", nil
		}
		state := c.known[order.Class.Name]
		state.Asked, state.Code, state.Failures = asked, l.Code, state.Failures+1
		if l.Code == codes.OK {
			state.Failures, state.Listed = 0, len(l.VMs)
		}
		for i := range o.Classes {
			if o.Classes[i].Key == order.Class {
				o.Classes[i] = *state
				o.Classes[i].Listing = l
			}
		}
		o.Read = decision.Freshness{}
	}
	return nil
}

func (c *cloud) deleteAll(o *orphan.Observation, orders []orphan.Delete) error {
	for _, order := range orders {
		if err := c.call("delete"); err != nil {
			return err
		}
		o.Deleted[order.ProviderID] = true
		if m := c.machines[order.Name]; m != nil && !order.StillOrphan(m) {
			continue
		}
		if c.deleting != nil {
			c.deleting(order)
		}
		code := c.code("delete", order.ProviderID)
		if code == codes.OK {
			for _, v := range c.vms {
				id, _ := c.spelled(v)
				if (v.id == order.ProviderID || id == order.ProviderID) && v.gone.IsZero() {
					v.gone = c.Now
				}
			}
		}
		c.answered(o, order.ProviderID, code)
	}
	return nil
}

// answered remembers the answer to a delete.
func (c *cloud) answered(o *orphan.Observation, id string, code codes.Code) {
	failures := 0
	c.tries = slices.DeleteFunc(slices.Clone(c.tries), func(t orphan.Try) bool {
		if t.ProviderID == id {
			failures = t.Failures
		}
		return t.ProviderID == id
	})
	if code == codes.OK || code == codes.NotFound {
		o.Candidates = slices.DeleteFunc(slices.Clone(o.Candidates), func(s orphan.Candidate) bool { return s.ProviderID == id })
		c.candidates = o.Candidates
	} else {
		c.tries = append(c.tries, orphan.Try{ProviderID: id, At: c.Now, Code: code, Failures: failures + 1})
	}
	o.Tries = c.tries
}

// record writes a plan into the journal.
func (c *cloud) record(plan *orphan.Plan) {
	var parts []string
	switch {
	case len(plan.List) > 0:
		for _, order := range plan.List {
			parts = append(parts, order.Class.Name)
		}
		c.Line("", "list "+strings.Join(parts, " "), plan.Why)
	case plan.ReadMachines:
		c.Line("", "read machines live", plan.Why)
	case len(plan.Delete) > 0:
		for _, order := range plan.Delete {
			c.Line("", "delete "+order.ProviderID+" by class "+order.Class.Name, order.Why)
		}
	default:
		c.Line("", "wait until "+c.Since(plan.At), plan.Why)
	}
	c.Warn(plan.Warn...)
	for _, why := range plan.Warn {
		c.warned[why.Reason]++
	}
}
