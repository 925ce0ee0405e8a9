package sim

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/drains"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/internal/cluster"
)

// kubelets joins VMs to the cluster as nodes, and writes the status of nodes.
type kubelets struct {
	*base
	*cloud
	nodes     *trackedStore[*machine.Node]
	apps      *cluster.Cluster
	bootTime  time.Duration          // the time from a VM's creation until it joins
	fails     func(name string) bool // reports which VMs never join, in addition to random ones; or nil
	noCluster bool                   // there is no cluster
	readyTime time.Duration          // the longest time from joining until a node is ready
	lostNodes map[string]bool        // IDs of VMs whose nodes never become ready again
	vmIDs     map[string]string      // the VMs' IDs in the provider's spelling, by UID of the node
}

func newKubelets(r *cloud, nodes *trackedStore[*machine.Node], apps *cluster.Cluster, bootTime time.Duration, noCluster bool) *kubelets {
	return &kubelets{base: r.base, cloud: r, nodes: nodes, apps: apps, bootTime: bootTime, noCluster: noCluster, readyTime: 2 * time.Second, lostNodes: map[string]bool{}, vmIDs: map[string]string{}}
}

// readinessChanging: the readiness of a node changes next.
type readinessChanging struct{ node string }

// boot joins a VM to the cluster after a while, unless the VM never joins.
func (k *kubelets) boot(name, id string) { k.bootIn(k.bootTime, name, id) }

func (k *kubelets) bootIn(d time.Duration, name, id string) {
	if k.noCluster {
		return
	}
	if k.happens(k.hazards.DeadBoot) || k.fails != nil && k.fails(name) {
		k.count(DeadBoot)
		return
	}
	slow := k.upTo(k.hazards.SlowBoot)
	if slow > 0 {
		k.count(SlowBoot)
	}
	k.After(d+slow, func() {
		if k.removed[id] {
			return
		}
		if zoneOutUntil := k.zoneOutUntil[k.zoneOf[id]]; k.Now().Before(zoneOutUntil) {
			k.After(zoneOutUntil.Sub(k.Now()), func() { k.boot(name, id) })
			return
		}
		node := &machine.Node{Meta: object.Meta{Key: object.Key{Name: name}}, ProviderID: id}
		if key := machine.DefaultPolicy().Keys.NotReadyTaint; key != "" && !k.hazards.NoStartupTaint {
			node.Taints = []object.Taint{{Key: key, Effect: "NoSchedule"}}
		}
		if !k.join(node) {
			k.After(10*time.Second, func() { k.boot(name, id) }) // the name is taken: the kubelet tries again
		}
	})
}

// join creates a node, which becomes ready a moment later. It returns false if the name is taken.
func (k *kubelets) join(n *machine.Node) bool {
	name, id := n.Name, n.ProviderID
	if k.happens(k.hazards.NodeSpelling) {
		k.count(NodeSpelled)
		n.ProviderID = otherSpelling(id)
		if k.chance(2) == 0 {
			n.ProviderID = ""
			k.After(k.upTo(idTime), func() { k.identify(name, id) })
		}
	}
	made, err := k.nodes.Create(context.Background(), n)
	if err != nil {
		return false
	}
	k.vmIDs[made.UID] = id
	k.After(k.upTo(k.readyTime), func() { k.recover(name, id) })
	k.flap(name, id)
	return true
}

// idTime is the longest time until a controller of the provider has written a node's provider ID.
const idTime = 5 * time.Minute

// identify writes the provider ID of a node that was registered without one.
func (k *kubelets) identify(name, id string) {
	n, err := k.nodes.Get(context.Background(), object.Key{Name: name})
	if err == nil && k.vmOf(n) == id && n.ProviderID == "" {
		n = n.Clone()
		n.ProviderID = id
		_, _ = k.nodes.Update(context.Background(), n) // read in the same instant: no conflict
		k.check()
	}
}

// vmOf returns the ID of a node's VM as the provider spells it.
func (k *kubelets) vmOf(n *machine.Node) string {
	if id, joined := k.vmIDs[n.UID]; joined {
		return id
	}
	return n.ProviderID
}

// flap makes a node not ready for a while, with probability Faults.Flap.
func (k *kubelets) flap(name, id string) {
	if !k.happens(k.hazards.Flap) {
		return
	}
	k.After(k.upTo(10*time.Minute), func() {
		if k.faultsStopped || k.removed[id] {
			return
		}
		k.count(NodeFlapped)
		k.ready(name, id, object.False)
		if k.happens(k.hazards.FlapForGood) {
			k.count(NodeLost)
			k.lostNodes[id] = true
			k.report(name, id)
			return
		}
		k.After(k.upTo(15*time.Minute), func() { k.recover(name, id) })
	})
}

// recover makes a node ready again, unless something prevents it.
func (k *kubelets) recover(name, id string) {
	if k.lostNodes[id] || k.zoneIsOut(k.zoneOf[id]) {
		return
	}
	k.ready(name, id, object.True)
}

// flicker makes a node NotReady for a while, if it is ready.
func (k *kubelets) flicker(name, id string, d time.Duration) {
	if !k.ready(name, id, object.Unknown) {
		return
	}
	k.After(d, func() { k.recover(name, id) })
}

// vmIsGone makes the node of a VM that is gone NotReady, as its cluster does. If the manager has not marked
// the node, the cluster deletes it after a while, because the manager can't know that it has to.
func (k *kubelets) vmIsGone(name, id string) {
	k.ready(name, id, object.Unknown)
	k.After(10*time.Minute, func() {
		n, err := k.nodes.Get(context.Background(), object.Key{Name: name})
		if err == nil && k.vmOf(n) == id && len(n.Finalizers) == 0 && len(n.Labels) == 0 {
			_ = k.nodes.Delete(context.Background(), n.Key, n.UID) // read in the same instant: it is there
		}
	})
}

// ready writes the Ready condition of a VM's node, and reports whether that changed anything.
func (k *kubelets) ready(name, id string, status object.ConditionStatus) bool {
	ctx := context.Background()
	n, err := k.nodes.Get(ctx, object.Key{Name: name})
	if err != nil || k.vmOf(n) != id || status == object.True && k.removed[id] {
		return false
	}
	if c := object.FindCondition(n.Conditions, machine.NodeReady); c != nil && c.Status == status {
		return false
	}
	k.emit(readinessChanging{name})
	n = n.Clone()
	n.Conditions = object.SetCondition(n.Conditions, object.Condition{
		Type: machine.NodeReady, Status: status, Since: k.Now().Truncate(time.Second),
	})
	_, _ = k.nodes.UpdateStatus(ctx, n) // read in the same instant: no conflict
	k.apps.Soon()
	k.check()
	return true
}

// report changes again and again, as kubelets do, the message of a node that stays not ready.
func (k *kubelets) report(name, id string) {
	k.After(3*time.Minute+k.upTo(time.Minute), func() {
		n, err := k.nodes.Get(context.Background(), object.Key{Name: name})
		if err != nil || k.vmOf(n) != id || k.removed[id] {
			return
		}
		n = n.Clone()
		for i := range n.Conditions {
			if n.Conditions[i].Type == machine.NodeReady {
				n.Conditions[i].Message = "still ill at " + k.Now().Format(time.TimeOnly)
			}
		}
		_, _ = k.nodes.UpdateStatus(context.Background(), n) // read in the same instant: no conflict
		k.report(name, id)
	})
}

// stopFaults makes the nodes of all VMs ready, except for those that never become ready again.
func (k *kubelets) stopFaults() {
	for _, vm := range k.provider.VMs() {
		k.recover(vm.Name, vm.ID)
	}
}

// nodePods are the pods of a preview. Each node has the same number of them. A pod that is told to
// terminate ends after endTime, and no other replaces it.
type nodePods struct {
	*base
	nodes   *trackedStore[*machine.Node]
	perNode int
	endTime time.Duration
	number  int                     // how many pods were made so far
	on      map[string][]*drain.Pod // by node; made when they are first read
	tell    func(node string)       // reports that a node's pods have changed
}

func newNodePods(g *base, nodes *trackedStore[*machine.Node], perNode int, endTime time.Duration) *nodePods {
	p := &nodePods{base: g, nodes: nodes, perNode: perNode, endTime: endTime, on: map[string][]*drain.Pod{}}
	g.subscribe(p.see)
	return p
}

// see forgets the pods of a node that is gone.
func (p *nodePods) see(e event) {
	if e, ok := e.(stored[*machine.Node]); ok && e.now == nil {
		delete(p.on, e.key.Name)
	}
}

// open returns the pods for a process, which is told of changes.
func (p *nodePods) open(by *process, tell func(node string)) drains.Workload {
	p.tell = tell
	return drains.Workload{Pods: nodePodsPort{by, p}}
}

// of returns the pods of a node.
func (p *nodePods) of(node string) []*drain.Pod {
	if pods, known := p.on[node]; known {
		return pods
	}
	if _, err := p.nodes.Get(context.Background(), object.Key{Name: node}); err != nil {
		return nil
	}
	pods := make([]*drain.Pod, p.perNode)
	for i := range pods {
		p.number++
		pods[i] = &drain.Pod{
			Key: object.Key{Namespace: node, Name: fmt.Sprintf("%s-%d", node, i)}, UID: fmt.Sprintf("pod-%d", p.number),
			Owner: &object.Owner{Kind: "ReplicaSet", Name: "app", UID: "app"}, CreatedAt: p.clock.Now().Truncate(time.Second), Grace: p.endTime,
		}
	}
	p.on[node] = pods
	return pods
}

// end terminates a pod, without a grace period if now is true. The namespace of a pod is the name of its
// node.
func (p *nodePods) end(o drain.Order, now bool) drain.Answer {
	node := o.Pod.Namespace
	at := slices.IndexFunc(p.on[node], func(pod *drain.Pod) bool { return pod.UID == o.UID })
	if at < 0 {
		return drain.Answer{Result: drain.NotFound}
	}
	takes := p.endTime
	if now {
		takes = 0
	}
	if pod := p.on[node][at]; pod.GraceEnds.IsZero() || now {
		terminating := *pod
		terminating.GraceEnds = p.clock.Now().Add(takes)
		pods := slices.Clone(p.on[node]) // readers share the slice
		pods[at], p.on[node] = &terminating, pods
		p.clock.After(takes, func() { p.gone(node, o.UID) })
	}
	return drain.Answer{Result: drain.Accepted}
}

// gone removes a pod that has ended.
func (p *nodePods) gone(node, uid string) {
	at := slices.IndexFunc(p.on[node], func(pod *drain.Pod) bool { return pod.UID == uid })
	if at < 0 {
		return
	}
	p.on[node] = slices.Delete(slices.Clone(p.on[node]), at, at+1)
	p.tell(node)
}

// nodePodsPort gives one process access to nodePods.
type nodePodsPort struct {
	by   *process
	pods *nodePods
}

// On implements drains.Pods.
func (s nodePodsPort) On(_ context.Context, node string) ([]*drain.Pod, bool, error) {
	return s.pods.of(node), true, nil
}

// Evict implements drains.Pods.
func (s nodePodsPort) Evict(_ context.Context, o drain.Order) (out drain.Answer, err error) {
	err = s.by.call(targetAPI, func() error { out = s.pods.end(o, false); return nil })
	return out, err
}

// Delete implements drains.Pods.
func (s nodePodsPort) Delete(_ context.Context, o drain.Order) (out drain.Answer, err error) {
	err = s.by.call(targetAPI, func() error { out = s.pods.end(o, o.Now); return nil })
	return out, err
}

// Watch implements drains.Pods. It yields nothing, because the world wakes the reconcilers itself.
func (s nodePodsPort) Watch(context.Context) iter.Seq2[string, error] {
	return func(func(string, error) bool) {}
}

// agents simulates the programs that update nodes in place, one on each node.
type agents struct {
	*kubelets
	update time.Duration   // how long an update takes
	fails  func() bool     // reports whether an update fails, in addition to random ones; or nil
	label  string          // the label of a node in which its agent answers
	atWork map[string]*job // the last update of each node, by UID of the node
}

// job is one update of a node by its agent.
type job struct {
	node     *machine.Node
	answer   string
	stubborn bool // it answers even if the update was withdrawn
	over     bool // the update was withdrawn, or another one has begun
}

func newAgents(k *kubelets, update time.Duration, label string) *agents {
	if update == 0 {
		update = updateTime
	}
	return &agents{kubelets: k, update: update, label: label, atWork: map[string]*job{}}
}

// updateTime is how long an agent takes unless Options set another time.
const updateTime = 2 * time.Minute

// These are the longest times by which agents are late, that restarts take, and until a second answer.
const (
	lateTime   = 2 * time.Hour
	rebootTime = 15 * time.Minute
	mendTime   = 30 * time.Minute
)

// These are the events of updates in place: a node is ready for its update, and its agent answers.
type (
	updateAwaited  struct{ node string }
	updateAnswered struct{ node, answer string }
)

// see makes the agents react to changes of their nodes. An agent that may update its node does so, and
// answers with a label.
func (a *agents) see(e event) {
	if e, ok := e.(stored[*machine.Node]); ok && e.now != nil {
		a.read(e.now)
	}
}

func (a *agents) read(n *machine.Node) {
	c := object.FindCondition(n.Conditions, machine.NodeInPlaceUpdate)
	j := a.atWork[n.UID]
	if c == nil || c.Status != object.True || c.Reason != machine.ReasonReadyForUpdate {
		if j != nil {
			j.over = true
		}
		return
	}
	if j != nil && !j.over {
		return
	}
	if j != nil {
		j.stubborn = false // its agent works on the next update
	}
	j = &job{node: n, answer: machine.UpdateSuccessful}
	a.atWork[n.UID] = j
	a.emit(updateAwaited{n.Name})
	if a.happens(a.hazards.DeadUpdate) {
		a.count(UpdateSilent)
		return
	}
	if a.happens(a.hazards.BadUpdate) || a.fails != nil && a.fails() {
		a.count(UpdateFailed)
		j.answer = machine.UpdateFailed
	}
	a.work(j)
}

// work makes an agent update its node, and answer.
func (a *agents) work(j *job) {
	takes := a.update + a.upTo(a.hazards.SlowBoot)
	if a.happens(a.hazards.LateUpdate) {
		a.count(UpdateLate)
		j.stubborn = true
		takes += a.upTo(lateTime)
	}
	if a.happens(a.hazards.UpdateReboot) {
		a.count(UpdateRebooted)
		until, silent := a.upTo(takes), a.upTo(rebootTime)
		a.After(until, func() { a.flicker(j.node.Name, a.vmOf(j.node), silent) })
		takes += until + silent // the update begins again
	}
	a.After(takes, func() { a.finish(j) })
}

func (a *agents) finish(j *job) {
	a.answer(j)
	if j.answer == machine.UpdateFailed && a.happens(a.hazards.SecondAnswer) {
		again := &job{j.node, machine.UpdateSuccessful, true, true} // stubborn and over
		a.After(a.upTo(mendTime), func() {
			if a.atWork[j.node.UID] == j {
				a.count(UpdateMended)
				a.answer(again)
			}
		})
	}
}

func (a *agents) answer(j *job) {
	n, err := a.nodes.Get(context.Background(), j.node.Key)
	if err != nil || n.UID != j.node.UID || j.over && !j.stubborn {
		return
	}
	n = n.Clone()
	n.Labels = withLabel(n.Labels, a.label, j.answer)
	a.emit(updateAnswered{n.Name, j.answer})
	_, _ = a.nodes.Update(context.Background(), n) // read in the same instant: no conflict
}

func withLabel(labels map[string]string, key, value string) map[string]string {
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	return labels
}

// clusterWorld gives the simulated cluster access to the world.
type clusterWorld struct {
	random
	nodes *trackedStore[*machine.Node]
}

// Faults implements cluster.World.
func (w clusterWorld) Faults() cluster.Faults {
	f := w.hazards
	return cluster.Faults{
		PodEnd: f.PodEnd, KeptPod: f.KeptPod, KeptPodFor: f.KeptPodFor, FailedPod: f.FailedPod,
		StuckVolume: f.StuckVolume, SlowVolume: f.SlowVolume,
	}
}

// Count implements cluster.World.
func (w clusterWorld) Count(f cluster.Fault) { w.count(clusterFaults[f]) }

var clusterFaults = [...]Fault{
	cluster.PodFinished: PodFinished, cluster.PodKept: PodKept, cluster.PodFailed: PodFailed,
	cluster.PodCompleted: PodCompleted, cluster.VolumeSlow: VolumeSlow, cluster.VolumeStuck: VolumeStuck,
}

// Nodes implements cluster.World.
func (w clusterWorld) Nodes() []*machine.Node { return w.nodes.all() }

// followNodes returns a subscriber that tells a cluster of the changes of nodes.
func followNodes(c *cluster.Cluster) func(event) {
	return func(e event) {
		if e, ok := e.(stored[*machine.Node]); ok {
			c.Soon()
			if e.now == nil {
				c.Lost(e.key.Name)
			}
		}
	}
}

// workloadPort gives one process access to the pods of the simulated cluster.
type workloadPort struct {
	p    *process
	apps *cluster.Cluster
}

// On implements drains.Pods.
func (s workloadPort) On(_ context.Context, node string) ([]*drain.Pod, bool, error) {
	if s.p.dead {
		return nil, false, errDead
	}
	return s.apps.On(node), true, nil
}

// Evict implements drains.Pods.
func (s workloadPort) Evict(_ context.Context, o drain.Order) (out drain.Answer, err error) {
	err = s.p.call(targetAPI, func() error { out = s.apps.Evict(o); return nil })
	return out, err
}

// Delete implements drains.Pods.
func (s workloadPort) Delete(_ context.Context, o drain.Order) (out drain.Answer, err error) {
	err = s.p.call(targetAPI, func() error { out = s.apps.Delete(o); return nil })
	return out, err
}

// Watch implements drains.Pods. It yields nothing, because the world wakes the reconcilers itself.
func (s workloadPort) Watch(context.Context) iter.Seq2[string, error] {
	return func(func(string, error) bool) {}
}

// In implements drains.Budgets.
func (s workloadPort) In(_ context.Context, namespaces []string) (out []*drain.Budget, complete bool, err error) {
	for _, name := range namespaces {
		out = append(out, s.apps.Budgets(name)...)
	}
	return out, true, nil
}

// Bound implements drains.Volumes.
func (s workloadPort) Bound(_ context.Context, claims []object.Key) ([]*drain.Volume, bool, error) {
	return s.apps.Bound(claims), true, nil
}

// VolumeAttachments implements drains.Volumes.
func (s workloadPort) VolumeAttachments(_ context.Context, node string, names []string) ([]*drain.Attachment, error) {
	return s.apps.Attachments(node, names), nil
}

// VolumesAttached implements drains.Volumes. Simulated nodes don't list volumes in their status.
func (s workloadPort) VolumesAttached(context.Context, string) ([]string, error) { return nil, nil }

// Detach implements drains.Volumes.
func (s workloadPort) Detach(_ context.Context, attachment string) (out drain.Answer, err error) {
	err = s.p.call(targetAPI, func() error { out = s.apps.Detach(attachment); return nil })
	return out, err
}

// forcePolicy says when force may be used on a machine.
type forcePolicy struct {
	*managerClock
	*policies
	nodes *trackedStore[*machine.Node]
}

// forceDue reports whether force may be used on a machine now, by the manager's clock: a user forces its
// deletion, the present stage has exceeded its timeout, or its node has been NotReady for too long.
// LastOperation.Forced alone is not enough, because the manager can't record that while the API server
// does not answer.
func (f *forcePolicy) forceDue(m *machine.Machine) bool {
	if !m.Deleted() {
		return false
	}
	p, now := f.machinePolicy(), f.managerNow()
	timeout := p.DrainTimeout
	if t := m.Spec.Config.DrainTimeout; t > 0 {
		timeout = t
	}
	if m.Status.LastOperation.Forced || f.forcedByHand(&m.Meta) || !now.Before(stageBegan(m).Add(timeout)) {
		return true
	}
	n, err := f.nodes.Get(context.Background(), object.Key{Name: m.Name})
	if err != nil {
		return false
	}
	c := object.FindCondition(n.Conditions, machine.NodeReady)
	return c != nil && c.Status != object.True && !now.Before(c.Since.Add(p.Unresponsive))
}

// stageBegan returns when the present stage of a machine's deletion began.
func stageBegan(m *machine.Machine) time.Time {
	if since := m.Status.StageSince; since.After(m.DeletedAt) {
		return since
	}
	return m.DeletedAt
}

// forcedByHand reports whether a user has forced the deletion of a machine.
func (p *policies) forcedByHand(m *object.Meta) bool {
	return m.Labels[p.machinePolicy().Keys.ForceDeletion] != ""
}
