package simulated

import (
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// nodes does what the kubelets of the VMs would.
type nodes struct {
	client    kubernetes.Interface // or nil
	heartbeat time.Duration
	wait      sync.WaitGroup // for boots; mu is held to begin one

	mu    sync.Mutex
	ctx   context.Context // of Run; nil while it does not run
	known map[string]*boot
}

// boot is a VM whose node is registered or about to be.
type boot struct {
	vm      VM
	joined  bool
	renewed time.Time
}

// Run boots VMs until ctx ends, including those that an earlier process has made, and updates the
// nodes of those that are gone.
func (p *Provider) Run(ctx context.Context) error {
	if p.nodes.client == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	p.nodes.begin(ctx)
	ticker := time.NewTicker(p.options.Period)
	defer ticker.Stop()
	for {
		p.look(ctx)
		select {
		case <-ctx.Done():
			p.nodes.end()
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// look compares the folder with the nodes that are known. It retries what fails with the next look.
func (p *Provider) look(ctx context.Context) {
	_ = p.tend()
	before := p.nodes.all() // what is made from here on may not be found below
	registered, err := p.nodes.ofPools(ctx)
	if err != nil {
		return
	}
	instances, err := p.disk.instances()
	if err != nil {
		return
	}
	clusters, err := p.disk.clusters()
	if err != nil {
		return
	}
	there := map[string]bool{}
	for _, v := range instances {
		there[v.Cluster+"/"+v.Machine] = true
		p.nodes.expect(v)
	}
	p.retire(ctx, registered, instances)
	for _, cluster := range clusters {
		names, err := p.disk.names(cluster)
		if err != nil {
			return
		}
		for _, name := range names {
			there[cluster+"/"+name] = true
			if !p.nodes.knows(cluster, name) {
				if v, err := p.disk.get(cluster, name); err == nil {
					p.nodes.expect(v)
				}
			}
		}
	}
	for _, b := range before {
		if there[b.vm.Cluster+"/"+b.vm.Machine] {
			continue
		}
		p.nodes.forget(b.vm)
		if b.vm.Pool == "" {
			p.nodes.silence(ctx, b.vm)
		}
	}
	p.nodes.keep(ctx)
}

// all returns the VMs that are known.
func (n *nodes) all() (all []*boot) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, b := range n.known {
		all = append(all, b)
	}
	return all
}

// begin boots the VMs that were expected before Run.
func (n *nodes) begin(ctx context.Context) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ctx = ctx
	for _, b := range n.known {
		n.start(b)
	}
}

// end waits for what boots. What a call makes from here on boots with the next Run.
func (n *nodes) end() {
	n.mu.Lock()
	n.ctx = nil
	n.mu.Unlock()
	n.wait.Wait()
}

func (n *nodes) knows(cluster, name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.known[cluster+"/"+name] != nil
}

// expect schedules the registration of a node for when its VM has booted.
func (n *nodes) expect(v VM) {
	if n.client == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	key := v.Cluster + "/" + v.Machine
	if old := n.known[key]; old != nil && old.vm.ID == v.ID {
		return
	}
	b := &boot{vm: v}
	n.known[key] = b
	if n.ctx != nil {
		n.start(b)
	}
}

// start begins the boot. The caller holds n.mu.
func (n *nodes) start(b *boot) {
	ctx := n.ctx
	n.wait.Go(func() {
		select {
		case <-ctx.Done():
		case <-time.After(time.Until(b.vm.Booted)):
			n.join(ctx, b)
		}
	})
}

// join registers a node. One that an earlier life of the VM has registered is
// reported ready.
func (n *nodes) join(ctx context.Context, b *boot) {
	if ctx.Err() != nil || !n.current(b) {
		return
	}
	made, err := n.client.CoreV1().Nodes().Create(ctx, node(b.vm), metav1.CreateOptions{})
	if err == nil && !n.current(b) {
		// The VM was deleted meanwhile, and its manager may have found no node to delete.
		_ = n.client.CoreV1().Nodes().Delete(ctx, made.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(made.UID))})
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	b.joined = err == nil || apierrors.IsAlreadyExists(err)
}

func (n *nodes) current(b *boot) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.known[b.vm.Cluster+"/"+b.vm.Machine] == b
}

// forget stops a VM from registering a node.
func (n *nodes) forget(v VM) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if b := n.known[v.Cluster+"/"+v.Machine]; b != nil && b.vm.ID == v.ID {
		delete(n.known, v.Cluster+"/"+v.Machine)
	}
}

// node returns what a kubelet would register.
func node(v VM) *corev1.Node {
	now := metav1.Now()
	amounts := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: v.Machine, Labels: map[string]string{corev1.LabelHostname: v.Machine}},
		Spec:       corev1.NodeSpec{ProviderID: v.ID},
		Status: corev1.NodeStatus{
			Capacity: amounts, Allocatable: amounts,
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
				LastHeartbeatTime: now, LastTransitionTime: now,
			}},
		},
	}
	if v.Size != "" {
		n.Labels[corev1.LabelInstanceTypeStable] = v.Size
	}
	if v.Zone != "" {
		n.Labels[corev1.LabelTopologyZone] = v.Zone
	}
	ofPool(n, &v)
	return n
}

// unheard is after how many missed heartbeats a node may be taken for silent.
const unheard = 4

// keep retries failed registrations, and renews leases. A node that has missed heartbeats reports
// that it is ready, as a kubelet does: a controller may have called its state unknown since.
func (n *nodes) keep(ctx context.Context) {
	n.mu.Lock()
	var late, due, missed []*boot
	now := time.Now()
	for _, b := range n.known {
		switch {
		case !b.joined && now.Sub(b.vm.Booted) > time.Second:
			late = append(late, b)
		case b.joined && n.heartbeat > 0 && now.Sub(b.renewed) >= n.heartbeat:
			if !b.renewed.IsZero() && now.Sub(b.renewed) >= unheard*n.heartbeat {
				missed = append(missed, b)
			}
			b.renewed = now
			due = append(due, b)
		}
	}
	n.mu.Unlock()
	for _, b := range late {
		n.join(ctx, b)
	}
	for _, b := range due {
		n.renew(ctx, b.vm.Machine)
	}
	for _, b := range missed {
		n.report(ctx, b.vm, `{"type":"Ready","status":"True","reason":"KubeletReady"}`)
	}
}

// silence reports the node of a VM that is gone as silent, if the node still exists, as a cluster
// does.
func (n *nodes) silence(ctx context.Context, v VM) {
	n.report(ctx, v, `{"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown"}`)
}

// report writes a condition of a VM's node, if the node exists.
func (n *nodes) report(ctx context.Context, v VM, condition string) {
	stored, err := n.client.CoreV1().Nodes().Get(ctx, v.Machine, metav1.GetOptions{})
	if err != nil || stored.Spec.ProviderID != v.ID {
		return
	}
	patch := `{"status":{"conditions":[` + condition + `]}}`
	_, _ = n.client.CoreV1().Nodes().Patch(ctx, v.Machine, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
}

// renew is a heartbeat.
func (n *nodes) renew(ctx context.Context, name string) {
	leases := n.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	term, now := int32(40), metav1.NowMicro()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &term, RenewTime: &now},
	}
	stored, err := leases.Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		stored.Spec = lease.Spec
		_, _ = leases.Update(ctx, stored, metav1.UpdateOptions{})
		return
	}
	if apierrors.IsNotFound(err) {
		_, _ = leases.Create(ctx, lease, metav1.CreateOptions{})
	}
}
