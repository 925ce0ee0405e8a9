package safety_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
)

// printed returns a value with everything it points to.
func printed(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%+v", v)
	}
	return string(text)
}

func fleetOf(n int) ([]*machine.Machine, map[string]string) {
	machines, vms := make([]*machine.Machine, n), make(map[string]string, n)
	for i := range machines {
		name, id := "web-bcdfg-"+strconv.Itoa(i), "provider:///zone-1/i-0123456789abcdef"+strconv.Itoa(i)
		m := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: name}}}
		m.Spec.ProviderID, m.Spec.NodeName, m.Status.Phase = id, "node-"+strconv.Itoa(i), machine.PhaseRunning
		machines[i], vms[id] = m, name
	}
	return machines, vms
}

// BenchmarkOrphans compares 10,000 VMs with 10,000 machines, with no orphan or with a thousand
// among them.
func BenchmarkOrphans(b *testing.B) {
	for _, missing := range []int{0, 1000} {
		b.Run(fmt.Sprintf("orphans=%d", missing), func(b *testing.B) {
			machines, vms := fleetOf(10_000)
			o := &safety.OrphanObservation{
				Classes: []safety.OrphanClass{{Key: object.Key{Name: "a"}, Asked: epoch, Listing: &safety.Listing{Asked: epoch, Answered: epoch, VMs: vms}}},
				Read:    decision.Freshness{Began: epoch}, Machines: machines[missing:],
			}
			p := safety.DefaultPolicy()
			for b.Loop() {
				plan, err := safety.DecideOrphans(o, p, epoch.Add(time.Second))
				if err != nil || len(plan.Sightings) != missing {
					b.Fatal(len(plan.Sightings), err)
				}
			}
		})
	}
}

// BenchmarkNodes goes through 10,000 nodes, each with its machine.
func BenchmarkNodes(b *testing.B) {
	machines, _ := fleetOf(10_000)
	o := &safety.NodesObservation{Machines: machines}
	for _, m := range machines {
		o.Nodes = append(o.Nodes, &machine.Node{Meta: object.Meta{Key: object.Key{Name: m.Spec.NodeName}}})
	}
	for b.Loop() {
		if plan, err := safety.DecideNodes(o, safety.DefaultPolicy(), epoch); err != nil || len(plan.Write) > 0 {
			b.Fatal(plan.Why, err)
		}
	}
}

// BenchmarkGrant asks about one machine of a deployment of 1,000.
func BenchmarkGrant(b *testing.B) {
	w := newWard(b, 1000, false)
	w.turn(w.machines[0].Name, machine.PhaseUnknown)
	o := &safety.GrantObservation{Machine: w.machines[0], Deployment: w.deployment, Set: w.set, Fleet: w.machines, Read: decision.Freshness{Began: epoch}}
	for b.Loop() {
		if plan, err := safety.DecideGrant(o, w.policy, epoch); err != nil || plan.Write == nil {
			b.Fatal(plan.Why, err)
		}
	}
}

// BenchmarkReach checks a fleet whose API servers answer.
func BenchmarkReach(b *testing.B) {
	o := &safety.ReachObservation{
		Reach:   safety.Reach{Stage: safety.ReachOpen, Checked: epoch, Control: safety.Side{Up: true}, Target: safety.Side{Up: true}},
		Control: &machine.Outcome{}, Target: &machine.Outcome{},
	}
	for b.Loop() {
		if plan, err := safety.DecideReachability(o, safety.DefaultPolicy(), epoch); err != nil || plan.Reach.Stage.Frozen() {
			b.Fatal(plan.Why, err)
		}
	}
}
