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

// world is everything about the name of one class: our class, the older one, the objects that refer to
// them, a driver, and caches.
type world struct {
	policy machineclass.Policy
	now    time.Time
	class  *machine.Class
	old    *oldClass
	users  []*user
	cached snapshot   // as of the last refreshCaches
	answer codes.Code // of the driver; OK: it fills the class

	lastFailure *machineclass.Failure // as the process remembers it

	writes, fillCalls int
	killAt            int // counts down, see diesNow; 0: the process is not killed
	text              *strings.Builder
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

func (w *world) refreshCaches() {
	w.cached = snapshot{class: w.class}
	for _, u := range w.users {
		w.cached.users = append(w.cached.users, *u)
	}
}

func (w *world) use(holder machineclass.Holder, name string, ref machine.ClassRef) {
	w.users = append(w.users, &user{holder, name, ref})
}

// observe fills an observation from the caches. With live it refreshes them first.
func (w *world) observe(o *machineclass.Observation, live bool) {
	if live {
		w.refreshCaches()
	}
	o.Key, o.Class, o.Read, o.Failed = key, w.cached.class, readIf(live), w.lastFailure
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

// pass decides and carries out plans until nothing is left to do, the process is killed, or a write
// conflicts. live is as for observe. check may be nil; it gets each plan.
func (w *world) pass(live bool, check func(*machineclass.Observation, *machineclass.Plan)) (outcome, machineclass.Plan) {
	o := &machineclass.Observation{}
	w.observe(o, live)
	for range 64 {
		plan, err := machineclass.Decide(o, &w.policy, w.now)
		if err != nil {
			panic(err) // the observation is complete
		}
		w.record(&plan)
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

// record writes a plan down.
func (w *world) record(plan *machineclass.Plan) {
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

// diesNow counts down to the moment at which the process is killed, and reports whether that is now. It is
// called before and after each external call.
func (w *world) diesNow() bool {
	w.killAt--
	return w.killAt == 0
}

func (w *world) carryOut(o *machineclass.Observation, plan *machineclass.Plan) outcome {
	if plan.ReadLive {
		w.observe(o, true)
		return settled
	}
	if w.diesNow() {
		return killed
	}
	done := w.do(o, plan)
	if done == settled && w.diesNow() {
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

// store stores a written class. If that removes the last finalizer of a deleted class, the class is gone.
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
	w.fillCalls++
	class := &machine.Class{}
	if o.Class != nil {
		class = o.Class.Clone()
	}
	class.Provider, class.ProviderSpec = "blue", []byte(w.old.size)
	o.Filled = &machineclass.Filled{Class: class}
	if w.answer == codes.OK {
		w.lastFailure = nil
		return
	}
	n := 1
	if w.lastFailure != nil {
		n += w.lastFailure.Failures
	}
	bad := machine.Outcome{Code: w.answer, Message: "not today"}
	w.lastFailure = &machineclass.Failure{Outcome: bad, At: w.now, Failures: n, Version: o.Old.Version}
	o.Filled, o.Failed = &machineclass.Filled{Outcome: bad}, w.lastFailure
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
		if w.diesNow() {
			return killed
		}
	}
	o.Moved = true
	return settled
}

// readIf returns how an observation was read: live or from caches.
func readIf(live bool) decision.Freshness {
	if !live {
		return decision.Freshness{}
	}
	return decision.Freshness{Began: start}
}
