package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Machine is one member of a fleet: a VM or a physical machine, and its node.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=mc
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.currentStatus.phase`,description="Phase of the machine"
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.class.name`,description="The class of the machine"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the object was created"
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.metadata.labels.node`,description="The machine's node"
// +kubebuilder:printcolumn:name="ProviderID",type=string,JSONPath=`.spec.providerID`,description="The provider's name for the VM",priority=1
// +kubebuilder:printcolumn:name="Code",type=string,JSONPath=`.status.lastOperation.errorCode`,description="The code of the last operation's failure",priority=1
// +kubebuilder:printcolumn:name="Operation",type=string,JSONPath=`.status.lastOperation.description`,description="What is being done, or was done last",priority=1
type Machine struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What the machine should be.
	// +optional
	Spec MachineSpec `json:"spec,omitempty,omitzero"`

	// The observed state of the machine. Only the manager writes it.
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
	// The class of the machine, in the machine's namespace.
	// +optional
	Class ClassSpec `json:"class,omitempty,omitzero"`

	// The provider's ID of the VM. The manager sets it.
	// +optional
	ProviderID string `json:"providerID,omitempty"`

	// Labels, annotations and taints that the node should have.
	// +optional
	NodeTemplateSpec NodeTemplateSpec `json:"nodeTemplate,omitempty,omitzero"`

	// Settings of this machine that differ from the manager's.
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

// NodeTemplateSpec has the labels, annotations and taints that a node should have.
type NodeTemplateSpec struct {
	// Labels and annotations for the node.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The taints for the node. Other fields are ignored.
	// +optional
	Spec corev1.NodeSpec `json:"spec,omitempty,omitzero"`
}

// MachineStatus is the observed state of a machine.
type MachineStatus struct {
	// The addresses of the machine, if no node reports them.
	// +optional
	Addresses []corev1.NodeAddress `json:"addresses,omitempty"`

	// The node's conditions, and the manager's own.
	// +optional
	Conditions []corev1.NodeCondition `json:"conditions,omitempty"`

	// The operation that was attempted last.
	// +optional
	LastOperation LastOperation `json:"lastOperation,omitempty,omitzero"`

	// The phase of the machine.
	// +optional
	CurrentStatus CurrentStatus `json:"currentStatus,omitempty,omitzero"`

	// Name of the node, as former releases of machine-controller-manager wrote it. It
	// is not used.
	// +optional
	Node string `json:"node,omitempty"`

	// The driver's own note about the VM. The manager passes it to later calls.
	// +optional
	LastKnownState string `json:"lastKnownState,omitempty"`
}

// LastOperation is the operation that was attempted last.
type LastOperation struct {
	// A text for people. During an operation it ends with the step that
	// comes next.
	// +optional
	Description string `json:"description,omitempty"`

	// The code of the failure. Empty: there was none.
	// +optional
	ErrorCode string `json:"errorCode,omitempty"`

	// When the operation last changed.
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitempty,omitzero"`

	// The state of the operation.
	// +optional
	State MachineState `json:"state,omitempty"`

	// The kind of the operation.
	// +optional
	Type MachineOperationType `json:"type,omitempty"`
}

// CurrentStatus is the phase of a machine, and since when it is in it.
type CurrentStatus struct {
	// The phase. Empty until a manager has seen the machine, and while its VM is being
	// created.
	// +optional
	Phase MachinePhase `json:"phase,omitempty"`

	// Whether the machine fails when it stays in this phase for too long.
	// +optional
	TimeoutActive bool `json:"timeoutActive,omitempty"`

	// When the phase was entered.
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitempty,omitzero"`

	// Until when the machine is preserved for inspection.
	// +optional
	PreserveExpiryTime *metav1.Time `json:"preserveExpiryTime,omitempty"`
}

// MachinePhase is the phase of a machine.
type MachinePhase string

// MachineState is the state of an operation.
type MachineState string

// MachineOperationType is the kind of an operation.
type MachineOperationType string

// ConditionStatus is True, False or Unknown.
type ConditionStatus string
