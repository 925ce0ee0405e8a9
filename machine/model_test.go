package machine_test

import (
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machine/fsm"
	"github.com/millwright-go/millwright/object"
)

// world is all that decisions are about and carried out on: a store, a
// provider, a cluster and a clock, each as simple as a model can be.
type world struct {
	t      require.TestingT
	now    time.Time
	policy *machine.Policy
	class  *machine.Class // nil: it does not exist
	secret string
	frozen bool
	// watched is when the process began to watch; zero: it always has.
	watched time.Time
	missing *machine.MissingVM
	listed  bool                                       // as unhealthy
	fields  []string                                   // that the driver declares
	seen    func() *machine.Class                      // the class as caches show it; nil: as it is
	turn    func(*machine.Machine) *machine.UpdateTurn // answers AskUpdate; nil: it is always one's turn
	// budget answers AskGrant; nil: there is none.
	budget func(*machine.Machine) *machine.Grant
	// hold is what slows the machine's class, and createTurn answers AskCreate; nil:
	// nothing does.
	hold       *machine.Hold
	createTurn func(*machine.Machine) *machine.CreateTurn
	states     *fsm.States[machine.Machine]

	store    *storeModel
	provider *providerModel
	cluster  *clusterModel // nil: there is none
	tokens   *tokenModel   // nil: none are asked for
	owner    ownerModel

	calls  int  // port calls made so far
	killAt int  // the port call at which the shell dies; 0: none
	after  bool // the call takes effect before the shell dies
}

// epoch is when worlds begin. It has a fraction of a second, which stores drop.
var epoch = time.Date(2026, 3, 1, 9, 0, 0, 700_000_000, time.UTC)

const ours = "m-1" // the machine that tests are about

func newWorld(t require.TestingT) *world {
	policy := machine.DefaultPolicy()
	w := &world{
		t: t, now: epoch, policy: policy, states: states(t, policy), secret: "v1",
		class: &machine.Class{
			Meta:     object.Meta{Key: object.Key{Namespace: "fleet", Name: "small"}, UID: "class-1", Generation: 1},
			Provider: "model",
		},
	}
	w.store = &storeModel{w: w}
	w.provider = &providerModel{w: w, atomic: true, boot: time.Minute, calls: map[codes.Call]int{}}
	w.cluster = &clusterModel{w: w, nodes: map[string][]*machine.Node{}, madeOf: map[string]string{}}
	return w
}

// give stores the machine that the test is about, born with the finalizer.
func (w *world) give(change ...func(*machine.Machine)) {
	m := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: ours}}}
	m.AddFinalizer(machine.Finalizer)
	m.Spec.Class = machine.ClassRef{Name: "small"}
	for _, c := range change {
		c(m)
	}
	w.store.create(m)
}

// edit changes spec and metadata of the machine as its owner would.
func (w *world) edit(change func(*machine.Machine)) {
	m := w.store.live().Clone()
	change(m)
	_, err := w.store.update(m)
	require.NoError(w.t, err)
}

// pass lets time pass, and the world with it.
func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	w.tick()
}

// read is how a node is read live now.
func (w *world) read() decision.Freshness { return readAt(w.now) }

// readAt is a live read that took no time.
func readAt(at time.Time) decision.Freshness { return decision.Freshness{Began: at, Ended: at} }

// tick makes happen what is due.
func (w *world) tick() {
	if w.cluster != nil {
		w.cluster.register()
		w.cluster.agent.work(w)
	}
	w.owner.work(w)
}

// next is when something is due to happen by itself; zero: nothing is.
func (w *world) next() time.Time {
	var at time.Time
	for _, v := range w.provider.vms {
		if w.cluster != nil && !v.joined && v.boots && (at.IsZero() || v.bootAt.Before(at)) {
			at = v.bootAt
		}
	}
	if w.cluster != nil {
		at = earlier(at, w.cluster.agent.due(w))
	}
	if w.owner.due(w.store.live()) {
		return w.now
	}
	return at
}

var errKilled = errors.New("the shell was killed")

// port carries out one port call, unless the shell dies at it. A kill before
// a call loses the call, a kill after it loses its answer.
func (w *world) port(call func()) error {
	w.calls++
	if w.calls == w.killAt {
		if w.after {
			call()
		}
		return errKilled
	}
	call()
	return nil
}

// legal holds a plan to its moves (P44): none comes after a zero one, and they explain its write.
func (w *world) legal(o *machine.Observation, plan machine.Plan) {
	ended := false
	for _, move := range plan.Moves {
		require.False(w.t, ended && move != (machine.Move{}), "a move after none: %s", plan.Why)
		ended = move == machine.Move{}
	}
	require.NoError(w.t, explained(w.states, o, &plan), "%s", plan.Why)
}

// explained reports whether a plan's moves lead from the machine as it is to what the plan's write makes of it.
func explained(states *fsm.States[machine.Machine], o *machine.Observation, plan *machine.Plan) error {
	after := o.Machine.Clone()
	switch write := plan.Write.(type) {
	case *machine.Update:
		after.Meta, after.Spec = write.Machine.CloneMeta(), write.Machine.Spec.Clone()
	case *machine.UpdateStatus:
		after.Status = write.Status.Clone()
	}
	return states.Fire(context.Background(), o.Machine, after, o, plan.Moves[:]...)
}

// states are those of machines, with the guards of a policy.
func states(t require.TestingT, p *machine.Policy) *fsm.States[machine.Machine] {
	s, err := fsm.New(fsm.Machines(p)...)
	require.NoError(t, err)
	return s
}
