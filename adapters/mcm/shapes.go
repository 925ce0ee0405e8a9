package mcm

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// These are the fields of requests and answers. A method whose types have other fields does not compile.
// M and C are the provider's types Machine and MachineClass.
type (
	machineRequest[M, C any] interface {
		~struct {
			Machine      *M
			MachineClass *C
			Secret       *corev1.Secret
		}
	}
	listRequest[C any] interface {
		~struct {
			MachineClass *C
			Secret       *corev1.Secret
		}
	}
	volumesRequest interface {
		~struct {
			PVSpecs []*corev1.PersistentVolumeSpec
		}
	}

	// The alternatives without addresses are those before release 0.60.
	createAnswer interface {
		~struct {
			ProviderID, NodeName, LastKnownState string
			Addresses                            []corev1.NodeAddress
		} | ~struct{ ProviderID, NodeName, LastKnownState string }
	}
	statusAnswer interface {
		~struct {
			ProviderID, NodeName string
			Addresses            []corev1.NodeAddress
		} | ~struct{ ProviderID, NodeName string }
	}
	deleteAnswer interface {
		~struct{ LastKnownState string }
	}
	listAnswer interface {
		~struct{ MachineList map[string]string }
	}
	volumesAnswer interface{ ~struct{ VolumeIDs []string } }
)

// call is a method of a provider.
type call[Q, R any] = func(context.Context, *Q) (*R, error)

// provider is the interface Driver of machine-controller-manager.
type provider[CQ, CR, IQ, IR, DQ, DR, SQ, SR, LQ, LR, VQ, VR any] interface {
	CreateMachine(context.Context, *CQ) (*CR, error)
	InitializeMachine(context.Context, *IQ) (*IR, error)
	DeleteMachine(context.Context, *DQ) (*DR, error)
	GetMachineStatus(context.Context, *SQ) (*SR, error)
	ListMachines(context.Context, *LQ) (*LR, error)
	GetVolumeIDs(context.Context, *VQ) (*VR, error)
}
