package machinepool

import "github.com/millwright-go/millwright/machine"

// Phase is the state of a pool. PhaseTable holds every transition from one to another.
type Phase string

// The phases. Of those whose condition holds, the one that comes latest in this list is the pool's.
const (
	PhaseNew          Phase = ""
	PhasePending      Phase = "Pending"      // accepted; waits for bootstrap data
	PhaseProvisioning Phase = "Provisioning" // bootstrap data are there; the group is being made
	PhaseProvisioned  Phase = "Provisioned"  // the provider says that the group is ready
	PhaseRunning      Phase = "Running"      // as many nodes are ready as are wanted
	PhaseFailed       Phase = "Failed"       // an operator must act
	PhaseDeleting     Phase = "Deleting"     // deletion was asked for
)

// Events of the phase table: which condition is the strongest that holds.
const (
	eventAccepted       machine.Event = "accepted"
	eventBootstrapReady machine.Event = "bootstrap ready"
	eventGroupReady     machine.Event = "group ready"
	eventNodesReady     machine.Event = "nodes ready"
	eventFailed         machine.Event = "failed"
	eventDelete         machine.Event = "delete"
	eventNotDeleted     machine.Event = "not deleted" // Deleting, but no deletion was asked for
	eventRestart        machine.Event = "restart"     // what storage holds makes no sense
)

// step is one phase with the condition under which a pool is in it.
type step struct {
	phase Phase
	on    machine.Event
	rises string // why a pool comes here from an earlier phase
	falls string // why it falls back here from a later one
}

// steps are in order of precedence: the last condition that holds counts.
var steps = []step{
	{PhasePending, eventAccepted, "", "neither bootstrap data nor a group are there any more"},
	{PhaseProvisioning, eventBootstrapReady, "bootstrap data are there, or none are needed: the group can be made",
		"the group is gone or not ready any more; bootstrap data are there"},
	{PhaseProvisioned, eventGroupReady, "the provider says that the group is ready",
		"the group is ready; its ready nodes are not as many as are wanted, or the failure is over"},
	{PhaseRunning, eventNodesReady, "as many nodes of the group are ready as are wanted",
		"the failure is over, and as many nodes are ready as are wanted"},
	{PhaseFailed, eventFailed, "a failure is recorded that a person has to see to", ""},
}

var phases = newPhaseTable()

// PhaseTable is the state machine of Status.Phase. It is shared and must not be changed.
func PhaseTable() *machine.Table { return phases }

func newPhaseTable() *machine.Table {
	var edges []machine.Edge
	add := func(from Phase, on machine.Event, to Phase, why string) {
		edges = append(edges, machine.Edge{From: string(from), On: on, To: string(to), Why: why})
	}
	add(PhaseNew, eventAccepted, PhasePending, "every pool begins here")
	for i, from := range steps {
		for j, to := range steps {
			switch {
			case i < j:
				add(from.phase, to.on, to.phase, to.rises)
			case i > j:
				add(from.phase, to.on, to.phase, to.falls)
			}
		}
	}
	add(PhaseDeleting, eventNotDeleted, PhasePending, "its group may be half gone and no deletion will finish it: it is made whole again")
	for _, from := range []Phase{
		PhaseNew, PhasePending, PhaseProvisioning, PhaseProvisioned, PhaseRunning, PhaseFailed, machine.Unrecognized,
	} {
		add(from, eventDelete, PhaseDeleting, "deletion can begin at any time")
	}
	add(machine.Unrecognized, eventRestart, PhasePending, "what storage holds makes no sense: every pool begins here")
	return machine.NewTable("pool", string(PhaseNew), nil, edges)
}
