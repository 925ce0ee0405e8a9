package replacement_test

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/replacement"
)

// pass carries plans out until there is an answer.
func pass(
	o *replacement.Observation, policy *safety.Policy, now func() time.Time,
	read func(*replacement.Observation) error, store func(replacement.Write, *replacement.Observation) error, answer func(*machine.Grant) error,
) error {
	for {
		plan, err := replacement.Decide(o, policy, now())
		switch {
		case err != nil: // a mistake of the caller
			return err
		case plan.ReadFleet: // read live: what holds the budget, then the sets, then their machines
			err = read(o)
		case plan.Write != nil: // compare and swap; put what is stored into o
			err = store(plan.Write, o)
			o.Taken = true
		default:
			return answer(plan.Grant)
		}
		if err != nil { // a conflict, a shutdown: a new pass
			return err
		}
	}
}

// Two of three machines of a set have been unhealthy for too long. One of them may be replaced. The other one waits
// until the replacement of the first one works.
func ExampleDecide() {
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	set := &machineset.Set{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "web"}, UID: "3fa85f64"}}
	set.Spec.Replicas = 3
	owner := &object.Owner{Kind: machineset.OwnerKind, Name: set.Name, UID: set.UID}
	var fleet []*machine.Machine
	for i, phase := range []machine.Phase{machine.PhaseRunning, machine.PhaseUnknown, machine.PhaseUnknown} {
		fleet = append(fleet, &machine.Machine{
			Meta:   object.Meta{Key: object.Key{Namespace: "fleet", Name: fmt.Sprint("web-", i+1)}, Owner: owner},
			Status: machine.Status{Phase: phase},
		})
	}
	read := func(o *replacement.Observation) error {
		o.Fleet, o.Read = fleet, decision.Freshness{Began: now}
		return nil
	}
	store := func(w replacement.Write, o *replacement.Observation) error {
		if take, ok := w.(*replacement.TakeFromSet); ok { // a real store compares and swaps
			set, o.Set = take.Set, take.Set
		}
		return nil
	}
	answer := func(g *machine.Grant) error {
		fmt.Println(g.Allowed)
		return nil
	}
	for _, asking := range fleet[1:] {
		err := pass(&replacement.Observation{Machine: asking, Set: set}, safety.DefaultPolicy(), func() time.Time { return now }, read, store, answer)
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// true
	// false
}
