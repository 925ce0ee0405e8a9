package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	machines "github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
)

// MachinePool is a number of worker machines that the provider manages as one
// group.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=mwp
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="Phase of the pool"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`,description="Machines that are desired"
// +kubebuilder:printcolumn:name="Current",type=integer,JSONPath=`.status.replicas`,description="Machines that the group has"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`,description="Machines whose nodes are ready"
// +kubebuilder:printcolumn:name="Failure",type=string,JSONPath=`.status.failureReason`,description="Why a person has to act"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the object was created"
// +kubebuilder:printcolumn:name="Class",type=string,priority=1,JSONPath=`.spec.template.class.name`,description="The class of the group"
// +kubebuilder:printcolumn:name="Group",type=string,priority=1,JSONPath=`.status.groupID`,description="The provider's name for the group"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.lastOperation.message`,description="The result of the last call of the provider",priority=1
type MachinePool struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What the pool should be.
	Spec MachinePoolSpec `json:"spec"`

	// The observed state of the pool. Only the manager writes it.
	// +optional
	Status MachinePoolStatus `json:"status,omitempty,omitzero"`
}

// MachinePoolList is a list of pools.
//
// +kubebuilder:object:root=true
type MachinePoolList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachinePool `json:"items"`
}

// MachinePoolSpec says what a pool should be.
type MachinePoolSpec struct {
	// The cluster that the machines belong to.
	// +kubebuilder:validation:MinLength=1
	ClusterName string `json:"clusterName"`

	// How many machines are desired. While an autoscaler of the provider owns the
	// size, the manager writes the autoscaler's size here.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// For how many seconds a node must be ready before its machine counts as
	// available.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// The failure domains, such as zones, over which the machines are spread, by the
	// provider's names. Empty: the provider chooses.
	// +listType=set
	// +kubebuilder:validation:items:MinLength=1
	// +optional
	FailureDomains []string `json:"failureDomains,omitempty"`

	// The bounds for the provider while it replaces machines of an earlier template.
	// Not set: the provider chooses.
	// +optional
	RollingUpdate *MachinePoolRollingUpdate `json:"rollingUpdate,omitempty"`

	// The description of the machines.
	// +optional
	Template MachinePoolTemplate `json:"template,omitempty,omitzero"`

	// The provider's IDs of the instances in the group. Only the manager writes them.
	// +listType=atomic
	// +optional
	ProviderIDs []string `json:"providerIDs,omitempty"`
}

// MachinePoolRollingUpdate bounds an update by the provider. If both are 0, one
// machine may be unavailable.
type MachinePoolRollingUpdate struct {
	// How many machines there may be above the desired number: a number, or a
	// percentage of the desired number, rounded up. Not set: 0.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[0-9]+%?$`
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// How many machines may be missing or not ready: a number, or a percentage of
	// the desired number, rounded down. Not set: 0.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[0-9]+%?$`
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// MachinePoolTemplate describes each machine of a pool.
type MachinePoolTemplate struct {
	// The class of the machines. If it does not exist yet, the manager waits for it.
	// +optional
	Class machines.ClassSpec `json:"class,omitempty,omitzero"`

	// Labels, annotations and taints that the nodes should have from the beginning.
	// +optional
	NodeTemplate MachinePoolNodeTemplate `json:"nodeTemplate,omitempty,omitzero"`

	// Where the bootstrap data of the machines comes from.
	// +optional
	Bootstrap MachinePoolBootstrap `json:"bootstrap,omitempty,omitzero"`
}

// MachinePoolNodeTemplate has the labels, annotations and taints of nodes. Whoever makes the bootstrap
// data, or the provider, sets them.
type MachinePoolNodeTemplate struct {
	// Labels of the nodes.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations of the nodes.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// Taints of the nodes.
	// +listType=atomic
	// +optional
	Taints []MachinePoolTaint `json:"taints,omitempty"`
}

// MachinePoolTaint keeps pods off a node that do not tolerate it.
type MachinePoolTaint struct {
	// Key of the taint.
	// +kubebuilder:validation:MinLength=1
	Key string `json:"key"`

	// Value of the taint.
	// +optional
	Value string `json:"value,omitempty"`

	// What happens to pods that do not tolerate the taint.
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect string `json:"effect"`
}

// MachinePoolBootstrap says where the bootstrap data comes from. All machines of a
// pool share it.
type MachinePoolBootstrap struct {
	// The name of the object that makes the data for this pool only. It is deleted
	// with the pool. Empty: there is no such object, and the secret belongs to a
	// user.
	// +optional
	Config string `json:"config,omitempty"`

	// The secret with the data. Not set: the manager waits until somebody sets it.
	// Empty: no bootstrap data is needed.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-.a-z0-9]*[a-z0-9])?)?$`
	// +optional
	DataSecret *string `json:"dataSecret,omitempty"`
}
