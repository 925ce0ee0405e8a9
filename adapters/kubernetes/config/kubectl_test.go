package config_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// since is the time of all statuses and conditions in these tests.
var since = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fleet stores an object of each kind.
func (w *world) fleet() {
	w.Helper()
	m := &machine.Machine{Meta: object.Meta{Key: w.key("m"), Finalizers: []string{machine.Finalizer}}}
	m.Spec.Class.Name, m.Spec.NodeName, m.Spec.ProviderID = "c", "n-1", "memory:///blue/1"
	m.Status.Phase = machine.PhaseRunning
	create(w, w.machines, m)
	creating := &machine.Machine{Meta: object.Meta{Key: w.key("n"), Finalizers: []string{machine.Finalizer}}} // its VM is being created
	creating.Spec.Class.Name, creating.Status.Phase = "c", machine.PhasePending
	creating.Status.LastOperation = machine.Operation{
		Kind: machine.OperationCreate, State: machine.StateProcessing, Stage: machine.StageCreateVM, Time: since,
	}
	create(w, w.machines, creating)
	pick := object.Selector{Labels: map[string]string{"pool": "a"}}
	s := &machineset.Set{Meta: object.Meta{Key: w.key("s")}}
	s.Spec.Replicas, s.Spec.Selector = 4, pick
	s.Status.Replicas, s.Status.Ready = 3, 2
	s.Status.Conditions = []object.Condition{{Type: machineset.ConditionReplicaFailure, Status: object.False, Reason: "Fine", Message: "two sets too many", Since: since}}
	create(w, w.sets, s)
	d := &deployment.Deployment{Meta: object.Meta{Key: w.key("d")}}
	d.Spec.Replicas, d.Spec.Selector = 5, pick
	d.Status = deployment.Status{Replicas: 4, Ready: 3, Updated: 2, Available: 1, Conditions: []object.Condition{
		{Type: deployment.ConditionAvailable, Status: object.True, Reason: "Enough", Since: since},
		{Type: deployment.ConditionProgressing, Status: object.False, Reason: "Stuck", Message: "waiting for a drain", Since: since},
	}}
	create(w, w.deployments, d)
	_, err := w.classes.Create(w.Context(), &machine.Class{Meta: object.Meta{Key: w.key("c")}, Provider: "memory", ProviderSpec: []byte(`{"size":"s"}`)})
	require.NoError(w, err)
}

var age = regexp.MustCompile(`^[0-9]+[sm][0-9]*s?$`)

// table returns the lines that kubectl has printed, with one space between columns and "-" for ages.
func table(text string) (rows []string) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		for i := range words {
			if age.MatchString(words[i]) {
				words[i] = "-"
			}
		}
		rows = append(rows, strings.Join(words, " "))
	}
	return rows
}

// TestColumns: kubectl get prints the columns of each kind, by all of its names.
func TestColumns(t *testing.T) {
	w := newWorld(t)
	w.fleet()
	for names, want := range map[string][]string{
		"mc machine machines":                                                {"NAME STATUS CLASS AGE NODE", "m Running c - n-1", "n c -"},
		"mcs machineset machinesets":                                         {"NAME DESIRED CURRENT READY CLASS FROZEN AGE FAILURE", "s 4 3 2 - two sets too many"},
		"mcd machinedeployment machinedeployments":                           {"NAME READY DESIRED UP-TO-DATE AVAILABLE CLASS PROGRESS FROZEN AGE MESSAGE", "d 3 5 2 1 Stuck - waiting for a drain"},
		"mcc machineclass machineclasses":                                    {"NAME PROVIDER TYPE ZONE AGE", "c memory -"},
		"machines.machine.sapcloud.io machines.v1alpha1.machine.sapcloud.io": {"NAME STATUS CLASS AGE NODE", "m Running c - n-1", "n c -"},
	} {
		for name := range strings.FieldsSeq(names) {
			require.Equal(t, want, table(w.kubectl("get", name)), name)
		}
	}
	require.Equal(t, []string{
		"NAME STATUS CLASS AGE NODE PROVIDERID CODE OPERATION", "m Running c - n-1 memory:///blue/1", "n c - Creating machine on cloud provider",
	}, table(w.kubectl("get", "mc", "-o", "wide")))
	require.Equal(t, "machine.machine.sapcloud.io/m\nmachine.machine.sapcloud.io/n\nmachineset.machine.sapcloud.io/s\nmachinedeployment.machine.sapcloud.io/d\n",
		w.kubectl("get", "mc,mcs,mcd", "-o", "name"))
	require.Contains(t, w.kubectl("explain", "mcd.spec.strategy.inPlaceUpdate"), "orchestrationType")
	require.Contains(t, w.kubectl("describe", "mc", "m"), "Provider ID:  memory:///blue/1")
}

// TestScale: sets and deployments can be scaled by kubectl scale, down to 0 and up again, also after
// the library has written 0.
func TestScale(t *testing.T) {
	w := newWorld(t)
	w.fleet()
	w.kubectl("scale", "mcs/s", "--replicas=7")
	require.EqualValues(t, 7, get(w, w.sets, "s").Spec.Replicas)
	require.EqualValues(t, 2, get(w, w.sets, "s").Generation)
	w.kubectl("scale", "machinedeployment", "d", "--current-replicas=5", "--replicas=6")
	require.EqualValues(t, 6, get(w, w.deployments, "d").Spec.Replicas)
	require.Contains(t, w.refused("", "scale", "mcd/d", "--current-replicas=5", "--replicas=9"), "Expected replicas to be 5, was 6")
	require.Equal(t, "6 4", w.kubectl("get", "mcd/d", "--subresource=scale", "-o", "jsonpath={.spec.replicas} {.status.replicas}"))

	w.kubectl("scale", "mcd/d", "mcs/s", "--replicas=0")
	require.Zero(t, get(w, w.deployments, "d").Spec.Replicas)
	edit(w, w.sets, "s", func(s *machineset.Set) { s.Spec.Replicas = 2 })
	edit(w, w.sets, "s", func(s *machineset.Set) { s.Spec.Replicas = 0 })
	edit(w, w.deployments, "d", func(d *deployment.Deployment) { d.Spec.Replicas = 2 })
	edit(w, w.deployments, "d", func(d *deployment.Deployment) { d.Spec.Replicas = 0 })
	for _, name := range []string{"mcs/s", "mcd/d"} {
		require.Equal(t, "Scale", w.kubectl("get", name, "--subresource=scale", "-o", "jsonpath={.kind}"))
	}
	w.kubectl("scale", "mcd/d", "mcs/s", "--current-replicas=0", "--replicas=1")
	require.EqualValues(t, 1, get(w, w.sets, "s").Spec.Replicas)
	require.EqualValues(t, 1, get(w, w.deployments, "d").Spec.Replicas)
	require.Contains(t, w.refused("", "scale", "mc/m", "--replicas=1"), "NotFound", "machines have no scale")
	require.Equal(t, "m", w.kubectl("get", "mc/m", "-o", "jsonpath={.metadata.name}"))
}

// TestKubectlCommands: the usual kubectl commands work: wait, patch, annotate, label and delete.
func TestKubectlCommands(t *testing.T) {
	w := newWorld(t)
	w.fleet()
	w.kubectl("wait", "mcd/d", "--for=condition=Available", "--timeout=10s")
	w.kubectl("wait", "mcd/d", "--for=condition=Progressing=False", "--timeout=10s")
	w.kubectl("wait", "mcd/d", "--for=jsonpath={.status.updatedReplicas}=2", "--timeout=10s")
	w.kubectl("wait", "mcs/s", `--for=jsonpath={.status.machineSetCondition[?(@.type=="ReplicaFailure")].status}=False`, "--timeout=10s")
	require.Contains(t, w.refused("", "rollout", "status", "mcd/d"), `no kind "MachineDeployment" is registered`, "kubectl rollout status works only for kinds of Kubernetes")

	w.kubectl("patch", "mcd/d", "--type=merge", "--patch", `{"spec":{"paused":true,"rollbackTo":{"revision":3}}}`)
	d := get(w, w.deployments, "d")
	require.True(t, d.Spec.Paused)
	require.Equal(t, &deployment.Rollback{Revision: 3}, d.Spec.RollbackTo)
	edit(w, w.deployments, "d", func(d *deployment.Deployment) { d.Spec.RollbackTo = nil })
	require.Empty(t, w.kubectl("get", "mcd/d", "-o", "jsonpath={.spec.rollbackTo}"))

	w.kubectl("annotate", "mc/m", machine.DefaultPolicy().Keys.Preserve+"=now")
	w.kubectl("label", "mc/m", machine.DefaultPolicy().Keys.ForceDeletion+"=True")
	m := get(w, w.machines, "m")
	require.Equal(t, "now", m.Annotations[machine.DefaultPolicy().Keys.Preserve])
	require.Equal(t, map[string]string{machine.DefaultPolicy().Keys.ForceDeletion: "True"}, m.Labels)
	require.Equal(t, "n-1", m.Spec.NodeName)
	w.kubectl("delete", "mc/m", "--wait=false")
	require.True(t, get(w, w.machines, "m").Deleted(), "the finalizer delays the deletion")
	edit(w, w.machines, "m", func(m *machine.Machine) { m.Status.Phase = machine.PhaseTerminating })
	require.Equal(t, "Terminating", w.kubectl("get", "mc/m", "-o", "jsonpath={.status.currentStatus.phase}"))

	typo := "{apiVersion: machine.sapcloud.io/v1alpha1, kind: MachineSet, metadata: {name: x}, spec: {replica: 3}}"
	require.Contains(t, w.refused(typo, "apply", "-f", "-"), `unknown field "spec.replica"`)
}
