package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MachinePoolStatus is what is known of a pool.
type MachinePoolStatus struct {
	// Where the pool stands: Pending, Provisioning, Provisioned, Running, Failed
	// or Deleting. Empty for one that no manager has seen yet.
	// +optional
	Phase string `json:"phase,omitempty"`

	// Since when it stands there.
	// +optional
	Since metav1.Time `json:"since,omitempty,omitzero"`

	// The generation of the pool that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Instances that the group was last seen with.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// Of these, with a node that is ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// Of these, ready for long enough.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`

	// What is missing to all machines that are wanted.
	// +optional
	UnavailableReplicas int32 `json:"unavailableReplicas,omitempty"`

	// Whether there are bootstrap data, or none are needed.
	// +optional
	BootstrapReady bool `json:"bootstrapReady,omitempty"`

	// Whether the provider says that the group works.
	// +optional
	InfrastructureReady bool `json:"infrastructureReady,omitempty"`

	// What a person has to see to, in one word. Empty: nothing.
	// +optional
	FailureReason string `json:"failureReason,omitempty"`

	// The same in the words of the provider, or naming the field.
	// +optional
	FailureMessage string `json:"failureMessage,omitempty"`

	// What is noteworthy about the pool.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []MachinePoolCondition `json:"conditions,omitempty"`

	// The nodes of the instances, in the order of spec.providerIDs.
	// +listType=atomic
	// +optional
	NodeRefs []MachinePoolNode `json:"nodeRefs,omitempty"`

	// How the provider calls the group.
	// +optional
	GroupID string `json:"groupID,omitempty"`

	// A note of the driver for itself.
	// +optional
	LastKnownState string `json:"lastKnownState,omitempty"`

	// What the group was made from, or updated to.
	// +optional
	Applied MachinePoolApplied `json:"applied,omitempty,omitzero"`

	// Instances that are emptied before they go, as they were chosen.
	// +listType=atomic
	// +optional
	Leaving []MachinePoolLeaving `json:"leaving,omitempty"`

	// The last call that was to change something, or that failed.
	// +optional
	LastOperation MachinePoolOperation `json:"lastOperation,omitempty,omitzero"`

	// Whether it is certain that no group was ever asked for.
	// +optional
	NeverCreated bool `json:"neverCreated,omitempty"`
}

// MachinePoolCondition is one observation about a pool.
type MachinePoolCondition struct {
	// What it is about.
	Type string `json:"type"`

	// True, False or Unknown.
	Status string `json:"status"`

	// When the status became what it is.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty,omitzero"`

	// Why, in one word for programs.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Why, in a sentence for people.
	// +optional
	Message string `json:"message,omitempty"`
}

// MachinePoolNode names the node that an instance has become.
type MachinePoolNode struct {
	// The instance.
	// +optional
	ProviderID string `json:"providerID,omitempty"`

	// Name of its node.
	// +optional
	Name string `json:"name,omitempty"`

	// Identity of its node.
	// +optional
	UID string `json:"uid,omitempty"`

	// Since when it is ready, by the manager's clock; spec.minReadySeconds counts from here. Not set: it is not ready.
	// +optional
	ReadySince metav1.Time `json:"readySince,omitempty,omitzero"`
}

// MachinePoolApplied is what a group was made from.
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

	// Identity of the class.
	// +optional
	ClassUID string `json:"classUID,omitempty"`

	// Generation of the class at that time; -1: the group follows one of several
	// orders, and it is not known which.
	// +optional
	ClassGeneration int64 `json:"classGeneration,omitempty"`

	// Whether an update is under way, or its outcome is not known: the group
	// may follow that.
	// +optional
	Doubted bool `json:"doubted,omitempty"`
}

// MachinePoolLeaving is an instance that is emptied before it goes.
type MachinePoolLeaving struct {
	// The instance.
	// +optional
	ProviderID string `json:"providerID,omitempty"`

	// Why it goes: ScaleDown, Replace or Provider.
	// +optional
	Exit string `json:"exit,omitempty"`

	// Since when; the time to empty it counts from here.
	// +optional
	Since metav1.Time `json:"since,omitempty,omitzero"`
}

// MachinePoolOperation is a call for a pool.
type MachinePoolOperation struct {
	// Which call it was, such as ScalePool.
	// +optional
	Call string `json:"call,omitempty"`

	// How it stands: Processing, Failed or Successful.
	// +optional
	State string `json:"state,omitempty"`

	// How many machines were wanted when it was ordered.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// Which kind of failure it was. Empty: none.
	// +optional
	ErrorCode string `json:"errorCode,omitempty"`

	// A text for people.
	// +optional
	Message string `json:"message,omitempty"`

	// When it last changed.
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitempty,omitzero"`

	// What a failure was seen with: once any of it has changed, the next attempt
	// does not wait.
	// +optional
	Against MachinePoolInputs `json:"against,omitempty,omitzero"`
}

// MachinePoolInputs are the versions of what a call depends on.
type MachinePoolInputs struct {
	// Generation of the pool.
	// +optional
	Pool int64 `json:"pool,omitempty"`

	// Generation of the class; zero: there was none.
	// +optional
	Class int64 `json:"class,omitempty"`

	// Version of the class's secrets.
	// +optional
	Secret string `json:"secret,omitempty"`
}
