package mcm_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/convert"
	"github.com/millwright-go/millwright/adapters/mcm"
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
)

// recording is a provider that records its requests.
type recording struct {
	cloud
	create  *createRequest
	remove  *deleteRequest
	list    *listRequest
	volumes *volumesRequest
}

func (r *recording) CreateMachine(_ context.Context, q *createRequest) (*createResponse, error) {
	r.create = q
	return &createResponse{ProviderID: "vm-1", NodeName: "node-1"}, nil
}

func (r *recording) DeleteMachine(_ context.Context, q *deleteRequest) (*deleteResponse, error) {
	r.remove = q
	return nil, nil
}

func (r *recording) ListMachines(_ context.Context, q *listRequest) (*listResponse, error) {
	r.list = q
	return nil, nil
}

func (r *recording) GetVolumeIDs(_ context.Context, q *volumesRequest) (*volumesResponse, error) {
	r.volumes = q
	return &volumesResponse{VolumeIDs: []string{"vol-1"}}, nil
}

// storedMachine returns a machine as an API server would.
func storedMachine() *v1alpha1.Machine {
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	yes, timeout := true, metav1.Duration{Duration: time.Hour}
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet", Name: "web-1", UID: "uid-1", ResourceVersion: "77", Generation: 3, CreationTimestamp: at, DeletionTimestamp: &at,
		Labels: map[string]string{"app": "web", "node": "node-1"}, Annotations: map[string]string{"a": "b"}, Finalizers: []string{"f"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "MachineSet", Name: "web", UID: "uid-2", Controller: &yes, BlockOwnerDeletion: &yes,
		}},
	}}
	m.Spec.Class = v1alpha1.ClassSpec{Kind: "MachineClass", Name: "small"}
	m.Spec.ProviderID = "vm-1"
	m.Spec.NodeTemplateSpec.Labels = map[string]string{"pool": "web"}
	m.Spec.NodeTemplateSpec.Spec.Taints = []corev1.Taint{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}}
	m.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{MachineDrainTimeout: &timeout}
	m.Status.CurrentStatus = v1alpha1.CurrentStatus{Phase: "Running", LastUpdateTime: at}
	m.Status.LastKnownState = "disk attached"
	m.Status.Addresses = []corev1.NodeAddress{{Type: "InternalIP", Address: "10.0.0.1"}}
	m.Status.Conditions = []corev1.NodeCondition{{Type: "Ready", Status: "True", LastHeartbeatTime: at, LastTransitionTime: at}}
	return m
}

func storedClass() *v1alpha1.MachineClass {
	arm := "arm64"
	return &v1alpha1.MachineClass{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "small", UID: "uid-3", ResourceVersion: "5", Generation: 1, Labels: map[string]string{"l": "1"}},
		NodeTemplate: &v1alpha1.NodeTemplate{
			Capacity: corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("8Gi")}, InstanceType: "t", Region: "r", Zone: "z", Architecture: &arm,
		},
		CredentialsSecretRef: &corev1.SecretReference{Namespace: "fleet", Name: "keys"}, SecretRef: &corev1.SecretReference{Namespace: "fleet", Name: "boot"},
		Provider: "acme",
	}
}

// asTheirs returns an object as a provider of machine-controller-manager would get it.
func asTheirs[T any](t *testing.T, stored any) *T {
	t.Helper()
	text, err := json.Marshal(stored)
	require.NoError(t, err)
	theirs := new(T)
	require.NoError(t, json.Unmarshal(text, theirs))
	return theirs
}

// TestRequest: a provider gets the stored objects and the data of the secret, as from
// machine-controller-manager.
func TestRequest(t *testing.T) {
	p := &recording{}
	d := bridged(p)
	class := storedClass()
	class.ProviderSpec.Raw = []byte(`{"size":"xl","none":null,"number":12345678901234567890}`)
	m, problems := convert.Machines(convert.DefaultKeys()).Read(storedMachine())
	require.Empty(t, problems)
	c, _ := convert.Classes(convert.DefaultKeys()).Read(class)
	secret := &machine.Secret{Data: map[string][]byte{"userData": []byte("#!"), "key": []byte("k")}}
	secret.Name = "boot"

	_, err := d.CreateMachine(t.Context(), &driver.CreateMachineRequest{Machine: m, Class: c, Secret: secret})
	require.NoError(t, err)
	require.Equal(t, asTheirs[theirMachine](t, storedMachine()), p.create.Machine)
	require.Equal(t, asTheirs[theirClass](t, class), p.create.MachineClass)
	require.Equal(t, &corev1.Secret{Data: map[string][]byte{"userData": []byte("#!"), "key": []byte("k")}}, p.create.Secret)

	// A provider may change its request.
	before := secret.Clone()
	p.create.Secret.Data["key"][0] = 'x'
	p.create.Machine.Labels["app"] = "x"
	require.Equal(t, before, secret)
	require.Equal(t, "web", m.Labels["app"])

	_, err = d.ListMachines(t.Context(), &driver.ListMachinesRequest{Class: c})
	require.NoError(t, err)
	require.Equal(t, asTheirs[theirClass](t, class), p.list.MachineClass)
	require.Equal(t, &corev1.Secret{}, p.list.Secret, "the secret is never nil")
}

// TestDeletionOfAnOrphan: the machine in the request has a name, a UID and a provider ID, and no status.
func TestDeletionOfAnOrphan(t *testing.T) {
	p := &recording{}
	m := &machine.Machine{}
	m.Namespace, m.Name, m.UID, m.Spec.ProviderID = "fleet", "stray", "u", "vm-9"
	_, err := bridged(p).DeleteMachine(t.Context(), &driver.DeleteMachineRequest{Machine: m, Class: &machine.Class{}})
	require.NoError(t, err)
	want := &theirMachine{}
	want.Namespace, want.Name, want.UID, want.Spec.ProviderID = "fleet", "stray", types.UID("u"), "vm-9"
	require.Equal(t, want, p.remove.Machine)
}

// TestVolumes: a provider gets the stored spec of a volume, or one with what is known of the volume.
func TestVolumes(t *testing.T) {
	p := &recording{}
	spec := func(s corev1.PersistentVolumeSource) corev1.PersistentVolumeSpec {
		return corev1.PersistentVolumeSpec{PersistentVolumeSource: s, StorageClassName: "fast"}
	}
	old := spec(corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "aws://zone/vol-1"}})
	text, err := json.Marshal(&old)
	require.NoError(t, err)
	got, err := bridged(p).GetVolumeIDs(t.Context(), &driver.GetVolumeIDsRequest{Volumes: []driver.Volume{
		{Name: "old", Type: "ebs.csi.aws.com", Handle: "aws://zone/vol-1", Spec: text},
		{Name: "new", Type: "disk.example.com", Handle: "h-2", Attributes: map[string]string{"a": "b"}},
		{Name: "strange"},
	}})
	require.NoError(t, err)
	require.Equal(t, []string{"vol-1"}, got.VolumeIDs)
	csi := &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "h-2", VolumeAttributes: map[string]string{"a": "b"}}
	require.Equal(t, []*corev1.PersistentVolumeSpec{
		&old, {PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: csi}}, {},
	}, p.volumes.PVSpecs)
}

// hidden stands for a secret.
const hidden = "hush-hush-hush"

// wrongClass is a class whose field has a type that does not match.
type wrongClass struct {
	metav1.ObjectMeta `json:"metadata,omitempty"`
	ProviderSpec      struct {
		Password int `json:"password"`
	} `json:"providerSpec"`
}

// TestUntranslatable: if a request can't be translated, the provider is not called, and the error does not
// show the content.
func TestUntranslatable(t *testing.T) {
	type wrongListRequest struct {
		MachineClass *wrongClass
		Secret       *corev1.Secret
	}
	type wrongRequest struct {
		Machine      *theirMachine
		MachineClass *wrongClass
		Secret       *corev1.Secret
	}
	p, called := &recording{}, false
	d := mcm.Driver(
		func(context.Context, *wrongRequest) (*createResponse, error) { called = true; return nil, nil },
		func(context.Context, *wrongRequest) (*initResponse, error) { called = true; return nil, nil },
		func(context.Context, *wrongRequest) (*deleteResponse, error) { called = true; return nil, nil },
		func(context.Context, *wrongRequest) (*statusResponse, error) { called = true; return nil, nil },
		func(context.Context, *wrongListRequest) (*listResponse, error) { called = true; return nil, nil },
		p.GetVolumeIDs,
	)
	m, c, s := &machine.Machine{}, &machine.Class{ProviderSpec: []byte(`{"password":"` + hidden + `"}`)}, &machine.Secret{Data: map[string][]byte{"k": []byte(hidden)}}
	m.Name, c.Name = "web-1", "small"
	broken := c.Clone()
	broken.ProviderSpec = []byte(`{"` + hidden)
	for _, class := range []*machine.Class{c, broken} {
		var errs [6]error
		_, errs[0] = d.CreateMachine(t.Context(), &driver.CreateMachineRequest{Machine: m, Class: class, Secret: s})
		_, errs[1] = d.InitializeMachine(t.Context(), &driver.InitializeMachineRequest{Machine: m, Class: class, Secret: s})
		_, errs[2] = d.DeleteMachine(t.Context(), &driver.DeleteMachineRequest{Machine: m, Class: class, Secret: s})
		_, errs[3] = d.GetMachineStatus(t.Context(), &driver.GetMachineStatusRequest{Machine: m, Class: class, Secret: s})
		_, errs[4] = d.ListMachines(t.Context(), &driver.ListMachinesRequest{Class: class, Secret: s})
		_, errs[5] = d.GetVolumeIDs(t.Context(), &driver.GetVolumeIDsRequest{Volumes: []driver.Volume{{Name: "pv", Spec: []byte(`{"csi":"` + hidden + `"}`)}}})
		for i, err := range errs {
			var typed *mcm.TranslationError
			require.ErrorAs(t, err, &typed, i)
			require.Equal(t, codes.Internal, codes.Of(err))
			require.NotContains(t, codes.Message(err), hidden)
		}
	}
	require.False(t, called)
	require.Nil(t, p.volumes)
	_, err := d.CreateMachine(t.Context(), &driver.CreateMachineRequest{Machine: m, Class: c})
	require.EqualError(t, err, "CreateMachine was not called: the class small can't be translated, at providerSpec.password")
}
