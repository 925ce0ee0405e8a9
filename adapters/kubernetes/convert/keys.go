package convert

// Keys are the names under which metadata holds what the established kinds have
// no field for. None may be empty, and no two may be the same. This library's own
// begin with "millwright-go/".
type Keys struct {
	NodeLabel string // label on a machine: its node
	Revision  string // annotation on sets and deployments
	Preserve  string // annotation on a machine that asks to keep it; read only

	NodePreserve string // annotation on a machine: what its node asked for last, as other managers record it; read only

	LastApplied         string // annotation on a node: template that was applied last
	LastAppliedCapacity string // annotation on a node: virtual capacity that was applied last

	// These are what rollouts of other managers put on nodes; read only.
	KeepNode, KeptByUs string // annotations, "true" each
	AvoidTaint         string // a taint, "True", PreferNoSchedule

	SpecChanges        string // annotation on a machine or set: changes of the spec that an API server did not count
	DeploymentChanges  string // the same on a deployment
	InPlace            string // on a machine
	InPlaceTarget      string // annotation on a machine: the set that it is updated for; read only
	Marks              string // on machines and sets
	SetRecord          string // on a set: what its status has no field for
	DeploymentRecord   string // the same on a deployment; a name of its own, as other managers copy it to sets
	Reservation        string // on a set, as the next five
	Handover           string
	DeletionCandidates string
	MaxAge             string // on deployments too: a duration such as 720h
	StopAfter          string // on a deployment: a number or a percentage, such as 3 or 5%
	PreviousClasses    string
	SurgeAllowance     string
	Applied            string // on a node
	Drain              string // on a node
}

// DefaultKeys returns the established keys.
func DefaultKeys() Keys {
	return Keys{
		NodeLabel: "node",
		Revision:  "deployment.kubernetes.io/revision",
		Preserve:  "node.machine.sapcloud.io/preserve",

		NodePreserve: "node.machine.sapcloud.io/last-applied-node-preserve-value",

		LastApplied:         "node.machine.sapcloud.io/last-applied-anno-labels-taints",
		LastAppliedCapacity: "node.machine.sapcloud.io/last-applied-virtual-capacity",

		KeepNode:   "cluster-autoscaler.kubernetes.io/scale-down-disabled",
		KeptByUs:   "cluster-autoscaler.kubernetes.io/scale-down-disabled-by-mcm",
		AvoidTaint: "deployment.machine.sapcloud.io/prefer-no-schedule",

		SpecChanges:        "millwright-go/spec-changes",
		DeploymentChanges:  "millwright-go/deployment-changes",
		InPlace:            "millwright-go/in-place",
		InPlaceTarget:      "millwright-go/in-place-target",
		Marks:              "millwright-go/rollout-marks",
		SetRecord:          "millwright-go/set-record",
		DeploymentRecord:   "millwright-go/deployment-record",
		Reservation:        "millwright-go/reservation",
		Handover:           "millwright-go/handover",
		DeletionCandidates: "millwright-go/deletion-candidates",
		MaxAge:             "millwright-go/max-age",
		StopAfter:          "millwright-go/stop-after",
		PreviousClasses:    "millwright-go/previous-classes",
		SurgeAllowance:     "millwright-go/surge-allowance",
		Applied:            "millwright-go/applied",
		Drain:              "millwright-go/drain",
	}
}
