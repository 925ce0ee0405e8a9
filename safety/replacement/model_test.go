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

// world is a deployment, or a lone set, whose machines become unhealthy, fail, are deleted and are replaced. Requests
// for a grant run at the same time, as in processes of their own.
type world struct {
	safetytest.Journal
	t          require.TestingT
	policy     *safety.Policy
	replicas   int32
	deployment *deployment.Deployment // nil: the set is a lone one
	set        *machineset.Set
	machines   []*machine.Machine
	zones      map[string]string
	versions   int

	requests []*request
	late     []func()           // writes that are still on their way
	verdicts []*machine.Machine // machines that were given up and perhaps not replaced yet
	given    int                // how many machines were given up
}

func newWorld(t require.TestingT, replicas int32, lone bool) *world {
	w := &world{Journal: safetytest.Journal{Now: safetytest.Epoch}, t: t, policy: safety.DefaultPolicy(), replicas: replicas}
	w.set = &machineset.Set{Meta: object.Meta{Key: object.Key{Name: "web-1"}, UID: "s"}}
	w.set.Spec.Replicas = replicas
	if !lone {
		w.deployment = &deployment.Deployment{Meta: object.Meta{Key: object.Key{Name: "web"}, UID: "d"}}
		w.deployment.Spec.Replicas = replicas
	}
	for range replicas {
		w.add(machine.PhaseRunning)
	}
	return w
}

func (w *world) version() string {
	w.versions++
	return strconv.Itoa(w.versions)
}

// add adds a machine to the deployment.
func (w *world) add(phase machine.Phase) *machine.Machine {
	m := &machine.Machine{Meta: object.Meta{Key: object.Key{Name: "m-" + w.version()}, Version: w.version()}}
	m.Spec.Class.Name, m.Status.Phase = "a", phase
	w.machines = append(w.machines, m)
	return m
}

// setPhase writes a machine's phase.
func (w *world) setPhase(name string, phase machine.Phase) {
	i := slices.IndexFunc(w.machines, func(m *machine.Machine) bool { return m.Name == name })
	changed := w.machines[i].Clone()
	changed.Status.Phase, changed.Version = phase, w.version()
	if phase == machine.PhaseTerminating {
		changed.DeletedAt = w.Now
	}
	w.machines[i] = changed
}

func (w *world) find(name string) *machine.Machine {
	for _, m := range w.machines {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// request is the pass over a machine that asks for a grant. It makes one port call at a time.
type request struct {
	w     *world
	m     *machine.Machine // as read at the beginning of the pass
	o     *replacement.Observation
	reads int // how many calls of a live read are still to come
	grant *machine.Grant
	plan  replacement.Plan
}

// askLeaving begins the request of a machine whose node somebody deletes.
func (w *world) askLeaving(name string) *request {
	r := w.ask(name)
	r.o.NodeLeaves = true
	return r
}

// ask begins the request of an unhealthy machine.
func (w *world) ask(name string) *request {
	r := &request{w: w, m: w.find(name)}
	r.o = &replacement.Observation{Machine: r.m, Deployment: w.deployment, Set: w.set, Zones: w.zones}
	w.requests = append(w.requests, r)
	return r
}

// step makes one call. It returns false if the pass is over. With delay, the write of the machine takes effect later.
func (r *request) step(delay bool) bool {
	w := r.w
	if r.reads > 0 {
		r.read()
		return true
	}
	if r.grant != nil {
		return r.conclude(delay)
	}
	plan, err := replacement.Decide(r.o, w.policy, w.Now)
	require.NoError(w.t, err)
	r.plan = plan
	w.record(r.m.Name, &plan)
	switch {
	case plan.ReadFleet:
		r.reads = 3
	case plan.Write != nil:
		return r.take(plan.Write)
	default:
		r.grant = plan.Grant
		return r.grant.Allowed
	}
	return true
}

// read makes the next of the three reads, so that others can write in between.
func (r *request) read() {
	r.reads--
	switch r.reads {
	case 2:
		r.o.Deployment = r.w.deployment
		if r.w.deployment == nil {
			r.o.Set = r.w.set
		}
	case 1:
		if r.w.deployment != nil {
			r.o.Set = r.w.set
		}
	case 0:
		r.o.Fleet, r.o.Read = append([]*machine.Machine{nil}, r.w.machines...), decision.Freshness{Began: safetytest.Epoch}
	}
}

// take stores a slot. It returns false after a conflict.
func (r *request) take(write replacement.Write) bool {
	w := r.w
	switch write := write.(type) {
	case *replacement.TakeFromDeployment:
		if write.Deployment.Version != w.deployment.Version {
			return false
		}
		w.deployment = write.Deployment.Clone()
		w.deployment.Version = w.version()
		r.o.Deployment = w.deployment
	case *replacement.TakeFromSet:
		if write.Set.Version != w.set.Version {
			return false
		}
		w.set = write.Set.Clone()
		w.set.Version = w.version()
		r.o.Set = w.set
	}
	r.o.Taken = true
	return true
}

// verdict returns the phase of a machine that is given up.
func (r *request) verdict() machine.Phase {
	if r.o.NodeLeaves {
		return machine.PhaseTerminating
	}
	return machine.PhaseFailed
}

// conclude gives the machine up, if it has not changed and the grant holds.
func (r *request) conclude(delay bool) bool {
	w := r.w
	if !w.Now.Before(r.grant.Until) {
		return false
	}
	apply := func() {
		if m := w.find(r.m.Name); m != nil && m.Version == r.m.Version {
			if serves(m) { // otherwise it is being replaced already
				w.verdicts = append(w.verdicts, m)
			}
			w.setPhase(m.Name, r.verdict())
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

// serving returns the model's own count of machines that are not being replaced.
func (w *world) serving() int {
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

// inFlight returns how many verdicts have not led to a replacement yet. Verdicts on machines that are being deleted
// or gone count at most as often as machines are missing.
func (w *world) inFlight() int {
	present, gone := w.verdicts[:0:0], 0
	for _, v := range w.verdicts {
		if m := w.find(v.Name); m != nil && !m.Deleted() {
			present = append(present, v)
		} else {
			gone++
		}
	}
	missing := max(0, int(w.replicas)-w.serving()-len(present))
	for _, v := range w.verdicts {
		if gone <= missing {
			break
		}
		if !slices.Contains(present, v) {
			w.verdicts = slices.DeleteFunc(w.verdicts, func(x *machine.Machine) bool { return x == v })
			gone--
		}
	}
	return len(w.verdicts)
}

func (w *world) record(name string, plan *replacement.Plan) {
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

// act makes the set act, or makes something happen to machines.
func (w *world) act(t *rapid.T, act string) {
	switch {
	case act == "replace":
		w.replace()
	case act == "all ill", act == "all nodes":
		for _, m := range slices.Clone(w.machines) {
			w.disturb(m, map[string]string{"all ill": "fall ill", "all nodes": "leave"}[act])
		}
	case act == "late" && len(w.late) > 0:
		w.late[0]()
		w.late = w.late[1:]
	case len(w.machines) > 0:
		w.disturb(w.machines[rapid.IntRange(0, len(w.machines)-1).Draw(t, "machine")], act)
	}
}

// disturb makes something happen to one machine, if it is possible in its phase.
func (w *world) disturb(m *machine.Machine, act string) {
	if m.Deleted() {
		if act == "remove" {
			w.machines = slices.DeleteFunc(slices.Clone(w.machines), func(x *machine.Machine) bool { return x == m })
		}
		return
	}
	switch {
	case act == "fall ill" && m.Status.Phase == machine.PhaseRunning:
		w.setPhase(m.Name, machine.PhaseUnknown)
	case act == "recover" && m.Status.Phase == machine.PhaseUnknown:
		w.setPhase(m.Name, machine.PhaseRunning)
	case act == "ask" && m.Status.Phase == machine.PhaseUnknown:
		w.ask(m.Name)
	case act == "leave" && m.Status.Phase != machine.PhaseFailed:
		w.askLeaving(m.Name)
	case act == "join" && m.Status.Phase == machine.PhasePending:
		w.setPhase(m.Name, machine.PhaseRunning)
	case act == "user deletes":
		w.setPhase(m.Name, machine.PhaseTerminating)
	}
}

// replace deletes failed machines and creates the missing ones.
func (w *world) replace() {
	active := 0
	for _, m := range slices.Clone(w.machines) {
		switch {
		case m.Deleted():
		case m.Status.Phase == machine.PhaseFailed:
			w.setPhase(m.Name, machine.PhaseTerminating)
		default:
			active++
		}
	}
	for ; active < int(w.replicas); active++ {
		w.add(machine.PhasePending)
	}
}

// later lets time pass.
func (w *world) later(d time.Duration) { w.Now = w.Now.Add(d) }
