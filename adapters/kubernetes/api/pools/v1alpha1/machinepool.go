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
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="Where the pool stands"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`,description="Machines that are wanted"
// +kubebuilder:printcolumn:name="Current",type=integer,JSONPath=`.status.replicas`,description="Machines that the group has"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`,description="Machines whose nodes are ready"
// +kubebuilder:printcolumn:name="Failure",type=string,JSONPath=`.status.failureReason`,description="What a person has to see to"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the object was made"
// +kubebuilder:printcolumn:name="Class",type=string,priority=1,JSONPath=`.spec.template.class.name`,description="What the group is made from"
// +kubebuilder:printcolumn:name="Group",type=string,priority=1,JSONPath=`.status.groupID`,description="How the provider calls the group"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.lastOperation.message`,description="What came of the last call of the provider",priority=1
type MachinePool struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What the pool should be.
	Spec MachinePoolSpec `json:"spec"`

	// What is known of the pool. The manager alone writes it.
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

	// How many machines are wanted. While an autoscaler of the provider owns the
	// size, the manager writes here what that one has chosen.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// For how many seconds a node must be ready to count as available.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// The zones, or what the provider calls them, that the machines are spread
	// over. Empty: the provider's choice.
	// +listType=set
	// +kubebuilder:validation:items:MinLength=1
	// +optional
	FailureDomains []string `json:"failureDomains,omitempty"`

	// How far the provider may go while it replaces machines that were made from
	// an earlier template. Not set: the provider's own choice.
	// +optional
	RollingUpdate *MachinePoolRollingUpdate `json:"rollingUpdate,omitempty"`

	// What the machines are made from.
	// +optional
	Template MachinePoolTemplate `json:"template,omitempty,omitzero"`

	// The instances that the group has, by the provider's names for them. The
	// manager alone writes them.
	// +listType=atomic
	// +optional
	ProviderIDs []string `json:"providerIDs,omitempty"`
}

// MachinePoolRollingUpdate bounds an update by the provider. If both are 0, one
// machine may be unavailable.
type MachinePoolRollingUpdate struct {
	// How many machines there may be beyond those wanted: a number, or a
	// percentage of those wanted, rounded up. Not set: 0.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[0-9]+%?$`
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// How many machines may be missing or not ready: a number, or a percentage of
	// those wanted, rounded down. Not set: 0.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[0-9]+%?$`
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// MachinePoolTemplate describes each machine of a pool.
type MachinePoolTemplate struct {
	// The class whose group this is. It may come later: until then it is waited for.
	// +optional
	Class machines.ClassSpec `json:"class,omitempty,omitzero"`

	// What the nodes should carry from their beginning.
	// +optional
	NodeTemplate MachinePoolNodeTemplate `json:"nodeTemplate,omitempty,omitzero"`

	// Where the first program of a machine comes from.
	// +optional
	Bootstrap MachinePoolBootstrap `json:"bootstrap,omitempty,omitzero"`
}

// MachinePoolNodeTemplate says what nodes should carry. The maker of the bootstrap data, or the
// provider, puts it there.
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
	// Key that a toleration names.
	// +kubebuilder:validation:MinLength=1
	Key string `json:"key"`

	// Value that a toleration may name.
	// +optional
	Value string `json:"value,omitempty"`

	// What becomes of such pods.
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect string `json:"effect"`
}

// MachinePoolBootstrap says where the bootstrap data come from that all machines
// of a pool share.
type MachinePoolBootstrap struct {
	// What makes the data for this pool alone; it goes with the pool. Empty:
	// no object makes them, and the secret is a user's own.
	// +optional
	Config string `json:"config,omitempty"`

	// The secret with the data. Not set: somebody else will set it, and it is
	// waited for. Empty: there is nothing to bootstrap.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-.a-z0-9]*[a-z0-9])?)?$`
	// +optional
	DataSecret *string `json:"dataSecret,omitempty"`
}
