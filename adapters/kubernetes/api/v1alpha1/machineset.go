package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MachineSet keeps a number of equal machines.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=mcs
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`,description="Machines that are desired"
// +kubebuilder:printcolumn:name="Current",type=integer,JSONPath=`.status.replicas`,description="Machines that exist and are not being deleted"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`,description="Machines that are ready"
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.template.spec.class.name`,description="The class of new machines"
// +kubebuilder:printcolumn:name="Frozen",type=string,JSONPath=`.status.machineSetCondition[?(@.type=="Frozen")].status`,description="True: there are more machines than any rollout needs, and none is created"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the object was created"
// +kubebuilder:printcolumn:name="Failure",type=string,JSONPath=`.status.machineSetCondition[?(@.type=="ReplicaFailure")].message`,description="Why machines could not be created or deleted"
// +kubebuilder:printcolumn:name="Slowed",type=string,JSONPath=`.status.machineSetCondition[?(@.type=="CreationSlowed")].message`,description="Why the provider is asked for one machine at a time",priority=1
type MachineSet struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What the set should be.
	// +optional
	Spec MachineSetSpec `json:"spec,omitempty,omitzero"`

	// The observed state of the set. Only the manager writes it.
	// +optional
	Status MachineSetStatus `json:"status,omitempty,omitzero"`
}

// MachineSetList is a list of sets.
//
// +kubebuilder:object:root=true
type MachineSetList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachineSet `json:"items"`
}

// MachineSetSpec says what a set should be.
type MachineSetSpec struct {
	// How many machines are desired. 0 is written as well: without it, the scale
	// subresource fails.
	// +optional
	Replicas int32 `json:"replicas"`

	// Which machines belong to the set.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// Not used any more: the template names the class.
	// +optional
	MachineClass ClassSpec `json:"machineClass,omitempty,omitzero"`

	// The template of new machines.
	// +optional
	Template MachineTemplateSpec `json:"template,omitempty,omitzero"`

	// For how many seconds a machine must be ready to count as available.
	// +optional
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// How many failed machines are preserved for inspection automatically, at a time.
	// +optional
	AutoPreserveFailedMachineMax int32 `json:"autoPreserveFailedMachineMax,omitempty"`
}

// MachineSetStatus is the observed state of a set.
type MachineSetStatus struct {
	// Machines that are not being deleted.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// How many of these have all labels of the template.
	// +optional
	FullyLabeledReplicas int32 `json:"fullyLabeledReplicas,omitempty"`

	// How many of these are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// How many of these have been ready for spec.minReadySeconds.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`

	// Failed machines that are preserved for inspection.
	// +optional
	PreservedFailedReplicas int32 `json:"preservedFailedReplicas,omitempty"`

	// The generation of the set that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// The conditions of the set.
	// +optional
	Conditions []MachineSetCondition `json:"machineSetCondition,omitempty"`

	// The last creation, deletion or update of a machine object that failed, or the
	// first that succeeded afterwards.
	// +optional
	LastOperation LastOperation `json:"lastOperation,omitempty,omitzero"`

	// Machines whose last operation failed, except for failed machines that are
	// preserved for inspection.
	// +optional
	FailedMachines *[]MachineSummary `json:"failedMachines,omitempty"`

	// How many machines are preserved for inspection automatically.
	// +optional
	AutoPreserveFailedMachineCount int32 `json:"autoPreserveFailedMachineCount,omitempty"`
}

// MachineSetConditionType is what a condition of a set is about.
type MachineSetConditionType string

// MachineSetCondition is one observation about a set.
type MachineSetCondition struct {
	// The type of the condition.
	Type MachineSetConditionType `json:"type"`

	// True, False or Unknown.
	Status ConditionStatus `json:"status"`

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
