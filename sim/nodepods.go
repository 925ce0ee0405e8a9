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
)

// nodePods are the pods of a preview. Each node carries the same number of them. A pod that is told to
// go does so after a time, and none takes its place.
type nodePods struct {
	*ground
	nodes  *trackedStore[*machine.Node]
	each   int // of a node
	ends   time.Duration
	number int
	on     map[string][]*drain.Pod // by node, once it was asked for
	tell   func(node string)
}

func newNodePods(g *ground, nodes *trackedStore[*machine.Node], each int, ends time.Duration) *nodePods {
	p := &nodePods{ground: g, nodes: nodes, each: each, ends: ends, on: map[string][]*drain.Pod{}}
	g.subscribe(p.see)
	return p
}

// see forgets the pods of a node that is gone.
func (p *nodePods) see(e event) {
	if e, ok := e.(stored[*machine.Node]); ok && e.now == nil {
		delete(p.on, e.key.Name)
	}
}

// open returns the pods as a process sees them.
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
	pods := make([]*drain.Pod, p.each)
	for i := range pods {
		p.number++
		pods[i] = &drain.Pod{
			Key: object.Key{Namespace: node, Name: fmt.Sprintf("%s-%d", node, i)}, UID: fmt.Sprintf("pod-%d", p.number),
			Owner: &object.Owner{Kind: "ReplicaSet", Name: "app", UID: "app"}, CreatedAt: p.clock.Now().Truncate(time.Second), Grace: p.ends,
		}
	}
	p.on[node] = pods
	return pods
}

// end tells a pod to go; now: without its grace. The namespace of a pod is the name of its node.
func (p *nodePods) end(o drain.Order, now bool) drain.Answer {
	node := o.Pod.Namespace
	at := slices.IndexFunc(p.on[node], func(pod *drain.Pod) bool { return pod.UID == o.UID })
	if at < 0 {
		return drain.Answer{Result: drain.NotFound}
	}
	takes := p.ends
	if now {
		takes = 0
	}
	if pod := p.on[node][at]; pod.GraceEnds.IsZero() || now {
		going := *pod
		going.GraceEnds = p.clock.Now().Add(takes)
		pods := slices.Clone(p.on[node]) // readers share them
		pods[at], p.on[node] = &going, pods
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

// nodePodsPort is nodePods as one process sees them.
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

// Watch implements drains.Pods. Nothing watches in a simulation.
func (s nodePodsPort) Watch(context.Context) iter.Seq2[string, error] {
	return func(func(string, error) bool) {}
}
