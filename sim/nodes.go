package sim

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// boot joins a VM to the cluster after a while, unless the VM never joins.
func (w *World) boot(name, id string) {
	if w.o.NoCluster {
		return
	}
	if w.happens(w.o.Faults.DeadBoot) {
		w.count(DeadBoot)
		return
	}
	slow := w.upTo(w.o.Faults.SlowBoot)
	if slow > 0 {
		w.count(SlowBoot)
	}
	w.clock.after(w.o.Boot+slow, func() {
		if w.gone[id] {
			return
		}
		if dark := w.dark[w.zoneOf[id]]; w.clock.now.Before(dark) {
			w.clock.after(dark.Sub(w.clock.now), func() { w.boot(name, id) })
			return
		}
		node := &machine.Node{Meta: object.Meta{Key: object.Key{Name: name}}, ProviderID: id}
		if key := machine.DefaultPolicy().Keys.NotReadyTaint; key != "" {
			node.Taints = []object.Taint{{Key: key, Effect: "NoSchedule"}}
		}
		if _, err := w.nodes.Create(context.Background(), node); err != nil {
			w.clock.after(10*time.Second, func() { w.boot(name, id) }) // the name is taken: it tries again
			return
		}
		w.clock.after(w.upTo(2*time.Second), func() { w.recover(name, id) })
		w.flap(name, id)
	})
}

// flap makes a node unhealthy for a while now and then.
func (w *World) flap(name, id string) {
	if !w.happens(w.o.Faults.Flap) {
		return
	}
	w.clock.after(w.upTo(10*time.Minute), func() {
		if w.faultsStopped || w.gone[id] {
			return
		}
		w.count(NodeFlapped)
		w.ready(name, id, object.False)
		if w.happens(w.o.Faults.FlapForGood) {
			w.count(NodeLost)
			w.lostNodes[id] = true
			w.chatter(name, id)
			return
		}
		w.clock.after(w.upTo(15*time.Minute), func() { w.recover(name, id) })
	})
}

// silence is what the cluster records of a node whose VM is gone. The cluster deletes such a node
// after a while if no machine has marked it, because nothing else can know that it was ours.
func (w *World) silence(name, id string) {
	w.ready(name, id, object.Unknown)
	w.clock.after(10*time.Minute, func() {
		n, err := w.nodes.Get(context.Background(), object.Key{Name: name})
		if err == nil && n.ProviderID == id && len(n.Finalizers) == 0 && len(n.Labels) == 0 {
			_ = w.nodes.Delete(context.Background(), n.Key, n.UID) // read in the same instant: it is there
		}
	})
}

// readinessTurns: the readiness of a node is about to change.
type readinessTurns struct{ node string }

// ready writes whether a VM's node is Ready, and reports whether that changed anything.
func (w *World) ready(name, id string, status object.ConditionStatus) bool {
	ctx := context.Background()
	n, err := w.nodes.Get(ctx, object.Key{Name: name})
	if err != nil || n.ProviderID != id || status == object.True && w.gone[id] {
		return false
	}
	if c := object.FindCondition(n.Conditions, machine.NodeReady); c != nil && c.Status == status {
		return false
	}
	w.emit(readinessTurns{name})
	n = n.Clone()
	n.Conditions = object.SetCondition(n.Conditions, object.Condition{
		Type: machine.NodeReady, Status: status, Since: w.clock.now.Truncate(time.Second),
	})
	_, _ = w.nodes.UpdateStatus(ctx, n) // read in the same instant: no conflict
	w.apps.soon()
	w.check()
	return true
}

// chatter changes the message of a node that is unhealthy for good again and again, as kubelets do.
func (w *World) chatter(name, id string) {
	w.clock.after(3*time.Minute+w.upTo(time.Minute), func() {
		n, err := w.nodes.Get(context.Background(), object.Key{Name: name})
		if err != nil || n.ProviderID != id || w.gone[id] {
			return
		}
		n = n.Clone()
		for i := range n.Conditions {
			if n.Conditions[i].Type == machine.NodeReady {
				n.Conditions[i].Message = "still ill at " + w.clock.now.Format(time.TimeOnly)
			}
		}
		_, _ = w.nodes.UpdateStatus(context.Background(), n) // read in the same instant: no conflict
		w.chatter(name, id)
	})
}
