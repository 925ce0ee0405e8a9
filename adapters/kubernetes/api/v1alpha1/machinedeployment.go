package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MachineDeployment keeps a fleet of machines and rolls it to a new template
// when that changes.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=mcd
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`,description="Machines that are ready"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`,description="Machines that are desired"
// +kubebuilder:printcolumn:name="Up-to-date",type=integer,JSONPath=`.status.updatedReplicas`,description="Machine objects of the current template, also those without a VM yet"
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`,description="Machines that have been ready for long enough"
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.template.spec.class.name`,description="The class of new machines"
// +kubebuilder:printcolumn:name="Progress",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].reason`,description="How far the rollout is, in one word"
// +kubebuilder:printcolumn:name="Frozen",type=string,JSONPath=`.status.conditions[?(@.type=="Frozen")].status`,description="True: there are more machines than any rollout needs, and none is created"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the object was created"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].message`,description="How far the rollout is, and what delays it: drains, quotas, failures"
// +kubebuilder:printcolumn:name="Failure",type=string,JSONPath=`.status.conditions[?(@.type=="ReplicaFailure")].message`,description="Why machines could not be created or deleted",priority=1
// +kubebuilder:printcolumn:name="Slowed",type=string,JSONPath=`.status.conditions[?(@.type=="CreationSlowed")].message`,description="Why the provider is asked for one machine at a time",priority=1
type MachineDeployment struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What the fleet should be.
	// +optional
	Spec MachineDeploymentSpec `json:"spec,omitempty,omitzero"`

	// The observed state of the fleet. Only the manager writes it.
	// +optional
	Status MachineDeploymentStatus `json:"status,omitempty,omitzero"`
}

// MachineDeploymentList is a list of deployments.
//
// +kubebuilder:object:root=true
type MachineDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachineDeployment `json:"items"`
}

// MachineDeploymentSpec says what a fleet should be.
type MachineDeploymentSpec struct {
	// How many machines are desired. 0 is written as well: without it, the scale
	// subresource fails.
	// +optional
	Replicas int32 `json:"replicas"`

	// Which machines and sets belong to the fleet.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// The template of new machines.
	Template MachineTemplateSpec `json:"template"`

	// How machines get a changed template.
	// +optional
	Strategy MachineDeploymentStrategy `json:"strategy,omitempty,omitzero"`

	// For how many seconds a machine must be ready to count as available.
	// +optional
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// How many old sets are kept for rollbacks. Not set: all.
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// Stops rollouts. The deployment can still be scaled.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// A request to return to the template of an old set. The manager removes it when it
	// is done.
	// +optional
	RollbackTo *RollbackConfig `json:"rollbackTo,omitempty"`

	// For how many seconds a rollout may make no progress before condition Progressing
	// becomes False. Not set: no limit.
	// +optional
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`

	// How many failed machines are preserved for inspection automatically, at a time.
	// +optional
	AutoPreserveFailedMachineMax int32 `json:"autoPreserveFailedMachineMax,omitempty"`
}

// MachineDeploymentStrategy says how machines get a changed template.
type MachineDeploymentStrategy struct {
	// RollingUpdate, Recreate or InPlaceUpdate. Empty means RollingUpdate.
	// +optional
	Type MachineDeploymentStrategyType `json:"type,omitempty"`

	// Bounds of a rolling update.
	// +optional
	RollingUpdate *RollingUpdateMachineDeployment `json:"rollingUpdate,omitempty"`

	// Bounds of an update in place, and who selects the machines.
	// +optional
	InPlaceUpdate *InPlaceUpdateMachineDeployment `json:"inPlaceUpdate,omitempty"`
}

// MachineDeploymentStrategyType names a strategy.
type MachineDeploymentStrategyType string

// RollingUpdateMachineDeployment holds the bounds of a rolling update.
type RollingUpdateMachineDeployment struct {
	UpdateConfiguration `json:",inline"`
}

// InPlaceUpdateMachineDeployment holds the bounds of an update in place.
type InPlaceUpdateMachineDeployment struct {
	UpdateConfiguration `json:",inline"`

	// Auto or Manual: who selects the machines. Empty means Auto.
	// +optional
	OrchestrationType OrchestrationType `json:"orchestrationType,omitempty"`
}

// UpdateConfiguration holds the bounds of an update.
type UpdateConfiguration struct {
	// How many machines may be unavailable: a number, or a percentage of the desired
	// number, rounded down.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// How many machines there may be above the desired number: a number, or a
	// percentage of the desired number, rounded up.
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
}

// OrchestrationType says who selects the machines of an update in place.
type OrchestrationType string

// RollbackConfig names an old set.
type RollbackConfig struct {
	// Revision of the set. 0: the one before.
	// +optional
	Revision int64 `json:"revision,omitempty"`
}

// MachineDeploymentStatus is the observed state of a fleet.
type MachineDeploymentStatus struct {
	// The generation of the deployment that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Machines of all sets that are not being deleted.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// How many of these have the current template.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty"`

	// How many of these are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// How many of these have been ready for spec.minReadySeconds.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`

	// Failed machines that are preserved for inspection.
	// +optional
	PreservedFailedReplicas int32 `json:"preservedFailedReplicas,omitempty"`

	// How many machines are missing: the sizes of all sets, minus available machines.
	// +optional
	UnavailableReplicas int32 `json:"unavailableReplicas,omitempty"`

	// The conditions of the fleet.
	// +optional
	Conditions []MachineDeploymentCondition `json:"conditions,omitempty"`

	// How often the name of a new set was in use already.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// Machines whose last operation failed, except for failed machines that are
	// preserved for inspection.
	// +optional
	FailedMachines []*MachineSummary `json:"failedMachines,omitempty"`
}

// MachineDeploymentConditionType is what a condition of a deployment is about.
type MachineDeploymentConditionType string

// MachineDeploymentCondition is one observation about a deployment.
type MachineDeploymentCondition struct {
	// The type of the condition.
	Type MachineDeploymentConditionType `json:"type"`

	// True, False or Unknown.
	Status ConditionStatus `json:"status"`

	// When any field of the condition last changed.
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitempty,omitzero"`

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
