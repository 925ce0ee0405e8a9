package replacement_test

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/replacement"
	"github.com/millwright-go/millwright/test/safetytest"
)

// ward is a deployment, or a lone set, whose machines become ill, fail, are deleted and replaced. A
// process of its own watches each machine.
type ward struct {
	safetytest.Journal
	t          require.TestingT
	policy     *safety.Policy
	replicas   int32
	deployment *deployment.Deployment // nil: the set is a lone one
	set        *machineset.Set
	machines   []*machine.Machine
	zones      map[string]string
	versions   int

	nurses   []*nurse
	late     []func() // writes that are still on their way
	verdicts []*machine.Machine
	given    int
}

func newWard(t require.TestingT, replicas int32, lone bool) *ward {
	w := &ward{Journal: safetytest.Journal{Now: safetytest.Epoch}, t: t, policy: safety.DefaultPolicy(), replicas: replicas}
	w.set = &machineset.Set{Meta: object.Meta{Key: object.Key{Name: "web-1"}, UID: "s"}}
	w.set.Spec.Replicas = replicas
	if !lone {
		w.deployment = &deployment.Deployment{Meta: object.Meta{Key: object.Key{Name: "web"}, UID: "d"}}
		w.deployment.Spec.Replicas = replicas
	}
	for range replicas {
		w.bear(machine.PhaseRunning)
	}
	return w
}

func (w *ward) version() string {
	w.versions++
	return strconv.Itoa(w.versions)
}

func (w *ward) bear(phase machine.Phase) *machine.Machine {
	m := &machine.Machine{Meta: object.Meta{Key: object.Key{Name: "m-" + w.version()}, Version: w.version()}}
	m.Spec.Class.Name, m.Status.Phase = "a", phase
	w.machines = append(w.machines, m)
	return m
}

// turn writes a machine's phase.
func (w *ward) turn(name string, phase machine.Phase) {
	i := slices.IndexFunc(w.machines, func(m *machine.Machine) bool { return m.Name == name })
	changed := w.machines[i].Clone()
	changed.Status.Phase, changed.Version = phase, w.version()
	if phase == machine.PhaseTerminating {
		changed.DeletedAt = w.Now
	}
	w.machines[i] = changed
}

func (w *ward) find(name string) *machine.Machine {
	for _, m := range w.machines {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// nurse is the pass over one machine, one port call at a time.
type nurse struct {
	w     *ward
	m     *machine.Machine // as read at the beginning of the pass
	o     *replacement.Observation
	reads int
	grant *machine.Grant
	plan  replacement.Plan
}

// sendLeaving is send for a machine whose node somebody deletes.
func (w *ward) sendLeaving(name string) *nurse {
	n := w.send(name)
	n.o.NodeLeaves = true
	return n
}

func (w *ward) send(name string) *nurse {
	n := &nurse{w: w, m: w.find(name)}
	n.o = &replacement.Observation{Machine: n.m, Deployment: w.deployment, Set: w.set, Zones: w.zones}
	w.nurses = append(w.nurses, n)
	return n
}

// step makes one call. It returns false if the pass is over. delay: the write of the machine takes
// effect later.
func (n *nurse) step(delay bool) bool {
	w := n.w
	if n.reads > 0 {
		n.read()
		return true
	}
	if n.grant != nil {
		return n.conclude(delay)
	}
	plan, err := replacement.Decide(n.o, w.policy, w.Now)
	require.NoError(w.t, err)
	n.plan = plan
	w.tell(n.m.Name, &plan)
	switch {
	case plan.ReadFleet:
		n.reads = 3
	case plan.Write != nil:
		return n.take(plan.Write)
	default:
		n.grant = plan.Grant
		return n.grant.Allowed
	}
	return true
}

// read makes the reads in their order, with time for others in between.
func (n *nurse) read() {
	n.reads--
	switch n.reads {
	case 2:
		n.o.Deployment = n.w.deployment
		if n.w.deployment == nil {
			n.o.Set = n.w.set
		}
	case 1:
		if n.w.deployment != nil {
			n.o.Set = n.w.set
		}
	case 0:
		n.o.Fleet, n.o.Read = append([]*machine.Machine{nil}, n.w.machines...), decision.Freshness{Began: safetytest.Epoch}
	}
}

func (n *nurse) take(write replacement.Write) bool {
	w := n.w
	switch write := write.(type) {
	case *replacement.TakeFromDeployment:
		if write.Deployment.Version != w.deployment.Version {
			return false
		}
		w.deployment = write.Deployment.Clone()
		w.deployment.Version = w.version()
		n.o.Deployment = w.deployment
	case *replacement.TakeFromSet:
		if write.Set.Version != w.set.Version {
			return false
		}
		w.set = write.Set.Clone()
		w.set.Version = w.version()
		n.o.Set = w.set
	}
	n.o.Taken = true
	return true
}

// verdict is the phase of a machine that was given up.
func (n *nurse) verdict() machine.Phase {
	if n.o.NodeLeaves {
		return machine.PhaseTerminating
	}
	return machine.PhaseFailed
}

// conclude gives the machine up, if it has not changed and the grant holds.
func (n *nurse) conclude(delay bool) bool {
	w := n.w
	if !w.Now.Before(n.grant.Until) {
		return false
	}
	apply := func() {
		if m := w.find(n.m.Name); m != nil && m.Version == n.m.Version {
			if serves(m) { // else it is in replacement already
				w.verdicts = append(w.verdicts, m)
			}
			w.turn(m.Name, n.verdict())
			w.given++
		}
	}
	if delay {
		w.late = append(w.late, apply)
		return false
	}
	apply()
	return false
}

// serving is the model's own count of machines that are not in replacement.
func (w *ward) serving() int {
	n := 0
	for _, m := range w.machines {
		if serves(m) {
			n++
		}
	}
	return n
}

func serves(m *machine.Machine) bool {
	return !m.Deleted() && (m.Status.Phase == machine.PhaseRunning || m.Status.Phase == machine.PhaseUnknown)
}

// inFlight returns how many verdicts have not led to a replacement yet. Once their machines are
// being deleted, these are at most as many as are missing.
func (w *ward) inFlight() int {
	standing, gone := w.verdicts[:0:0], 0
	for _, v := range w.verdicts {
		if m := w.find(v.Name); m != nil && !m.Deleted() {
			standing = append(standing, v)
		} else {
			gone++
		}
	}
	missing := max(0, int(w.replicas)-w.serving()-len(standing))
	for _, v := range w.verdicts {
		if gone <= missing {
			break
		}
		if !slices.Contains(standing, v) {
			w.verdicts = slices.DeleteFunc(w.verdicts, func(x *machine.Machine) bool { return x == v })
			gone--
		}
	}
	return len(w.verdicts)
}

func (w *ward) tell(name string, plan *replacement.Plan) {
	action := "refused"
	switch {
	case plan.ReadFleet:
		action = "read the fleet live"
	case plan.Write != nil:
		action = fmt.Sprintf("%T", plan.Write)[len("*replacement."):]
	case plan.Grant.Allowed:
		action = "allowed until " + w.Since(plan.Grant.Until)
	}
	w.Line(name, action, plan.Why)
}

// treat makes the set act, and lets illness proceed.
func (w *ward) treat(t *rapid.T, act string) {
	switch {
	case act == "replace":
		w.replace()
	case act == "plague", act == "all nodes":
		for _, m := range slices.Clone(w.machines) {
			w.disturb(m, map[string]string{"plague": "ill", "all nodes": "leave"}[act])
		}
	case act == "late" && len(w.late) > 0:
		w.late[0]()
		w.late = w.late[1:]
	case len(w.machines) > 0:
		w.disturb(w.machines[rapid.IntRange(0, len(w.machines)-1).Draw(t, "machine")], act)
	}
}

// disturb does something to one machine, if it can.
func (w *ward) disturb(m *machine.Machine, act string) {
	if m.Deleted() {
		if act == "bury" {
			w.machines = slices.DeleteFunc(slices.Clone(w.machines), func(x *machine.Machine) bool { return x == m })
		}
		return
	}
	switch {
	case act == "ill" && m.Status.Phase == machine.PhaseRunning:
		w.turn(m.Name, machine.PhaseUnknown)
	case act == "well" && m.Status.Phase == machine.PhaseUnknown:
		w.turn(m.Name, machine.PhaseRunning)
	case act == "ask" && m.Status.Phase == machine.PhaseUnknown:
		w.send(m.Name)
	case act == "leave" && m.Status.Phase != machine.PhaseFailed:
		w.sendLeaving(m.Name)
	case act == "join" && m.Status.Phase == machine.PhasePending:
		w.turn(m.Name, machine.PhaseRunning)
	case act == "user deletes":
		w.turn(m.Name, machine.PhaseTerminating)
	}
}

// replace deletes failed machines and creates the missing ones.
func (w *ward) replace() {
	active := 0
	for _, m := range slices.Clone(w.machines) {
		switch {
		case m.Deleted():
		case m.Status.Phase == machine.PhaseFailed:
			w.turn(m.Name, machine.PhaseTerminating)
		default:
			active++
		}
	}
	for ; active < int(w.replicas); active++ {
		w.bear(machine.PhasePending)
	}
}

func (w *ward) pass(d time.Duration) { w.Now = w.Now.Add(d) }
