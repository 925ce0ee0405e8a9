package mcm_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// These types have the fields and the JSON of machine-controller-manager v0.62, as far as the tests use
// them.
type (
	theirMachine struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		Spec              theirMachineSpec   `json:"spec,omitempty"`
		Status            theirMachineStatus `json:"status,omitempty"`
	}
	theirMachineSpec struct {
		Class struct {
			APIGroup string `json:"apiGroup,omitempty"`
			Kind     string `json:"kind,omitempty"`
			Name     string `json:"name,omitempty"`
		} `json:"class,omitempty"`
		ProviderID       string `json:"providerID,omitempty"`
		NodeTemplateSpec struct {
			metav1.ObjectMeta `json:"metadata,omitempty"`
			Spec              corev1.NodeSpec `json:"spec,omitempty"`
		} `json:"nodeTemplate,omitempty"`
		*TheirConfiguration `json:",inline"`
	}
	// TheirConfiguration is exported, because JSON can't set an embedded pointer that is not.
	TheirConfiguration struct {
		MachineDrainTimeout    *metav1.Duration `json:"drainTimeout,omitempty"`
		MachineCreationTimeout *metav1.Duration `json:"creationTimeout,omitempty"`
		NodeConditions         *string          `json:"nodeConditions,omitempty"`
	}
	theirMachineStatus struct {
		Addresses     []corev1.NodeAddress   `json:"addresses,omitempty"`
		Conditions    []corev1.NodeCondition `json:"conditions,omitempty"`
		LastOperation struct {
			Description string `json:"description,omitempty"`
			ErrorCode   string `json:"errorCode,omitempty"`
			State       string `json:"state,omitempty"`
			Type        string `json:"type,omitempty"`
		} `json:"lastOperation,omitempty"`
		CurrentStatus struct {
			Phase         string `json:"phase,omitempty"`
			TimeoutActive bool   `json:"timeoutActive,omitempty"`
		} `json:"currentStatus,omitempty"`
		LastKnownState string `json:"lastKnownState,omitempty"`
	}
	theirClass struct {
		metav1.TypeMeta      `json:",inline"`
		metav1.ObjectMeta    `json:"metadata,omitempty"`
		NodeTemplate         *theirNodeTemplate      `json:"nodeTemplate,omitempty"`
		CredentialsSecretRef *corev1.SecretReference `json:"credentialsSecretRef,omitempty"`
		ProviderSpec         runtime.RawExtension    `json:"providerSpec"`
		Provider             string                  `json:"provider,omitempty"`
		SecretRef            *corev1.SecretReference `json:"secretRef,omitempty"`
	}
	theirNodeTemplate struct {
		Capacity        corev1.ResourceList `json:"capacity"`
		VirtualCapacity corev1.ResourceList `json:"virtualCapacity,omitempty"`
		InstanceType    string              `json:"instanceType"`
		Region          string              `json:"region"`
		Zone            string              `json:"zone"`
		Architecture    *string             `json:"architecture,omitempty"`
	}
)

// These are the requests and responses of release 0.60 and later.
type (
	machineRequest struct {
		Machine      *theirMachine
		MachineClass *theirClass
		Secret       *corev1.Secret
	}
	createRequest machineRequest
	initRequest   machineRequest
	deleteRequest machineRequest
	statusRequest machineRequest
	listRequest   struct {
		MachineClass *theirClass
		Secret       *corev1.Secret
	}
	volumesRequest struct {
		PVSpecs []*corev1.PersistentVolumeSpec
	}

	createResponse struct {
		ProviderID     string
		NodeName       string
		LastKnownState string
		Addresses      []corev1.NodeAddress
	}
	initResponse struct {
		ProviderID string
		NodeName   string
		Addresses  []corev1.NodeAddress
	}
	deleteResponse  struct{ LastKnownState string }
	statusResponse  initResponse
	listResponse    struct{ MachineList map[string]string }
	volumesResponse struct{ VolumeIDs []string }
)

// theirDriver is the interface that providers implement.
type theirDriver interface {
	CreateMachine(context.Context, *createRequest) (*createResponse, error)
	InitializeMachine(context.Context, *initRequest) (*initResponse, error)
	DeleteMachine(context.Context, *deleteRequest) (*deleteResponse, error)
	GetMachineStatus(context.Context, *statusRequest) (*statusResponse, error)
	ListMachines(context.Context, *listRequest) (*listResponse, error)
	GetVolumeIDs(context.Context, *volumesRequest) (*volumesResponse, error)
}

// theirCode is the type of codes: a number with a name.
type theirCode uint32

var theirNames = []string{
	"OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists", "PermissionDenied",
	"ResourceExhausted", "FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented", "Internal", "Unavailable", "DataLoss",
	"Unauthenticated", "Uninitialized",
}

func (c theirCode) String() string { return theirNames[c] }

// theirStatus is the type of a provider's errors.
type theirStatus struct {
	code    int32
	message string
}

func (s *theirStatus) Code() theirCode { return theirCode(s.code) }

func (s *theirStatus) Error() string {
	return fmt.Sprintf("machine codes error: code = [%s] message = [%s]", s.Code(), s.message)
}
