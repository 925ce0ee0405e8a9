package machine

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// removesStartupTaint reports whether the taint Keys.NotReadyTaint is to be removed from a node: the node is
// healthy, and its machine is not Failed, InPlaceUpdating or InPlaceUpdateSuccessful. (The taints of
// Policy.StartupTaints are removed by other programs.)
func (d *decider) removesStartupTaint(n *Node) bool {
	phase := d.m.Status.Phase
	return phase != PhaseFailed && phase != PhaseInPlaceUpdating && phase != PhaseInPlaceUpdateSuccessful &&
		n.judge(d.p.nodeConditions(d.m)).healthy()
}

// outOfSync reports whether a node has to be written. A node that is being deleted is written only if our
// finalizer keeps it.
func (d *decider) outOfSync(n *Node) bool {
	return !(d.specInSync(n) && d.capacityInSync(n)) && (!n.Deleted() || nodeDeleting(n))
}

// syncNode brings a node up to date: machine label, finalizer, template, virtual capacity of the class, and
// the marks of rollouts, in-place updates and preservation. It removes the taint Keys.NotReadyTaint, see
// removesStartupTaint.
func (d *decider) syncNode(n *Node) Plan {
	if d.statusMayBeStale(n) {
		return d.confirmStatus(n)
	}
	want := d.syncedNode(n)
	changes, _, _ := d.revertDelayedChanges(n, want)
	return Plan{
		Effect: &SyncNode{Node: want, Spec: true, Capacity: !d.capacityInSync(n), Rest: d.fallbacks(n), Changes: changes},
		Why:    decision.Why{Reason: reasonSyncNode, Name: n.Name},
	}
}

// entries says which kinds of entries of a template to apply to a node. The others stay as applied last.
type entries struct{ labels, annotations, taints, capacity bool }

var (
	allEntries = entries{true, true, true, true}
	noEntries  = entries{}
)

// allowedEntries returns what to apply: nothing of a template that the server has rejected recently.
func (d *decider) allowedEntries(n *Node) entries {
	if d.templateRefused(n) {
		return noEntries
	}
	return allEntries
}

// fallbacks returns the nodes to write if the server rejects the whole template: each leaves out the entries
// of one kind, and the last one all entries.
func (d *decider) fallbacks(n *Node) (nodes []*Node) {
	if d.templateRefused(n) {
		return nil
	}
	t, last := &d.m.Spec.NodeTemplate, &n.Applied
	if len(t.Labels)+len(last.Labels) > 0 {
		nodes = append(nodes, d.partialNode(n, entries{annotations: true, taints: true, capacity: true}))
	}
	if len(t.Annotations)+len(last.NodeTemplate.Annotations) > 0 {
		nodes = append(nodes, d.partialNode(n, entries{labels: true, taints: true, capacity: true}))
	}
	if len(t.Taints)+len(last.Taints) > 0 {
		nodes = append(nodes, d.partialNode(n, entries{labels: true, annotations: true, capacity: true}))
	}
	if len(nodes)+len(d.virtualCapacity())+len(last.VirtualCapacity) > 0 {
		nodes = append(nodes, d.partialNode(n, noEntries))
	}
	return nodes
}

// partialNode returns a node with some entries of the template, and the record that the server rejected the
// others.
func (d *decider) partialNode(n *Node, with entries) *Node {
	part := n.toApply()
	d.applyToNode(part, with)
	d.revertDelayedChanges(n, part)
	part.Applied.Generation = 0
	part.Applied.Refused = RefusedTemplate{Generation: d.m.Generation, At: d.stamp()}
	return part
}

// templateRefused reports whether the server has rejected this template less than 10 min ago.
func (d *decider) templateRefused(n *Node) bool {
	r := &n.Applied.Refused
	return r.Generation == d.m.Generation && !r.At.IsZero() && !r.At.After(d.now) && d.now.Before(r.At.Add(undoneRetry))
}

// recordRefused records on a Running machine what the server rejects, or that it no longer does.
func (d *decider) recordRefused(n *Node) (Plan, bool) {
	r, op := &n.Applied.Refused, &d.m.Status.LastOperation
	recorded := op.Kind == OperationUpdate && op.Stage == StageSyncNode && op.State == StateFailed
	switch {
	case d.m.Status.Phase != PhaseRunning:
	case d.templateRefused(n) && (!recorded || op.Code != r.Code || op.Message != r.Message):
		why := decision.Why{Reason: reasonSyncRefused, Name: n.Name, Code: r.Code, Detail: r.Message}
		return d.setStatus(why, func(status *Status) {
			status.LastOperation = d.failure(OperationUpdate, StageSyncNode, r.Code, r.Message)
		}), true
	case recorded && r.At.IsZero():
		return d.setStatus(decision.Why{Reason: reasonSyncAccepted, Name: n.Name}, func(status *Status) {
			status.LastOperation = d.operation(OperationUpdate, StateSuccessful, StageSyncNode)
		}), true
	}
	return Plan{}, false
}

// retryRefused makes a plan that ends the pass look again when a rejected template is to be retried.
func (d *decider) retryRefused(plan *Plan, n *Node) {
	if plan.Write != nil || plan.Effect != nil || !d.templateRefused(n) {
		return
	}
	*plan = lookAgainBy(*plan, n.Applied.Refused.At.Add(undoneRetry))
}

// toApply returns a copy for applyToNode. It shares with n what applyToNode replaces anyway.
func (n *Node) toApply() *Node {
	c := *n
	meta := object.Meta{Finalizers: n.Finalizers, Owner: n.Owner}
	meta = meta.CloneMeta()
	c.Finalizers, c.Owner = meta.Finalizers, meta.Owner
	c.Conditions, c.Addresses = slices.Clone(n.Conditions), slices.Clone(n.Addresses)
	c.Drain = n.Drain.Clone()
	return &c
}

// syncUndone reports whether the node is out of sync only because another program keeps changing it back. It
// is called when this pass has nothing left to write. The machine may join nevertheless, unless its node
// still has the taint Keys.NotReadyTaint.
func (d *decider) syncUndone(n *Node) bool {
	return (d.o.NodeSynced == nil || d.o.NodeSynced.Code == codes.OK) && !n.hasTaint(d.p.Keys.NotReadyTaint)
}

// syncOutdated reports whether the node was written for a status that was replaced later in this pass, so that it
// should have other marks now.
func (d *decider) syncOutdated(n *Node) bool {
	if d.o.NodeSynced == nil || d.o.NodeSynced.Code != codes.OK || !d.o.Fresh {
		return false
	}
	want, have := d.syncedNode(n), &n.Applied
	return !want.Applied.Preserved.equal(&have.Preserved) || !want.Applied.Update.equal(&have.Update)
}

// whyOutOfSync says why a node is out of sync although it was written, or its changes are delayed.
func (d *decider) whyOutOfSync(n *Node) decision.Why {
	answer := d.o.NodeSynced
	switch {
	case d.syncOutdated(n):
		return decision.Why{Reason: reasonSyncAgain, Name: n.Name}
	case answer == nil || answer.Code == codes.OK:
		what, _ := d.undoneEntries(n)
		return decision.Why{Reason: reasonSyncUndone, Name: n.Name, Detail: strings.Join(what, ", ")}
	}
	return decision.Why{Reason: reasonSyncFailed, Name: n.Name, Code: answer.Code, Detail: answer.Message}
}

// retrySync makes a plan that ends the pass retry a node that is out of sync, and warn why it is. A node that
// can't be written delays nothing else.
func (d *decider) retrySync(n *Node, plan Plan) Plan {
	if plan.Write != nil || plan.Effect != nil {
		return plan
	}
	at, why := d.now.Add(nodeRetry), d.whyOutOfSync(n)
	if why.Reason == reasonSyncUndone {
		_, at = d.undoneEntries(n)
	}
	if why.Reason != reasonSyncAgain {
		plan.Warn = why
	}
	return lookAgainBy(plan, at)
}

// specInSync reports whether the node is as applyToNode would leave it, except for its capacity. Passes of
// settled machines spend most of their time here, so it allocates nothing, and does not compare the template
// with the record (Node.Applied) while the generation is the same.
func (d *decider) specInSync(n *Node) bool {
	labeled := d.nodeOwner == d.m.Name && d.nodeOwner != ""
	if !labeled && d.machineLabelKey() != "" || !n.HasFinalizer(NodeFinalizer) || d.removesStartupTaint(n) && n.hasTaint(d.p.Keys.NotReadyTaint) {
		return false
	}
	last := &n.Applied
	// The generation counts only if the record is this machine's.
	recordCurrent := labeled && last.Generation != 0 && last.Generation == d.m.Generation
	switch {
	case !d.marksInSync(n):
		return false
	case d.templateRefused(n):
		return true
	case !last.Refused.At.IsZero():
		return false // it is time for a retry
	}
	due := d.rolloutMarksDue(n)
	return d.rolloutMarksInSync(n, due) && d.templateInSync(n, recordCurrent, due)
}

// marksInSync reports whether the marks of in-place updates and of preservation are on the node.
func (d *decider) marksInSync(n *Node) bool {
	return d.updateInSync(n) && d.preservationInSync(n)
}

// templateInSync reports whether the template is on the node and recorded.
func (d *decider) templateInSync(n *Node, recordCurrent bool, due ownMarks) bool {
	t, last := &d.m.Spec.NodeTemplate, &n.Applied
	if !recordCurrent && !t.valid() {
		usable := t.usable()
		t = &usable
	}
	return d.mapInSync(n.Labels, last.Labels, t.Labels, ownLabel, recordCurrent, 0) &&
		d.mapInSync(n.Annotations, last.Annotations, t.Annotations, ownAnnotation, recordCurrent, due.annotations()) &&
		(recordCurrent || recordsTaints(last.Taints, t.Taints, due.taints())) && d.taintsInSync(n.Taints, last.Taints, t.Taints)
}

// recordsTaints reports whether want was applied last, followed by a number of marks.
func recordsTaints(last, want []object.Taint, marks int) bool {
	return len(last) == len(want)+marks && slices.Equal(last[:len(want)], want)
}

func (d *decider) capacityInSync(n *Node) bool {
	return d.templateRefused(n) || d.mapInSync(n.Capacity, n.Applied.VirtualCapacity, d.virtualCapacity(), nil, false, 0)
}

// virtualCapacity returns the virtual capacity of the class, without entries that an API server rejects.
func (d *decider) virtualCapacity() map[string]string {
	if d.o.Class == nil || d.o.Class.NodeTemplate == nil {
		return nil
	}
	all := d.o.Class.NodeTemplate.VirtualCapacity
	for name, quantity := range all {
		if resourceProblem(name, quantity) != "" {
			usable := maps.Clone(all)
			maps.DeleteFunc(usable, func(name, quantity string) bool { return resourceProblem(name, quantity) != "" })
			return usable
		}
	}
	return all
}

// mapInSync reports whether want is on the node and was applied last. recordCurrent says that the record need
// not be compared. For the library's own keys only the record is compared. marks is how many entries the
// record has in addition to want; they are compared elsewhere.
func (d *decider) mapInSync(have, last, want map[string]string, own func(*Keys, string) bool, recordCurrent bool, marks int) bool {
	if !recordCurrent && len(last) != len(want)+marks {
		return false
	}
	for k, v := range want {
		if is, ok := have[k]; (!ok || is != v) && (own == nil || !own(&d.p.Keys, k)) {
			return false
		}
		if recordCurrent {
			continue
		}
		if was, ok := last[k]; !ok || was != v {
			return false
		}
	}
	return true
}

func (d *decider) taintsInSync(have, last, want []object.Taint) bool {
	for i := range want {
		if !slices.Contains(have, want[i]) && !d.isNotReadyTaint(want[i]) && !d.startupTaintDone(last, want[i]) {
			return false
		}
	}
	return true
}

// startupTaintDone reports whether a taint is added only once, and was added.
func (d *decider) startupTaintDone(last []object.Taint, t object.Taint) bool {
	return d.addedOnce(t.Key) && slices.Contains(last, t)
}

// addedOnce reports whether a taint with this key is added only once: it is a startup taint, which another
// program removes when the node is ready for it.
func (d *decider) addedOnce(key string) bool {
	return key != "" && key == d.p.Keys.CriticalComponents || strings.HasPrefix(key, autoscalerStartup) ||
		slices.Contains(d.p.StartupTaints, key)
}

// autoscalerStartup is the prefix of taints that the cluster autoscaler treats as startup taints.
const autoscalerStartup = "startup-taint.cluster-autoscaler.kubernetes.io/"

// isNotReadyTaint reports whether a taint has Keys.NotReadyTaint. Nodes register with it, and it is removed
// when they join, even if a template has it, too.
func (d *decider) isNotReadyTaint(t object.Taint) bool {
	return t.Key != "" && t.Key == d.p.Keys.NotReadyTaint
}

// applyToNode changes a node into what it should be, with the allowed entries of the template. It replaces the
// maps of labels, annotations and capacity, the taints, and the record of what was applied.
func (d *decider) applyToNode(n *Node, with entries) {
	marks := d.preservationMarks(n)
	d.dropKeepAnnotations(n, marks)
	due := d.rolloutMarksDue(n)
	t, capacity := d.templateWithMarks(due), maps.Clone(d.virtualCapacity())
	last, refused := n.Applied.Clone(), RefusedTemplate{}
	if with == noEntries {
		refused = n.Applied.Refused
	}
	if !with.labels {
		t.Labels = last.Labels
	}
	if !with.annotations {
		t.Annotations = last.Annotations
	}
	if !with.taints {
		t.Taints = last.Taints
	}
	if !with.capacity {
		capacity = maps.Clone(n.Applied.VirtualCapacity)
	}
	n.Labels = d.mergeExceptOwn(n.Labels, n.Applied.Labels, t.Labels, ownLabel)
	n.Annotations = d.mergeExceptOwn(n.Annotations, n.Applied.Annotations, t.Annotations, ownAnnotation)
	n.Capacity = merge(n.Capacity, n.Applied.VirtualCapacity, capacity)
	have := n.Taints
	notAgain := func(t object.Taint) bool {
		return d.isNotReadyTaint(t) || !slices.Contains(have, t) && d.startupTaintDone(last.Taints, t)
	}
	n.Taints = mergeTaints(have, without(last.Taints, d.isNotReadyTaint), without(t.Taints, notAgain))
	n.Applied = Applied{
		NodeTemplate: t, VirtualCapacity: capacity, Generation: d.m.Generation,
		Update: n.Applied.Update, Critical: n.Applied.Critical, Preserved: n.Applied.Preserved, Refused: refused,
	}
	if with == noEntries || !d.m.Spec.NodeTemplate.valid() {
		n.Applied.Generation = 0 // not all of the template
	}
	if key := d.machineLabelKey(); key != "" {
		n.Labels[key] = d.m.Name
	}
	if d.removesStartupTaint(n) {
		n.Taints = without(n.Taints, d.isNotReadyTaint)
	}
	d.applyUpdate(n)
	d.applyPreservation(n, marks)
	n.AddFinalizer(NodeFinalizer)
}

// mergeExceptOwn is merge, but leaves the library's own entries alone even if the template has them.
// Otherwise template and in-place update would overwrite each other forever. own reports whether a key is the
// library's.
func (d *decider) mergeExceptOwn(have, last, want map[string]string, own func(*Keys, string) bool) map[string]string {
	out := merge(have, last, want)
	for _, changed := range [...]map[string]string{last, want} {
		for k := range changed {
			if !own(&d.p.Keys, k) {
				continue
			}
			delete(out, k)
			if v, had := have[k]; had {
				out[k] = v
			}
		}
	}
	return out
}

// statusMayBeStale reports whether the node records another in-place update than the status, which began when
// the machine entered its phase or later. Then the status may be stale, and the node must not be reverted to
// it.
func (d *decider) statusMayBeStale(n *Node) bool {
	since := n.Applied.Update.Since
	if d.o.Fresh || since.IsZero() {
		return false
	}
	if d.m.Status.Phase == PhaseInPlaceUpdating && since.Equal(d.m.Status.Since.Truncate(time.Second)) {
		return false
	}
	return !since.Before(d.m.Status.Since)
}

// confirmStatus writes the status unchanged, except that a failed step is in progress again. If the status is
// stale, this write fails before the node is changed.
func (d *decider) confirmStatus(n *Node) Plan {
	return d.setStatus(decision.Why{Reason: reasonStatusConfirmed, Name: n.Name}, func(status *Status) {
		if op := &status.LastOperation; status.Phase == PhaseInPlaceUpdating && op.State == StateFailed {
			*op = d.operation(OperationInPlaceUpdate, StateProcessing, op.Stage)
		}
	})
}

// Values of the marks, as other programs expect them.
const (
	avoidValue = "True"
	keepValue  = "true"
)

// ownMarks says which marks of a rollout are ours on a node, or should be: taint Keys.AvoidTaint, annotation
// Keys.KeepNode, and annotation Keys.KeptByUs. Keys of the template are never ours.
type ownMarks struct{ avoid, keep, kept bool }

func (m ownMarks) annotations() (n int) {
	if m.keep {
		n++
	}
	if m.kept {
		n++
	}
	return n
}

func (m ownMarks) taints() int {
	if m.avoid {
		return 1
	}
	return 0
}

// rolloutMarksRecorded returns the marks that are ours according to the node's record.
func (d *decider) rolloutMarksRecorded(n *Node) ownMarks {
	t, last, keys := &d.m.Spec.NodeTemplate, &n.Applied.NodeTemplate, &d.p.Keys
	return ownMarks{
		avoid: slices.Contains(last.Taints, d.avoidTaint()) && !d.templateAvoids(),
		keep:  keeps(last.Annotations, keys.KeepNode) && !has(t.Annotations, keys.KeepNode),
		kept:  keeps(last.Annotations, keys.keptByUs()) && !has(t.Annotations, keys.KeptByUs),
	}
}

// rolloutMarksDue returns the marks that should be ours: those wanted that no other program has set. A preserved
// machine keeps its marks, and so does one whose set is not known.
func (d *decider) rolloutMarksDue(n *Node) ownMarks {
	if d.preserved() || d.o.Marks == nil {
		return d.rolloutMarksRecorded(n)
	}
	want, t, keys := *d.o.Marks, &d.m.Spec.NodeTemplate, &d.p.Keys
	var m ownMarks
	m.avoid = want.Avoid && keys.AvoidTaint != "" && !d.templateAvoids() && d.mayAddAvoidTaint(n)
	m.keep = want.Keep && keys.KeepNode != "" && !has(t.Annotations, keys.KeepNode) && mayAnnotate(n, keys.KeepNode)
	m.kept = m.keep && keys.keptByUs() != "" && !has(t.Annotations, keys.KeptByUs) && mayAnnotate(n, keys.KeptByUs)
	return m
}

func has(m map[string]string, key string) bool {
	_, ok := m[key]
	return ok && key != ""
}

// keeps reports whether a key has the value of a mark.
func keeps(m map[string]string, key string) bool { return key != "" && m[key] == keepValue }

// mayAnnotate reports whether an annotation is missing, or as we left it.
func mayAnnotate(n *Node, key string) bool {
	value, taken := n.Annotations[key]
	last, ours := n.Applied.Annotations[key]
	return !taken || ours && value == last
}

func (d *decider) avoidTaint() object.Taint {
	return object.Taint{Key: d.p.Keys.AvoidTaint, Value: avoidValue, Effect: object.PreferNoSchedule}
}

func (d *decider) templateAvoids() bool {
	return slices.ContainsFunc(d.m.Spec.NodeTemplate.Taints, d.avoidTaint().Same)
}

// mayAddAvoidTaint reports whether the taint is missing, or as we left it.
func (d *decider) mayAddAvoidTaint(n *Node) bool {
	i := slices.IndexFunc(n.Taints, d.avoidTaint().Same)
	return i < 0 || slices.Contains(n.Applied.Taints, n.Taints[i])
}

// rolloutMarksInSync reports whether the node has and records exactly the marks that are due.
func (d *decider) rolloutMarksInSync(n *Node, due ownMarks) bool {
	return due == d.rolloutMarksRecorded(n) && (!due.avoid || slices.Contains(n.Taints, d.avoidTaint())) &&
		(!due.keep || keeps(n.Annotations, d.p.Keys.KeepNode)) && (!due.kept || keeps(n.Annotations, d.p.Keys.KeptByUs))
}

// templateWithMarks is a copy of the template with the marks that are due.
func (d *decider) templateWithMarks(due ownMarks) NodeTemplate {
	usable := d.m.Spec.NodeTemplate.usable()
	t := usable.Clone()
	if due.annotations() > 0 {
		annotations := make(map[string]string, len(t.Annotations)+due.annotations())
		maps.Copy(annotations, t.Annotations)
		annotations[d.p.Keys.KeepNode] = keepValue
		if due.kept {
			annotations[d.p.Keys.KeptByUs] = keepValue
		}
		t.Annotations = annotations
	}
	if due.avoid {
		t.Taints = append(t.Taints, d.avoidTaint())
	}
	return t
}
