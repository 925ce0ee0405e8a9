package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MachineTemplateSpec is what new machines are made from.
type MachineTemplateSpec struct {
	// Labels and annotations for the machines.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What the machines should be.
	// +optional
	Spec MachineSpec `json:"spec,omitempty,omitzero"`
}

// MachineConfiguration overrides the manager's settings. What is not set is as
// the manager has it.
type MachineConfiguration struct {
	// How long a drain may take before force is used.
	// +optional
	MachineDrainTimeout *metav1.Duration `json:"drainTimeout,omitempty"`

	// How long a machine may be unhealthy before it is replaced.
	// +optional
	MachineHealthTimeout *metav1.Duration `json:"healthTimeout,omitempty"`

	// How long a machine may take to join.
	// +optional
	MachineCreationTimeout *metav1.Duration `json:"creationTimeout,omitempty"`

	// How long an update in place may take.
	// +optional
	MachineInPlaceUpdateTimeout *metav1.Duration `json:"inPlaceUpdateTimeout,omitempty"`

	// How long a machine is kept for inspection.
	// +optional
	MachinePreserveTimeout *metav1.Duration `json:"machinePreserveTimeout,omitempty"`

	// Whether an unhealthy machine is left alone, however long that lasts.
	// +optional
	DisableHealthTimeout *bool `json:"disableHealthTimeout,omitempty"`

	// How often an eviction is tried.
	// +optional
	MaxEvictRetries *int32 `json:"maxEvictRetries,omitempty"`

	// Conditions that make a node unhealthy unless they are False, separated by
	// commas.
	// +optional
	NodeConditions *string `json:"nodeConditions,omitempty"`
}

// MachineSummary tells of a machine whose last operation failed.
type MachineSummary struct {
	// Name of the machine.
	// +optional
	Name string `json:"name,omitempty"`

	// How the provider calls its VM.
	// +optional
	ProviderID string `json:"providerID,omitempty"`

	// The operation that failed.
	// +optional
	LastOperation LastOperation `json:"lastOperation,omitempty,omitzero"`

	// Name of the machine's set.
	// +optional
	OwnerRef string `json:"ownerRef,omitempty"`
}
