package convert

// Keys are the names of the labels and annotations with values for which the established kinds have
// no field. None may be empty, and no two may be the same. The library's own begin with
// "millwright-go/".
type Keys struct {
	NodeLabel string // label on a machine: its node
	Revision  string // annotation on sets and deployments
	Preserve  string // annotation on a machine: a request to preserve it; read only

	NodePreserve string // annotation on a machine: the last request on its node, as other managers record it; read only

	LastApplied         string // annotation on a node: the template that was applied last
	LastAppliedCapacity string // annotation on a node: the virtual capacity that was applied last

	// Rollouts of another manager set these on nodes. See reader.rollout, which takes them over.
	KeepNode, KeptByUs string // annotations, both "true"; KeptByUs says that this manager ("us") set both
	AvoidTaint         string // a taint with value "True" and effect PreferNoSchedule

	// The following are annotations.

	SpecChanges        string // on a machine or set: number of changes of the spec that an API server did not count
	DeploymentChanges  string // the same on a deployment
	InPlace            string // on a machine
	InPlaceTarget      string // on a machine: the set that it is updated for; read only
	Marks              string // on sets
	SetRecord          string // on a set: the values of its status that have no field
	DeploymentRecord   string // the same on a deployment; not SetRecord, because other managers copy it to sets
	Reservation        string // on a set
	Handover           string // on a set
	DeletionCandidates string // on a set
	MaxAge             string // on sets and deployments: a duration such as 720h
	StopAfter          string // on a deployment: a number or a percentage, such as 3 or 5%
	PreviousClasses    string // on a set
	SurgeAllowance     string // on a set
	Applied            string // on a node
	Drain              string // on a node
}

// DefaultKeys returns the established keys, and the default names of the library's own.
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
