package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Machine is one member of a fleet: the record of a VM or of a physical machine,
// and of the node that it becomes.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=mc
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.currentStatus.phase`,description="Where the machine stands"
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.class.name`,description="What the machine is made from"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the object was made"
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.metadata.labels.node`,description="The node that the machine is"
// +kubebuilder:printcolumn:name="ProviderID",type=string,JSONPath=`.spec.providerID`,description="The provider's name for the VM",priority=1
// +kubebuilder:printcolumn:name="Code",type=string,JSONPath=`.status.lastOperation.errorCode`,description="Why the last operation failed, as the provider says",priority=1
// +kubebuilder:printcolumn:name="Operation",type=string,JSONPath=`.status.lastOperation.description`,description="What is being done, or was done last",priority=1
type Machine struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What the machine should be.
	// +optional
	Spec MachineSpec `json:"spec,omitempty,omitzero"`

	// What is known of the machine. The manager alone writes it.
	// +optional
	Status MachineStatus `json:"status,omitempty,omitzero"`
}

// MachineList is a list of machines.
//
// +kubebuilder:object:root=true
type MachineList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Machine `json:"items"`
}

// MachineSpec says what a machine should be.
type MachineSpec struct {
	// The class that the machine is made from, in its own namespace.
	// +optional
	Class ClassSpec `json:"class,omitempty,omitzero"`

	// How the provider calls the VM. The manager fills it in.
	// +optional
	ProviderID string `json:"providerID,omitempty"`

	// Metadata and taints that the node should carry.
	// +optional
	NodeTemplateSpec NodeTemplateSpec `json:"nodeTemplate,omitempty,omitzero"`

	// What this machine has different from the manager's settings.
	// +optional
	*MachineConfiguration `json:",inline"`
}

// ClassSpec names a class.
type ClassSpec struct {
	// Group of the class; may be empty.
	// +optional
	APIGroup string `json:"apiGroup,omitempty"`

	// Kind of the class. Empty means MachineClass.
	// +optional
	Kind string `json:"kind,omitempty"`

	// Name of the class.
	// +optional
	Name string `json:"name,omitempty"`
}

// NodeTemplateSpec says what a node should carry.
type NodeTemplateSpec struct {
	// Labels and annotations for the node.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Of these fields the taints are put on the node.
	// +optional
	Spec corev1.NodeSpec `json:"spec,omitempty,omitzero"`
}

// MachineStatus is what is known of a machine.
type MachineStatus struct {
	// Where the machine can be reached, if there is no node that says so.
	// +optional
	Addresses []corev1.NodeAddress `json:"addresses,omitempty"`

	// The node's conditions, and the manager's own.
	// +optional
	Conditions []corev1.NodeCondition `json:"conditions,omitempty"`

	// What was attempted last.
	// +optional
	LastOperation LastOperation `json:"lastOperation,omitempty,omitzero"`

	// Where the machine stands.
	// +optional
	CurrentStatus CurrentStatus `json:"currentStatus,omitempty,omitzero"`

	// Name of the node, as managers of former releases wrote it. It is left as it
	// is.
	// +optional
	Node string `json:"node,omitempty"`

	// The driver's own note about the VM. It gets it back with each later call.
	// +optional
	LastKnownState string `json:"lastKnownState,omitempty"`
}

// LastOperation is what was attempted last.
type LastOperation struct {
	// A text for people. During an operation it ends with the step that
	// comes next.
	// +optional
	Description string `json:"description,omitempty"`

	// Which kind of failure it was. Empty: none.
	// +optional
	ErrorCode string `json:"errorCode,omitempty"`

	// When the operation last changed.
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitempty,omitzero"`

	// How it stands.
	// +optional
	State MachineState `json:"state,omitempty"`

	// What is attempted.
	// +optional
	Type MachineOperationType `json:"type,omitempty"`
}

// CurrentStatus is where a machine stands, and since when.
type CurrentStatus struct {
	// The phase. Empty for a machine that no manager has seen yet.
	// +optional
	Phase MachinePhase `json:"phase,omitempty"`

	// Whether the machine fails when it stays in this phase for too long.
	// +optional
	TimeoutActive bool `json:"timeoutActive,omitempty"`

	// When the phase was entered.
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitempty,omitzero"`

	// Until when the machine is kept for inspection.
	// +optional
	PreserveExpiryTime *metav1.Time `json:"preserveExpiryTime,omitempty"`
}

// MachinePhase is where a machine stands.
type MachinePhase string

// MachineState is how an operation stands.
type MachineState string

// MachineOperationType is what is done to a machine.
type MachineOperationType string

// ConditionStatus is True, False or Unknown.
type ConditionStatus string
