package convert_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/millwright-go/millwright/adapters/kubernetes/convert"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/object"
)

// stored parses a stored object.
func stored[T any](t *testing.T, text string) *T {
	t.Helper()
	w := new(T)
	require.NoError(t, json.Unmarshal([]byte(text), w))
	return w
}

func TestPods(t *testing.T) {
	web := object.Key{Namespace: "shop", Name: "web"}
	for text, want := range map[string]drain.Pod{
		`{"metadata":{"namespace":"shop","name":"web","uid":"u","creationTimestamp":"2026-03-01T12:00:00Z","labels":{"a":"b"},"annotations":{"c":"d"},
		"ownerReferences":[{"kind":"X","name":"x","uid":"1"},{"kind":"DaemonSet","name":"d","uid":"2","controller":true}]},
		"spec":{"priority":7,"terminationGracePeriodSeconds":90,"volumes":[{"name":"a","emptyDir":{}},
		{"name":"b","persistentVolumeClaim":{"claimName":"data"}},{"name":"c","ephemeral":{"volumeClaimTemplate":{}}}]},
		"status":{"phase":"Running","conditions":[{"type":"Initialized","status":"False"},{"type":"Ready","status":"True"}]}}`: {
			Key: web, UID: "u", CreatedAt: begin, Owner: &object.Owner{Kind: drain.DaemonSet, Name: "d", UID: "2"}, Priority: 7,
			Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}, Grace: 90 * time.Second, Claims: []string{"data", "web-c"},
		},
		`{"metadata":{"namespace":"shop","name":"web","deletionTimestamp":"2026-03-01T12:00:00Z"},"status":{"phase":"Succeeded","conditions":[{"type":"Ready","status":"False"}]}}`: {
			Key: web, Finished: true, NotReady: true, GraceEnds: begin, Grace: 30 * time.Second,
		},
		`{"metadata":{"namespace":"shop","name":"web","annotations":{"kubernetes.io/config.mirror":"x"}},
		"spec":{"terminationGracePeriodSeconds":0},"status":{"phase":"Failed"}}`: {
			Key: web, Finished: true, NotReady: true, Mirror: true, Annotations: map[string]string{"kubernetes.io/config.mirror": "x"},
		},
		`{"metadata":{"namespace":"shop","name":"web"},"spec":{"terminationGracePeriodSeconds":9223372036854775807}}`: {
			Key: web, NotReady: true, Grace: 9223372036 * time.Second,
		},
		`{"metadata":{"namespace":"shop","name":"web","deletionTimestamp":"2026-03-01T12:00:00Z","deletionGracePeriodSeconds":600},
		"spec":{"terminationGracePeriodSeconds":90,"tolerations":[{"key":"x","operator":"Exists"},{"operator":"Exists"}]}}`: {
			Key: web, NotReady: true, GraceEnds: begin, Grace: 10 * time.Minute, ToleratesCordon: true,
		},
		`{"metadata":{"namespace":"shop","name":"web","ownerReferences":[{"apiVersion":"apps.kruise.io/v1alpha1","kind":"DaemonSet","name":"d","uid":"2","controller":true}]}}`: {
			Key: web, NotReady: true, Grace: 30 * time.Second, Owner: &object.Owner{Kind: "DaemonSet.apps.kruise.io", Name: "d", UID: "2"},
		},
		`{"metadata":{"namespace":"shop","name":"web","ownerReferences":[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"d","uid":"2","controller":true}]}}`: {
			Key: web, NotReady: true, Grace: 30 * time.Second, Owner: &object.Owner{Kind: drain.DaemonSet, Name: "d", UID: "2"},
		},
		`{"metadata":{"namespace":"shop","name":"web"},"status":{"phase":"Pending","conditions":[{"type":"Ready","status":"Unknown"}]}}`: {
			Key: web, Pending: true, NotReady: true, Grace: 30 * time.Second,
		},
	} {
		assert.Equal(t, &want, convert.Pod(stored[corev1.Pod](t, text)))
	}
}

func TestToleratesCordon(t *testing.T) {
	const key = "node.kubernetes.io/unschedulable"
	for want, tolerations := range map[bool][]corev1.Toleration{
		true: {
			{Operator: "Exists"}, {Operator: "Exists", Effect: "NoSchedule"}, {Key: key, Operator: "Exists"}, {Key: key}, {Key: key, Operator: "Equal"},
			{Key: key, Operator: "Exists", Effect: "NoSchedule"},
		},
		false: {
			{}, {Key: "other", Operator: "Exists"}, {Operator: "Exists", Effect: "NoExecute"}, {Key: key, Operator: "Exists", Effect: "PreferNoSchedule"},
			{Key: key, Value: "x"}, {Key: key, Operator: "Gt"}, {Operator: "Equal"},
		},
	} {
		for _, toleration := range tolerations {
			assert.Equal(t, want, convert.ToleratesCordon(toleration), "%+v", toleration)
		}
	}
}

func TestBudgets(t *testing.T) {
	b := convert.Budget(stored[policyv1.PodDisruptionBudget](t, `{"metadata":{"namespace":"shop","name":"b","generation":4},
		"spec":{"selector":{"matchLabels":{"a":"b"}},"unhealthyPodEvictionPolicy":"AlwaysAllow"},"status":{"observedGeneration":3,"disruptionsAllowed":1,"currentHealthy":2,
		"desiredHealthy":5,"expectedPods":6,"disruptedPods":{"x":"2026-03-01T12:00:00Z"}}}`))
	assert.Equal(t, &drain.Budget{
		Key: object.Key{Namespace: "shop", Name: "b"}, Selector: &object.Selector{Labels: map[string]string{"a": "b"}},
		AlwaysAllow: true, Generation: 4, ObservedGeneration: 3, DisruptionsAllowed: 1, CurrentHealthy: 2, DesiredHealthy: 5, ExpectedPods: 6, Disrupted: 1,
	}, b)
	pod := &drain.Pod{}
	assert.False(t, convert.Budget(&policyv1.PodDisruptionBudget{}).Selects(pod), "a budget without a selector selects a pod")
	assert.True(t, convert.Budget(stored[policyv1.PodDisruptionBudget](t, `{"spec":{"selector":{}}}`)).Selects(pod), "a budget with an empty selector does not select a pod")
}

func TestVolumes(t *testing.T) {
	for text, want := range map[string]drain.Volume{
		`{"metadata":{"name":"pv"},"spec":{"claimRef":{"namespace":"shop","name":"data"},"csi":{"driver":"disks","volumeHandle":"h"}}}`: {
			Name: "pv", Claim: object.Key{Namespace: "shop", Name: "data"}, Driver: "disks", Handle: "h",
		},
		`{"metadata":{"name":"pv"},"spec":{"awsElasticBlockStore":{"volumeID":"h"}}}`:    {Name: "pv", Driver: "ebs.csi.aws.com", Handle: "h"},
		`{"metadata":{"name":"pv"},"spec":{"gcePersistentDisk":{"pdName":"h"}}}`:         {Name: "pv", Driver: "pd.csi.storage.gke.io", Handle: "h"},
		`{"metadata":{"name":"pv"},"spec":{"azureDisk":{"diskName":"n","diskURI":"h"}}}`: {Name: "pv", Driver: "disk.csi.azure.com", Handle: "h"},
		`{"metadata":{"name":"pv"},"spec":{"cinder":{"volumeID":"h"}}}`:                  {Name: "pv", Driver: "cinder.csi.openstack.org", Handle: "h"},
		`{"metadata":{"name":"pv"},"spec":{"vsphereVolume":{"volumePath":"h"}}}`:         {Name: "pv", Driver: "csi.vsphere.vmware.com", Handle: "h"},
		`{"metadata":{"name":"pv"},"spec":{"nfs":{"path":"/x","server":"s"}}}`:           {Name: "pv"},
		`{"metadata":{"name":"pv"},"spec":{"local":{"path":"/x"}}}`:                      {Name: "pv", Local: true},
		`{"metadata":{"name":"pv"},"spec":{"hostPath":{"path":"/x"}}}`:                   {Name: "pv", Local: true},
	} {
		assert.Equal(t, &want, convert.Volume(stored[corev1.PersistentVolume](t, text)))
	}
	for text, want := range map[string]drain.Attachment{
		`{"metadata":{"name":"a"},"spec":{"nodeName":"n","source":{"persistentVolumeName":"pv"}},"status":{"attached":true}}`: {
			Name: "a", Node: "n", Volume: "pv", Attached: true,
		},
		`{"metadata":{"name":"a","deletionTimestamp":"2026-03-01T12:00:00Z"},"spec":{"nodeName":"n"}}`: {Name: "a", Node: "n", DeletedAt: begin},
	} {
		assert.Equal(t, &want, convert.Attachment(stored[storagev1.VolumeAttachment](t, text)))
	}
}
