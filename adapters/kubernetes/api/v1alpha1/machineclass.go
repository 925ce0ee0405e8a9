package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// MachineClass describes machines: their provider, the provider's description of
// the VMs, and the credentials for the provider.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=mcc
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.provider`,description="The name that the driver answers to"
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.nodeTemplate.instanceType`,description="The size of its VMs"
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.nodeTemplate.zone`,description="The zone of its machines"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the object was created"
type MachineClass struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What a node of this class offers. Autoscalers use it before there is such a node.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	NodeTemplate *NodeTemplate `json:"nodeTemplate,omitempty"`

	// The secret with the provider's credentials, if they are not in secretRef.
	// +optional
	CredentialsSecretRef *corev1.SecretReference `json:"credentialsSecretRef,omitempty"`

	// The provider's own description of the VM.
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderSpec runtime.RawExtension `json:"providerSpec"`

	// The name that the driver answers to.
	// +optional
	Provider string `json:"provider,omitempty"`

	// The secret with the user data.
	// +optional
	SecretRef *corev1.SecretReference `json:"secretRef,omitempty"`
}

// MachineClassList is a list of classes.
//
// +kubebuilder:object:root=true
type MachineClassList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachineClass `json:"items"`
}

// NodeTemplate describes the node that a class yields.
type NodeTemplate struct {
	// The resources that the node offers.
	Capacity corev1.ResourceList `json:"capacity"`

	// Extended resources that nothing on the node reports. The manager adds them to
	// the node's capacity.
	// +optional
	VirtualCapacity corev1.ResourceList `json:"virtualCapacity,omitempty"`

	// The provider's name for the size of the VM.
	InstanceType string `json:"instanceType"`

	// The region of the VM.
	Region string `json:"region"`

	// The zone of the VM.
	Zone string `json:"zone"`

	// Architecture of the processor.
	// +optional
	Architecture *string `json:"architecture,omitempty"`
}
