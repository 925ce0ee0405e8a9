package machineclass_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineclass"
	"github.com/millwright-go/millwright/object"
)

// world is everything about one name: our class, the older one, the objects that refer to it, and a
// driver. Caches are as new as the last look.
type world struct {
	policy machineclass.Policy
	now    time.Time
	class  *machine.Class
	old    *oldClass
	users  []*user
	cached snapshot
	answer codes.Code // of the driver; OK: it fills the class
	memory *machineclass.Failure

	writes, asked int
	killAt        int // counts down with each call to the outside; 0: none
	text          *strings.Builder
}

type oldClass struct {
	ref      machine.ClassRef
	size     string
	migrated bool
	version  int
}

type user struct {
	holder machineclass.Holder
	name   string
	ref    machine.ClassRef
}

type snapshot struct {
	class *machine.Class
	users []user
}

var (
	start = time.Unix(1_800_000_000, 0).UTC()
	key   = object.Key{Namespace: "fleet", Name: "small"}
	ours  = machine.ClassRef{Kind: machine.ClassKind, Name: "small"}
	blue  = machine.ClassRef{APIGroup: "blue.example", Kind: "BlueClass", Name: "small"}
	green = machine.ClassRef{Kind: "GreenClass", Name: "small"}
)

func newWorld() *world {
	return &world{policy: machineclass.Policy{Keep: true, Migrate: true}, now: start, text: &strings.Builder{}}
}

func (w *world) look() {
	w.cached = snapshot{class: w.class}
	for _, u := range w.users {
		w.cached.users = append(w.cached.users, *u)
	}
}

func (w *world) use(holder machineclass.Holder, name string, ref machine.ClassRef) {
	w.users = append(w.users, &user{holder, name, ref})
}

// observe fills an observation from the caches, or live.
func (w *world) observe(o *machineclass.Observation, live bool) {
	if live {
		w.look()
	}
	o.Key, o.Class, o.Read, o.Failed = key, w.cached.class, readIf(live), w.memory
	o.Users, o.References = machineclass.Users{}, nil
	for _, u := range w.cached.users {
		switch u.holder {
		case machineclass.HolderDeployment:
			o.Users.Deployments++
		case machineclass.HolderSet:
			o.Users.Sets++
		case machineclass.HolderMachine:
			o.Users.Machines++
		}
		if u.ref.Foreign() {
			o.References = append(o.References, machineclass.Reference{
				Holder: u.holder, Key: object.Key{Namespace: key.Namespace, Name: u.name}, Class: u.ref,
			})
		}
	}
}

// outcome of one pass.
type outcome int

const (
	settled outcome = iota
	killed
	conflict
)

// pass is one pass of a shell; kept plans go to the check.
func (w *world) pass(fresh bool, check func(*machineclass.Observation, *machineclass.Plan)) (outcome, machineclass.Plan) {
	o := &machineclass.Observation{}
	w.observe(o, fresh)
	for range 64 {
		plan, err := machineclass.Decide(o, &w.policy, w.now)
		if err != nil {
			panic(err) // the observation is complete
		}
		w.tell(&plan)
		if check != nil {
			check(o, &plan)
		}
		if !plan.ReadLive && plan.Write == nil && plan.Effect == nil {
			return settled, plan
		}
		if done := w.carryOut(o, &plan); done != settled {
			return done, plan
		}
	}
	panic("a pass does not end:\n" + w.text.String())
}

// tell writes a plan down.
func (w *world) tell(plan *machineclass.Plan) {
	action := "nothing to do"
	switch {
	case plan.ReadLive:
		action = "read live"
	case plan.Write != nil:
		action = name(plan.Write)
	case plan.Effect != nil:
		action = name(plan.Effect)
	case !plan.At.IsZero():
		action = "look again in " + plan.At.Sub(w.now).String()
	}
	fmt.Fprintf(w.text, "%-8s %-20s %s\n", "+"+w.now.Sub(start).String(), action, plan.Why)
	if plan.Warn != (decision.Why{}) && plan.Warn != plan.Why {
		fmt.Fprintf(w.text, "%-8s warning: %s\n", "", plan.Warn)
	}
}

func name(v any) string {
	return strings.TrimPrefix(strings.TrimPrefix(fmt.Sprintf("%T", v), "*"), "machineclass.")
}

// call counts an external call. True: the process is dead before it.
func (w *world) call() bool {
	w.killAt--
	return w.killAt == 0
}

func (w *world) carryOut(o *machineclass.Observation, plan *machineclass.Plan) outcome {
	if plan.ReadLive {
		w.observe(o, true)
		return settled
	}
	if w.call() {
		return killed
	}
	done := w.do(o, plan)
	if done == settled && w.call() {
		return killed
	}
	return done
}

func (w *world) do(o *machineclass.Observation, plan *machineclass.Plan) outcome {
	switch write := plan.Write.(type) {
	case *machineclass.Create:
		if w.class != nil {
			return conflict
		}
		return w.store(o, write.Class)
	case *machineclass.Update:
		if w.class == nil || w.class.Version != write.Class.Version {
			return conflict
		}
		return w.store(o, write.Class)
	}
	switch e := plan.Effect.(type) {
	case machineclass.ReadOld:
		o.Old = &machineclass.Old{}
		if w.old != nil && w.old.ref == e.Class {
			o.Old = &machineclass.Old{Found: true, Migrated: w.old.migrated, Version: fmt.Sprint(w.old.version)}
		}
	case machineclass.Fill:
		w.fill(o)
	case machineclass.MarkOld:
		if w.old == nil || fmt.Sprint(w.old.version) != e.Version {
			return conflict
		}
		w.old.migrated = true
		o.Marked = true
	case *machineclass.Move:
		return w.move(o, e.References)
	}
	return settled
}

// store keeps what a write holds. A deleted class without finalizers is gone.
func (w *world) store(o *machineclass.Observation, c *machine.Class) outcome {
	w.writes++
	c = c.Clone()
	c.Version = fmt.Sprint(w.writes)
	if w.class != nil {
		c.DeletedAt = w.class.DeletedAt
	}
	w.class = c
	if c.Deleted() && len(c.Finalizers) == 0 {
		w.class = nil
		return conflict
	}
	o.Class, o.Stored = c, o.Filled != nil
	return settled
}

func (w *world) fill(o *machineclass.Observation) {
	w.asked++
	class := &machine.Class{}
	if o.Class != nil {
		class = o.Class.Clone()
	}
	class.Provider, class.ProviderSpec = "blue", []byte(w.old.size)
	o.Filled = &machineclass.Filled{Class: class}
	if w.answer == codes.OK {
		w.memory = nil
		return
	}
	n := 1
	if w.memory != nil {
		n += w.memory.Failures
	}
	bad := machine.Outcome{Code: w.answer, Message: "not today"}
	w.memory = &machineclass.Failure{Outcome: bad, At: w.now, Failures: n, Version: o.Old.Version}
	o.Filled, o.Failed = &machineclass.Filled{Outcome: bad}, w.memory
}

// move moves references one by one, so that a kill may come between two.
func (w *world) move(o *machineclass.Observation, references []machineclass.Reference) outcome {
	for _, r := range references {
		for _, u := range w.users {
			if u.holder == r.Holder && u.name == r.Key.Name && u.ref == r.Class {
				u.ref.Kind = machine.ClassKind
				w.writes++
			}
		}
		if w.call() {
			return killed
		}
	}
	o.Moved = true
	return settled
}

// readIf is how an observation was read: live or from caches.
func readIf(live bool) decision.Freshness {
	if !live {
		return decision.Freshness{}
	}
	return decision.Freshness{Began: start}
}
