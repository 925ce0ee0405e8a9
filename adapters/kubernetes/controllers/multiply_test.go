package controllers_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/test/kubernetes/simulated"
)

// writers is how many objects are written at the same time.
const writers = 16

// multiply copies the only machine of a test, with its VM and node, until there are n. No manager may
// run meanwhile.
func (w *world) multiply(n int) {
	w.Helper()
	all := w.machines()
	require.Len(w, all, 1)
	vms, err := w.provider.VMs(w.namespace)
	require.NoError(w, err)
	require.Len(w, vms, 1)
	o := original{world: w, machine: all[0], node: *w.nodeOf(all[0].Name), vm: vms[0]}
	w.Cleanup(o.clear)
	var writing sync.WaitGroup
	for first := range writers {
		writing.Go(func() {
			for i := 1 + first; i < n && !w.Failed(); i += writers {
				if err := o.copy(i); err != nil {
					w.Errorf("copy %d: %v", i, err)
				}
			}
		})
	}
	writing.Wait()
	require.False(w, w.Failed())
}

// original is the machine to copy, with its node and VM.
type original struct {
	*world
	machine v1alpha1.Machine
	node    corev1.Node
	vm      simulated.VM
}

// copy creates copy number i. It creates the VM last, so that the simulated provider finds the VM's
// node and does not register another.
func (o *original) copy(i int) error {
	name, id := o.machine.Name+"-"+strconv.Itoa(i), o.vm.ID+strconv.Itoa(i)
	change := []string{o.machine.Name, name, o.vm.ID, id}
	node := renamed(&o.node, change...)
	node.ObjectMeta = creatableMeta(node.ObjectMeta)
	status, err := json.Marshal(map[string]any{"status": node.Status})
	if err != nil {
		return err
	}
	node, err = o.target.CoreV1().Nodes().Create(o.Context(), node, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if _, err = o.target.CoreV1().Nodes().PatchStatus(o.Context(), node.Name, status); err != nil {
		return err
	}
	m := renamed(&o.machine, append(change, string(o.node.UID), string(node.UID))...)
	reported := m.Status
	m.ObjectMeta = creatableMeta(m.ObjectMeta)
	if err := o.client.Create(o.Context(), m); err != nil {
		return err
	}
	m.Status = reported
	if err := o.client.Status().Update(o.Context(), m); err != nil {
		return err
	}
	vm, err := json.Marshal(renamed(&o.vm, change...))
	if err != nil {
		return err
	}
	draft := filepath.Join(o.folder, ".copy-"+name)
	if err := os.WriteFile(draft, vm, 0o600); err != nil {
		return err
	}
	return os.Rename(draft, filepath.Join(o.folder, o.namespace, name))
}

// renamed returns a copy of an object in which strings are replaced. pairs are old and new strings.
func renamed[T any](o *T, pairs ...string) *T {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	out := new(T)
	if err := json.Unmarshal([]byte(strings.NewReplacer(pairs...).Replace(string(text))), out); err != nil {
		panic(err)
	}
	return out
}

// creatableMeta returns the metadata that a user may set on a new object.
func creatableMeta(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, Labels: m.Labels, Annotations: m.Annotations,
		OwnerReferences: m.OwnerReferences, Finalizers: m.Finalizers,
	}
}

// clear deletes the nodes, which the deletion of the namespace does not delete.
func (o *original) clear() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	list, err := o.target.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		o.Errorf("list nodes: %v", err)
		return
	}
	remaining := make(chan string, len(list.Items))
	for _, n := range list.Items {
		if o.mine(&n) {
			remaining <- n.Name
		}
	}
	close(remaining)
	var deleting sync.WaitGroup
	for range writers {
		deleting.Go(func() {
			for name := range remaining {
				_ = o.target.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
			}
		})
	}
	deleting.Wait()
}
