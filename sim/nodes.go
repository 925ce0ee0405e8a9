package sim

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/internal/cluster"
)

// kubelets join VMs to the cluster as nodes, and write how the nodes are.
type kubelets struct {
	*ground
	*region
	nodes     *trackedStore[*machine.Node]
	apps      *cluster.Cluster
	boots     time.Duration          // how long it takes from a VM's creation until it joins
	fails     func(name string) bool // says which VMs never join, beside chance; nil: none
	none      bool                   // there is no cluster
	readies   time.Duration          // how long it takes at most from joining until a node is ready
	lostNodes map[string]bool        // VMs whose nodes are never ready again
	vmIDs     map[string]string      // of nodes, by UID, in the provider's spelling
}

func newKubelets(r *region, nodes *trackedStore[*machine.Node], apps *cluster.Cluster, boots time.Duration, none bool) *kubelets {
	return &kubelets{ground: r.ground, region: r, nodes: nodes, apps: apps, boots: boots, none: none, readies: 2 * time.Second, lostNodes: map[string]bool{}, vmIDs: map[string]string{}}
}

// readinessTurns: the readiness of a node is about to change.
type readinessTurns struct{ node string }

// boot joins a VM to the cluster after a while, unless the VM never joins.
func (k *kubelets) boot(name, id string) { k.bootIn(k.boots, name, id) }

func (k *kubelets) bootIn(d time.Duration, name, id string) {
	if k.none {
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
		if dark := k.dark[k.zoneOf[id]]; k.Now().Before(dark) {
			k.After(dark.Sub(k.Now()), func() { k.boot(name, id) })
			return
		}
		node := &machine.Node{Meta: object.Meta{Key: object.Key{Name: name}}, ProviderID: id}
		if key := machine.DefaultPolicy().Keys.NotReadyTaint; key != "" && !k.hazards.NoStartupTaint {
			node.Taints = []object.Taint{{Key: key, Effect: "NoSchedule"}}
		}
		if !k.join(node) {
			k.After(10*time.Second, func() { k.boot(name, id) }) // the name is taken: it tries again
		}
	})
}

// join makes a node, which becomes ready a moment later. It returns false if the name is taken.
func (k *kubelets) join(n *machine.Node) bool {
	name, id := n.Name, n.ProviderID
	if k.happens(k.hazards.NodeSpelling) {
		k.count(NodeSpelled)
		n.ProviderID = spelled(id)
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
	k.After(k.upTo(k.readies), func() { k.recover(name, id) })
	k.flap(name, id)
	return true
}

// idTime is how long a cloud's controller takes at most until it has written a node's provider ID.
const idTime = 5 * time.Minute

// identify writes the provider ID of a node that was registered without.
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

// flap makes a node unhealthy for a while now and then.
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
			k.chatter(name, id)
			return
		}
		k.After(k.upTo(15*time.Minute), func() { k.recover(name, id) })
	})
}

// recover makes a node ready again, unless something prevents it.
func (k *kubelets) recover(name, id string) {
	if k.lostNodes[id] || k.isDark(k.zoneOf[id]) {
		return
	}
	k.ready(name, id, object.True)
}

// waver makes a node that is ready silent for a while.
func (k *kubelets) waver(name, id string, d time.Duration) {
	if !k.ready(name, id, object.Unknown) {
		return
	}
	k.After(d, func() { k.recover(name, id) })
}

// silence is what the cluster records of a node whose VM is gone. The cluster deletes such a node
// after a while if no machine has marked it, because nothing else can know that it was ours.
func (k *kubelets) silence(name, id string) {
	k.ready(name, id, object.Unknown)
	k.After(10*time.Minute, func() {
		n, err := k.nodes.Get(context.Background(), object.Key{Name: name})
		if err == nil && k.vmOf(n) == id && len(n.Finalizers) == 0 && len(n.Labels) == 0 {
			_ = k.nodes.Delete(context.Background(), n.Key, n.UID) // read in the same instant: it is there
		}
	})
}

// ready writes whether a VM's node is Ready, and reports whether that changed anything.
func (k *kubelets) ready(name, id string, status object.ConditionStatus) bool {
	ctx := context.Background()
	n, err := k.nodes.Get(ctx, object.Key{Name: name})
	if err != nil || k.vmOf(n) != id || status == object.True && k.removed[id] {
		return false
	}
	if c := object.FindCondition(n.Conditions, machine.NodeReady); c != nil && c.Status == status {
		return false
	}
	k.emit(readinessTurns{name})
	n = n.Clone()
	n.Conditions = object.SetCondition(n.Conditions, object.Condition{
		Type: machine.NodeReady, Status: status, Since: k.Now().Truncate(time.Second),
	})
	_, _ = k.nodes.UpdateStatus(ctx, n) // read in the same instant: no conflict
	k.apps.Soon()
	k.check()
	return true
}

// chatter changes the message of a node that is unhealthy for good again and again, as kubelets do.
func (k *kubelets) chatter(name, id string) {
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
		k.chatter(name, id)
	})
}

// stopFaults makes the nodes of all VMs ready that can be.
func (k *kubelets) stopFaults() {
	for _, vm := range k.provider.VMs() {
		k.recover(vm.Name, vm.ID)
	}
}
