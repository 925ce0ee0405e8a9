package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MachineTemplateSpec is the template of new machines.
type MachineTemplateSpec struct {
	// Labels and annotations for the machines.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What the machines should be.
	// +optional
	Spec MachineSpec `json:"spec,omitempty,omitzero"`
}

// MachineConfiguration overrides the manager's settings. For a field that is not
// set, the manager's setting counts.
type MachineConfiguration struct {
	// How long a drain may take before force is used.
	// +optional
	MachineDrainTimeout *metav1.Duration `json:"drainTimeout,omitempty"`

	// How long a machine may be unhealthy before it is replaced.
	// +optional
	MachineHealthTimeout *metav1.Duration `json:"healthTimeout,omitempty"`

	// How long a machine may take to join the cluster.
	// +optional
	MachineCreationTimeout *metav1.Duration `json:"creationTimeout,omitempty"`

	// How long an update in place may take.
	// +optional
	MachineInPlaceUpdateTimeout *metav1.Duration `json:"inPlaceUpdateTimeout,omitempty"`

	// How long a machine is preserved for inspection.
	// +optional
	MachinePreserveTimeout *metav1.Duration `json:"machinePreserveTimeout,omitempty"`

	// Whether an unhealthy machine is not replaced, however long it is unhealthy.
	// +optional
	DisableHealthTimeout *bool `json:"disableHealthTimeout,omitempty"`

	// For how many intervals of 20 s, from the beginning of a drain, evictions are tried.
	// +optional
	MaxEvictRetries *int32 `json:"maxEvictRetries,omitempty"`

	// Conditions that make a node unhealthy unless they are False, separated by
	// commas.
	// +optional
	NodeConditions *string `json:"nodeConditions,omitempty"`
}

// MachineSummary describes a machine whose last operation failed.
type MachineSummary struct {
	// Name of the machine.
	// +optional
	Name string `json:"name,omitempty"`

	// The provider's ID of the VM.
	// +optional
	ProviderID string `json:"providerID,omitempty"`

	// The operation that failed.
	// +optional
	LastOperation LastOperation `json:"lastOperation,omitempty,omitzero"`

	// Name of the machine's set.
	// +optional
	OwnerRef string `json:"ownerRef,omitempty"`
}
