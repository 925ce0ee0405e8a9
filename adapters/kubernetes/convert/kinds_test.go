package convert_test

import (
	"flag"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/convert"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// TestMain limits the checks of property-based tests, which are slow here under the race detector: each
// fills three whole objects.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		if err := flag.Set("rapid.checks", "50"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

var (
	machines = &tested[*v1alpha1.Machine, *machine.Machine]{
		convert.Machines(keys),
		func() *machine.Machine { return &machine.Machine{} }, func() *v1alpha1.Machine { return &v1alpha1.Machine{} },
	}
	sets = &tested[*v1alpha1.MachineSet, *machineset.Set]{
		convert.Sets(keys),
		func() *machineset.Set { return &machineset.Set{} }, func() *v1alpha1.MachineSet { return &v1alpha1.MachineSet{} },
	}
	deployments = &tested[*v1alpha1.MachineDeployment, *deployment.Deployment]{
		convert.Deployments(keys),
		func() *deployment.Deployment { return &deployment.Deployment{} },
		func() *v1alpha1.MachineDeployment { return &v1alpha1.MachineDeployment{} },
	}
	classes = &tested[*v1alpha1.MachineClass, *machine.Class]{
		convert.Classes(keys),
		func() *machine.Class { return &machine.Class{} }, func() *v1alpha1.MachineClass { return &v1alpha1.MachineClass{} },
	}
	secrets = &tested[*corev1.Secret, *machine.Secret]{
		convert.Secrets(keys),
		func() *machine.Secret { return &machine.Secret{} }, func() *corev1.Secret { return &corev1.Secret{} },
	}
	nodes = &tested[*corev1.Node, *machine.Node]{
		convert.Nodes(keys),
		func() *machine.Node { return &machine.Node{} }, func() *corev1.Node { return &corev1.Node{} },
	}
	kinds = map[string]tester{
		"machine": machines, "set": sets, "deployment": deployments, "class": classes, "secret": secrets, "node": nodes, "pool": pools,
	}
)

// Each field of each kind is stored, unless it is in notStored or notOfTemplates. So no new field can
// be forgotten.
func TestEveryFieldIsStored(t *testing.T) {
	for name, k := range kinds {
		t.Run(name, k.leaves)
	}
}

// Invariants: P28
func TestRoundTrips(t *testing.T) {
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) { rapid.Check(t, k.roundTrip) })
	}
}

// fuzz tests pairs of stored objects.
func fuzz(f *testing.F, k tester, seeds ...string) {
	for _, a := range append(seeds, `{}`) {
		for _, b := range append(seeds, `{}`) {
			f.Add([]byte(a), []byte(b))
		}
	}
	f.Fuzz(func(t *testing.T, a, b []byte) { k.anyStored(t, a, b) })
}

func FuzzMachine(f *testing.F) {
	fuzz(f, machines,
		`{"metadata":{"name":"m","labels":{"node":"n"},"annotations":{"millwright-go/in-place":"Odd","millwright-go/spec-changes":"-3"},
		"ownerReferences":[{"kind":"MachineSet","name":"s","uid":"u","controller":true}]},
		"spec":{"providerID":"p","drainTimeout":"1h","nodeConditions":" A ,,B","maxEvictRetries":3},
		"status":{"currentStatus":{"phase":"Odd","preserveExpiryTime":"2026-03-01T12:00:00.5+02:00"},
		"lastOperation":{"description":"Drain failed. Initiate node drain, again","errorCode":"Odd","type":"Delete","state":"Failed"},
		"conditions":[{"type":"MillwrightRecord","status":"True","message":"clockFrom=7 operation.stage=x operation.message=y"}]}}`,
		`{"status":{"lastOperation":{"description":"Creating","type":"Create","lastUpdateTime":"2026-03-01T12:00:00Z"},
		"conditions":[{"type":"A","status":"True"},{"type":"A","status":"Odd"},{"type":"MillwrightRecord","message":"null"}]}}`)
}

func FuzzSet(f *testing.F) {
	fuzz(f, sets,
		`{"metadata":{"generation":3,"annotations":{"deployment.kubernetes.io/revision":"x","millwright-go/reservation":"settled=x","millwright-go/max-age":"1"}},
		"spec":{"replicas":-3,"minReadySeconds":-2147483648,"selector":{"matchExpressions":[{"key":"","operator":"Odd","values":null}]}},
		"status":{"observedGeneration":9,"failedMachines":[{"name":"m","lastOperation":{"errorCode":"NotFound"}}],
		"machineSetCondition":[{"type":"MillwrightRecord","message":"failed.0={} failed.1={} observedChanges=-4"}]}}`)
}

func FuzzDeployment(f *testing.F) {
	fuzz(f, deployments,
		`{"spec":{"strategy":{"type":"Odd","rollingUpdate":{"maxSurge":"many","maxUnavailable":-4},"inPlaceUpdate":{"orchestrationType":"Auto"}},"rollbackTo":{},
		"progressDeadlineSeconds":0,"revisionHistoryLimit":-1},"status":{"failedMachines":[null,{"name":"m"}],"collisionCount":0}}`,
		`{"spec":{"strategy":{"type":"InPlaceUpdate","inPlaceUpdate":{"maxSurge":"7%","orchestrationType":"Manual"}}}}`)
}

func FuzzClass(f *testing.F) {
	fuzz(f, classes,
		`{"providerSpec":{"a":[1,2.50]},"nodeTemplate":{"capacity":{"cpu":"1000m","memory":1024},"architecture":""},"secretRef":{}}`,
		`{"providerSpec":{"a":null},"nodeTemplate":null}`)
}

func FuzzNode(f *testing.F) {
	fuzz(f, nodes,
		`{"metadata":{"annotations":{"node.machine.sapcloud.io/last-applied-anno-labels-taints":"{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"taints\":[{\"key\":\"k\"}]}}",
		"node.machine.sapcloud.io/last-applied-virtual-capacity":"{\"x\":\"1k\"}","millwright-go/drain":"{}","millwright-go/applied":"[]"}},
		"spec":{"taints":[{"key":"k","effect":"NoExecute","timeAdded":"2026-03-01T12:00:00Z"}]}}`)
}
