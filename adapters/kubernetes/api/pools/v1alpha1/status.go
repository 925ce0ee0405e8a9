package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MachinePoolStatus is the observed state of a pool.
type MachinePoolStatus struct {
	// The phase: Pending, Provisioning, Provisioned, Running, Failed or Deleting.
	// Empty until a manager has seen the pool.
	// +optional
	Phase string `json:"phase,omitempty"`

	// Since when the pool is in this phase.
	// +optional
	Since metav1.Time `json:"since,omitempty,omitzero"`

	// The generation of the pool that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// How many instances the group had when it was last read.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// How many of these instances have a ready node.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// How many of these have been ready for spec.minReadySeconds.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`

	// How many available machines are missing from the desired number.
	// +optional
	UnavailableReplicas int32 `json:"unavailableReplicas,omitempty"`

	// Whether there is bootstrap data, or none is needed.
	// +optional
	BootstrapReady bool `json:"bootstrapReady,omitempty"`

	// Whether the provider reports that the group works.
	// +optional
	InfrastructureReady bool `json:"infrastructureReady,omitempty"`

	// Why a person has to act, in one word. Empty: nobody has to.
	// +optional
	FailureReason string `json:"failureReason,omitempty"`

	// The same as a text: the provider's message, or the invalid field.
	// +optional
	FailureMessage string `json:"failureMessage,omitempty"`

	// The conditions of the pool.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []MachinePoolCondition `json:"conditions,omitempty"`

	// The nodes of the instances, in the order of spec.providerIDs.
	// +listType=atomic
	// +optional
	NodeRefs []MachinePoolNode `json:"nodeRefs,omitempty"`

	// The provider's name for the group.
	// +optional
	GroupID string `json:"groupID,omitempty"`

	// The driver's own note about the group. The manager passes it to later calls.
	// +optional
	LastKnownState string `json:"lastKnownState,omitempty"`

	// What the group was created from, or updated to.
	// +optional
	Applied MachinePoolApplied `json:"applied,omitempty,omitzero"`

	// Instances that are drained and then removed, in the order in which they were
	// chosen.
	// +listType=atomic
	// +optional
	Leaving []MachinePoolLeaving `json:"leaving,omitempty"`

	// The last call of the provider that was to change something, or that failed.
	// +optional
	LastOperation MachinePoolOperation `json:"lastOperation,omitempty,omitzero"`

	// Whether it is certain that the provider was never asked to create the group.
	// +optional
	NeverCreated bool `json:"neverCreated,omitempty"`
}

// MachinePoolCondition is one observation about a pool.
type MachinePoolCondition struct {
	// The type of the condition.
	Type string `json:"type"`

	// True, False or Unknown.
	Status string `json:"status"`

	// When the status last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty,omitzero"`

	// The reason for the status, in one word for programs.
	// +optional
	Reason string `json:"reason,omitempty"`

	// The reason for the status, in a sentence for people.
	// +optional
	Message string `json:"message,omitempty"`
}

// MachinePoolNode names the node of an instance.
type MachinePoolNode struct {
	// The provider's ID of the instance.
	// +optional
	ProviderID string `json:"providerID,omitempty"`

	// Name of the node.
	// +optional
	Name string `json:"name,omitempty"`

	// UID of the node.
	// +optional
	UID string `json:"uid,omitempty"`

	// Since when the node is ready, by the manager's clock; spec.minReadySeconds
	// counts from here. Not set: the node is not ready.
	// +optional
	ReadySince metav1.Time `json:"readySince,omitempty,omitzero"`
}

// MachinePoolApplied is what a group was created from, or updated to.
type MachinePoolApplied struct {
	// The template at that time.
	// +optional
	Template MachinePoolTemplate `json:"template,omitempty,omitzero"`

	// The failure domains at that time.
	// +listType=atomic
	// +optional
	FailureDomains []string `json:"failureDomains,omitempty"`

	// The rolling update at that time.
	// +optional
	RollingUpdate *MachinePoolRollingUpdate `json:"rollingUpdate,omitempty"`

	// UID of the class.
	// +optional
	ClassUID string `json:"classUID,omitempty"`

	// Generation of the class at that time. -1: it is not known which of several
	// calls has created or updated the group.
	// +optional
	ClassGeneration int64 `json:"classGeneration,omitempty"`

	// Whether an update is under way, or its result is not known: the group has what
	// is here, or what the update brings.
	// +optional
	Doubted bool `json:"doubted,omitempty"`
}

// MachinePoolLeaving is an instance that is drained and then removed.
type MachinePoolLeaving struct {
	// The provider's ID of the instance.
	// +optional
	ProviderID string `json:"providerID,omitempty"`

	// Why it is removed: ScaleDown, Replace or Provider.
	// +optional
	Exit string `json:"exit,omitempty"`

	// Since when. The time limit of its drain counts from here.
	// +optional
	Since metav1.Time `json:"since,omitempty,omitzero"`
}

// MachinePoolOperation is a call for a pool.
type MachinePoolOperation struct {
	// The call, such as ScalePool.
	// +optional
	Call string `json:"call,omitempty"`

	// The state of the call: Processing, Failed or Successful.
	// +optional
	State string `json:"state,omitempty"`

	// How many machines were desired when the call was made.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// The code of the failure. Empty: there was none.
	// +optional
	ErrorCode string `json:"errorCode,omitempty"`

	// A text for people.
	// +optional
	Message string `json:"message,omitempty"`

	// When the operation last changed.
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitempty,omitzero"`

	// The versions of pool, class and secrets when the call failed: once one of them
	// has changed, the next attempt does not wait.
	// +optional
	Against MachinePoolInputs `json:"against,omitempty,omitzero"`
}

// MachinePoolInputs are the versions of what a call depends on.
type MachinePoolInputs struct {
	// Generation of the pool.
	// +optional
	Pool int64 `json:"pool,omitempty"`

	// Generation of the class. 0: there was no class.
	// +optional
	Class int64 `json:"class,omitempty"`

	// Version of the class's secrets.
	// +optional
	Secret string `json:"secret,omitempty"`
}
