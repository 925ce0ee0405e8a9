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

// nodes does the work of the kubelets of all VMs.
type nodes struct {
	client    kubernetes.Interface // nil: VMs register no nodes
	heartbeat time.Duration
	wait      sync.WaitGroup // for booting VMs; Go is called with mu held

	mu    sync.Mutex
	ctx   context.Context  // of Run; nil while it does not run
	known map[string]*boot // by CLUSTER/NAME
}

// boot is a VM that boots or has booted.
type boot struct {
	vm      VM
	joined  bool      // the node is registered
	renewed time.Time // last heartbeat
}

// Run boots VMs until ctx ends, also those that an earlier process has created, tends the groups, and
// updates the nodes of VMs that are gone. Without Options.Nodes it does nothing.
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

// look compares the folder with the known VMs. What fails is retried by the next look.
func (p *Provider) look(ctx context.Context) {
	_ = p.tend()
	// VMs that are created from here on are not in before, so they can't count as gone below.
	before := p.nodes.all()
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
	exists := map[string]bool{}
	for _, v := range instances {
		exists[v.Cluster+"/"+v.Machine] = true
		p.nodes.expect(v)
	}
	p.deleteNodes(ctx, registered, instances)
	for _, cluster := range clusters {
		names, err := p.disk.names(cluster)
		if err != nil {
			return
		}
		for _, name := range names {
			exists[cluster+"/"+name] = true
			if !p.nodes.knows(cluster, name) {
				if v, err := p.disk.get(cluster, name); err == nil {
					p.nodes.expect(v)
				}
			}
		}
	}
	for _, b := range before {
		if exists[b.vm.Cluster+"/"+b.vm.Machine] {
			continue
		}
		p.nodes.forget(b.vm)
		if b.vm.Pool == "" {
			p.nodes.silence(ctx, b.vm)
		}
	}
	p.nodes.heartbeats(ctx)
}

// all returns all known VMs.
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

// end waits for VMs that boot. VMs that are created later boot with the next Run.
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

// expect makes a VM known, and registers its node when it has booted.
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

// join registers the node of a VM. A node that exists already counts as registered.
func (n *nodes) join(ctx context.Context, b *boot) {
	if ctx.Err() != nil || !n.current(b) {
		return
	}
	created, err := n.client.CoreV1().Nodes().Create(ctx, node(b.vm), metav1.CreateOptions{})
	if err == nil && !n.current(b) {
		// The VM was deleted meanwhile, and the manager may have found no node to delete.
		_ = n.client.CoreV1().Nodes().Delete(ctx, created.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(created.UID))})
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	b.joined = err == nil || apierrors.IsAlreadyExists(err)
}

// current reports whether a VM was neither forgotten nor replaced.
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

// node returns the node that a kubelet would register.
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
	addPoolMeta(n, &v)
	return n
}

// silentAfter is the number of missed heartbeats after which a controller may set a node's state to
// Unknown.
const silentAfter = 4

// heartbeats retries failed registrations, and renews leases. A node that has missed heartbeats, so that a
// controller may have set its state to Unknown, reports that it is ready, as a kubelet does.
func (n *nodes) heartbeats(ctx context.Context) {
	n.mu.Lock()
	var late, due, missed []*boot
	now := time.Now()
	for _, b := range n.known {
		switch {
		case !b.joined && now.Sub(b.vm.Booted) > time.Second:
			late = append(late, b)
		case b.joined && n.heartbeat > 0 && now.Sub(b.renewed) >= n.heartbeat:
			if !b.renewed.IsZero() && now.Sub(b.renewed) >= silentAfter*n.heartbeat {
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

// silence sets the state of a gone VM's node to Unknown, if the node exists, as a controller would.
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

// renew renews the lease of a node.
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
