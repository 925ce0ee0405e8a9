package trial

import (
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	poolsv1alpha1 "github.com/millwright-go/millwright/adapters/kubernetes/api/pools/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/test/kubernetes/simulated"
)

// Class returns a class of the simulated provider, and its secret. The provider's name for the cluster
// is the namespace.
func Class(namespace, name, size, userData string) []client.Object {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	spec, _ := json.Marshal(simulated.Spec{Cluster: namespace, Size: size}) // no error: two strings
	return []client.Object{
		&corev1.Secret{ObjectMeta: *meta.DeepCopy(), Data: map[string][]byte{"userData": []byte(userData)}},
		&v1alpha1.MachineClass{
			ObjectMeta: meta, Provider: simulated.Name, ProviderSpec: runtime.RawExtension{Raw: spec},
			SecretRef: &corev1.SecretReference{Namespace: namespace, Name: name},
		},
	}
}

// Deployment returns a deployment whose rollouts have a surge of 20%, and no unavailable machine.
func Deployment(namespace, name, class string, replicas int32) *v1alpha1.MachineDeployment {
	surge, none := intstr.FromString("20%"), intstr.FromInt32(0)
	labels := map[string]string{"pool": name}
	return &v1alpha1.MachineDeployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "MachineDeployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.MachineDeploymentSpec{
			Replicas: replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: v1alpha1.MachineDeploymentStrategy{
				Type: "RollingUpdate",
				RollingUpdate: &v1alpha1.RollingUpdateMachineDeployment{
					UpdateConfiguration: v1alpha1.UpdateConfiguration{MaxSurge: &surge, MaxUnavailable: &none},
				},
			},
			Template: v1alpha1.MachineTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(labels)},
				Spec:       v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: class}},
			},
		},
	}
}

// Pool returns a pool without bootstrap data.
func Pool(namespace, name, class string, replicas int32) *poolsv1alpha1.MachinePool {
	none := ""
	return &poolsv1alpha1.MachinePool{
		TypeMeta:   metav1.TypeMeta{APIVersion: poolsv1alpha1.GroupVersion.String(), Kind: "MachinePool"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: poolsv1alpha1.MachinePoolSpec{
			ClusterName: namespace, Replicas: &replicas,
			Template: poolsv1alpha1.MachinePoolTemplate{
				Class:     v1alpha1.ClassSpec{Kind: "MachineClass", Name: class},
				Bootstrap: poolsv1alpha1.MachinePoolBootstrap{DataSecret: &none},
			},
		},
	}
}
