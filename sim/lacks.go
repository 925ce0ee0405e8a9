package sim

import (
	"fmt"
	"strings"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
)

// atMost is how many objects of a kind a violation names.
const atMost = 5

// lacks returns what keeps the world from converging: pools, deployments, machines with their
// phases and reasons, and nodes and VMs that no machine has.
func (w *World) lacks() string {
	var pools, fleets []string
	for _, p := range w.pools.all() {
		if lacks := w.poolLacks(p); lacks != "" {
			pools = append(pools, fmt.Sprintf("pool %s: %s", p.Name, lacks))
		}
	}
	for _, d := range w.deployments.all() {
		if lacks := w.fleetLacks(d); lacks != "" {
			fleets = append(fleets, fmt.Sprintf("deployment %s: %s", d.Name, lacks))
		}
	}
	return listed(pools) + listed(fleets) + listed(w.restless()) + listed(w.nobodys())
}

// listed names the first of some.
func listed(all []string) string {
	var b strings.Builder
	for _, what := range all[:min(len(all), atMost)] {
		b.WriteString("; " + what)
	}
	if more := len(all) - atMost; more > 0 {
		fmt.Fprintf(&b, "; and %d more", more)
	}
	return b.String()
}

// restless returns the machines that have not converged, or whose VMs have other tags than wanted.
func (w *World) restless() (all []string) {
	for _, m := range w.machines.all() {
		if lacks := machineLacks(m); lacks != "" {
			all = append(all, fmt.Sprintf("machine %s: %s", m.Name, lacks))
		}
	}
	if name := w.untagged(); name != "" {
		all = append(all, fmt.Sprintf("machine %s: its VM has other tags than its class says", name))
	}
	return all
}

// nobodys returns the nodes and VMs that no machine and no pool has.
func (w *World) nobodys() (all []string) {
	machines := map[string]bool{}
	for _, m := range w.machines.all() {
		machines[m.Name] = true
	}
	for _, n := range w.nodes.all() {
		if _, i := w.groups.Instance(n.ProviderID); i == nil && !machines[n.Name] {
			all = append(all, fmt.Sprintf("node %s has no machine", n.Name))
		}
	}
	for _, vm := range w.provider.VMs() {
		if !machines[vm.Name] {
			all = append(all, fmt.Sprintf("VM %s has no machine", vm.ID))
		}
	}
	return all
}

// fleetLacks returns what a deployment lacks to be at rest, or nothing.
func (w *World) fleetLacks(d *deployment.Deployment) string {
	fleet, s := w.fleetOf(d), &d.Status
	switch pledged := w.pledged(d); {
	case d.Deleted():
		return fmt.Sprintf("it is being deleted, and has %d machines", len(fleet))
	case !isComplete(d, fleet):
		return fmt.Sprintf("%d are wanted, %d machines are there, and its status counts %d, updated %d, available %d",
			d.Spec.Replicas, len(fleet), s.Replicas, s.Updated, s.Available)
	case pledged != d.Spec.Replicas:
		return fmt.Sprintf("%d are wanted, and its sets want %d", d.Spec.Replicas, pledged)
	case w.keptOf(fleet) > 0:
		return fmt.Sprintf("%d machines are kept for inspection", w.keptOf(fleet))
	case w.o.UpdatableTags && s.Outdated > 0:
		return fmt.Sprintf("%d machines have yet to get the tags wanted", s.Outdated)
	}
	return ""
}

// machineLacks returns the phase of a machine that is not at rest, and why. It returns nothing for
// a machine at rest.
func machineLacks(m *machine.Machine) string {
	s := &m.Status
	if m.Ready() && !m.Deleted() {
		return ""
	}
	what := string(s.Phase)
	if what == "" {
		what = "no phase"
	}
	if m.Deleted() {
		what += ", being deleted"
	}
	op := &s.LastOperation
	if op.Kind == "" {
		return what
	}
	what += fmt.Sprintf(" (%s, %s, %s)", op.Kind, op.Stage, op.State)
	if op.Message != "" {
		what += ": " + op.Message
	}
	return what
}
