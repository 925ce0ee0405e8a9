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

// outOfLine reports whether a node is to be synced. A node that is going stays
// as it is, unless our finalizer keeps it.
func (s nodeSync) outOfLine() bool {
	return !(s.inLine() && s.capacityInLine()) && (!s.n.Deleted() || leaving(s.n))
}

// sync brings a node in line: the machine's name, our finalizer, the template
// and the class's virtual capacity. joining also takes the startup taint off.
func (s nodeSync) sync() Plan {
	if s.behind() {
		return s.fence()
	}
	want := s.wanted()
	changes, _, _ := s.ripe(want)
	return Plan{
		Effect: &SyncNode{Node: want, Spec: true, Capacity: !s.capacityInLine(), Rest: s.rest(), Changes: changes},
		Why:    decision.Why{Reason: reasonSyncNode, Name: s.n.Name},
	}
}

// entries are the kinds of entries that a template has for a node. Of those that are not allowed,
// what was applied last stays.
type entries struct{ labels, annotations, taints, capacity bool }

var (
	allEntries = entries{true, true, true, true}
	noEntries  = entries{}
)

// allowed is what to write: no entry of a template that the server has refused a while ago.
func (s nodeSync) allowed() entries {
	if s.refused() {
		return noEntries
	}
	return allEntries
}

// rest is what to write if the server refuses the whole: all entries but those of one kind, or none.
func (s nodeSync) rest() (nodes []*Node) {
	if s.refused() {
		return nil
	}
	t, last := &s.m.Spec.NodeTemplate, &s.n.Applied
	if len(t.Labels)+len(last.Labels) > 0 {
		nodes = append(nodes, s.less(entries{annotations: true, taints: true, capacity: true}))
	}
	if len(t.Annotations)+len(last.NodeTemplate.Annotations) > 0 {
		nodes = append(nodes, s.less(entries{labels: true, taints: true, capacity: true}))
	}
	if len(t.Taints)+len(last.Taints) > 0 {
		nodes = append(nodes, s.less(entries{labels: true, annotations: true, capacity: true}))
	}
	if len(nodes)+len(s.virtualCapacity())+len(last.VirtualCapacity) > 0 {
		nodes = append(nodes, s.less(noEntries))
	}
	return nodes
}

// less is a node with some of its template's entries, of which it says that the server refused others.
func (s nodeSync) less(with entries) *Node {
	n := s.n.toApply()
	nodeSync{s.situation, n, s.joining}.apply(with)
	s.ripe(n)
	n.Applied.Generation = 0
	n.Applied.Refused = RefusedTemplate{Generation: s.m.Generation, At: s.stamp()}
	return n
}

// refused reports whether the server has refused this template a while ago, so that it is not tried
// yet whether it accepts it now.
func (s nodeSync) refused() bool {
	r := &s.n.Applied.Refused
	return r.Generation == s.m.Generation && !r.At.IsZero() && !r.At.After(s.now) && s.now.Before(r.At.Add(undoneRetry))
}

// noteRefused records on a machine that runs what the server refuses, or that it does not any more.
func (s nodeSync) noteRefused() (Plan, bool) {
	r, op := &s.n.Applied.Refused, &s.m.Status.LastOperation
	noted := op.Kind == OperationUpdate && op.Stage == StageSyncNode && op.State == StateFailed
	switch {
	case s.m.Status.Phase != PhaseRunning:
	case s.refused() && (!noted || op.Code != r.Code || op.Message != r.Message):
		why := decision.Why{Reason: reasonSyncRefused, Name: s.n.Name, Code: r.Code, Detail: r.Message}
		return s.setStatus(why, func(status *Status) {
			status.LastOperation = s.failure(OperationUpdate, StageSyncNode, r.Code, r.Message)
		}), true
	case noted && r.At.IsZero():
		return s.setStatus(decision.Why{Reason: reasonSyncAccepted, Name: s.n.Name}, func(status *Status) {
			status.LastOperation = s.operation(OperationUpdate, StateSuccessful, StageSyncNode)
		}), true
	}
	return Plan{}, false
}

// refusedLater has a plan that ends the pass try again in time what the server refuses.
func (s nodeSync) refusedLater(plan Plan) Plan {
	if plan.Write != nil || plan.Effect != nil || !s.refused() {
		return plan
	}
	return sooner(plan, s.n.Applied.Refused.At.Add(undoneRetry))
}

// toApply is a clone, but for what apply replaces anyway.
func (n *Node) toApply() *Node {
	c := *n
	meta := object.Meta{Finalizers: n.Finalizers, Owner: n.Owner}
	meta = meta.CloneMeta()
	c.Finalizers, c.Owner = meta.Finalizers, meta.Owner
	c.Conditions, c.Addresses = slices.Clone(n.Conditions), slices.Clone(n.Addresses)
	c.Drain = n.Drain.Clone()
	return &c
}

// undone reports whether the node was written, and something else keeps changing
// it back. No machine fails to join for that, unless the startup taint stays.
func (s nodeSync) undone() bool {
	return (s.o.NodeSynced == nil || s.o.NodeSynced.Code == codes.OK) && !s.n.hasTaint(s.p.Keys.NotReadyTaint)
}

// outdated reports whether the node was written for a status that this pass has
// replaced since: it would record other marks now.
func (s nodeSync) outdated() bool {
	if s.o.NodeSynced == nil || s.o.NodeSynced.Code != codes.OK || !s.o.Fenced {
		return false
	}
	want, have := s.wanted(), &s.n.Applied
	return !want.Applied.Preserved.equal(&have.Preserved) || !want.Applied.Update.equal(&have.Update)
}

// notInLine says why a node is not as it should be though it was written.
func (s nodeSync) notInLine() decision.Why {
	answer := s.o.NodeSynced
	switch {
	case s.outdated():
		return decision.Why{Reason: reasonSyncAgain, Name: s.n.Name}
	case answer == nil || answer.Code == codes.OK:
		what, _ := s.disputed()
		return decision.Why{Reason: reasonSyncUndone, Name: s.n.Name, Detail: strings.Join(what, ", ")}
	}
	return decision.Why{Reason: reasonSyncFailed, Name: s.n.Name, Code: answer.Code, Detail: answer.Message}
}

// syncLater has a plan that ends the pass look again soon at a node that could
// not be brought in line. It holds nothing else up: verdicts and deadlines do
// not wait for a node that can't be written.
func (s nodeSync) syncLater(plan Plan) Plan {
	if plan.Write != nil || plan.Effect != nil {
		return plan
	}
	at, why := s.now.Add(nodeRetry), s.notInLine()
	if why.Reason == reasonSyncUndone {
		_, at = s.disputed()
	}
	if why.Reason != reasonSyncAgain {
		plan.Warn = why
	}
	return sooner(plan, at)
}

// inLine reports whether labels, annotations and taints are as apply would leave
// them. Passes of settled machines spend most of their time here. So it allocates
// nothing, and does not compare the record while its generation is the same.
func (s nodeSync) inLine() bool {
	named := s.owner == s.m.Name && s.owner != ""
	if !named && s.nameKey() != "" || !s.n.HasFinalizer(NodeFinalizer) || s.joining && s.n.hasTaint(s.p.Keys.NotReadyTaint) {
		return false
	}
	last := &s.n.Applied
	// Generations of different machines say nothing, hence the name first.
	vouched := named && last.Generation != 0 && last.Generation == s.m.Generation
	switch {
	case !s.marksInLine():
		return false
	case s.refused():
		return true
	case !last.Refused.At.IsZero():
		return false // it is time to try again
	}
	var due made
	if !vouched || s.m.Spec.Marks != (RolloutMarks{}) {
		rollout := nodeRollout{s.situation, s.n}
		due = rollout.due()
		if !rollout.inLine(due) {
			return false
		}
	}
	return s.templateInLine(vouched, due)
}

// marksInLine reports whether the marks of an update in place and of preservation are on the node.
func (s nodeSync) marksInLine() bool {
	return nodeUpdate{s.situation, s.n}.inLine() && nodePreservation{s.situation, s.n}.inLine()
}

// templateInLine reports whether the template is on the node as it was recorded.
func (s nodeSync) templateInLine(vouched bool, due made) bool {
	t, last := &s.m.Spec.NodeTemplate, &s.n.Applied
	if !vouched && !t.valid() {
		usable := t.usable()
		t = &usable
	}
	return s.mapInLine(s.n.Labels, last.Labels, t.Labels, ownLabel, vouched, 0) &&
		s.mapInLine(s.n.Annotations, last.Annotations, t.Annotations, ownAnnotation, vouched, due.annotations()) &&
		(vouched || recordsTaints(last.Taints, t.Taints, due.taints())) && s.holdsTaints(s.n.Taints, last.Taints, t.Taints)
}

// recordsTaints reports whether want is what was applied last, with so many
// marks behind it.
func recordsTaints(last, want []object.Taint, marks int) bool {
	return len(last) == len(want)+marks && slices.Equal(last[:len(want)], want)
}

func (s nodeSync) capacityInLine() bool {
	return s.refused() || s.mapInLine(s.n.Capacity, s.n.Applied.VirtualCapacity, s.virtualCapacity(), nil, false, 0)
}

// virtualCapacity is that of the class, without entries that no API server accepts.
func (s nodeSync) virtualCapacity() map[string]string {
	if s.o.Class == nil || s.o.Class.NodeTemplate == nil {
		return nil
	}
	all := s.o.Class.NodeTemplate.VirtualCapacity
	for name, quantity := range all {
		if resourceProblem(name, quantity) != "" {
			usable := maps.Clone(all)
			maps.DeleteFunc(usable, func(name, quantity string) bool { return resourceProblem(name, quantity) != "" })
			return usable
		}
	}
	return all
}

// mapInLine reports whether want is what was applied last, unless that is vouched
// for, and still there. Of an entry that is the library's own, only the record
// counts. An absent entry is not one with an empty value. The record has so many
// marks besides, which are known to be in line.
func (s nodeSync) mapInLine(have, last, want map[string]string, own func(*Keys, string) bool, vouched bool, marks int) bool {
	if !vouched && len(last) != len(want)+marks {
		return false
	}
	for k, v := range want {
		if is, ok := have[k]; (!ok || is != v) && (own == nil || !own(&s.p.Keys, k)) {
			return false
		}
		if vouched {
			continue
		}
		if was, ok := last[k]; !ok || was != v {
			return false
		}
	}
	return true
}

func (s nodeSync) holdsTaints(have, last, want []object.Taint) bool {
	for i := range want {
		if !slices.Contains(have, want[i]) && !s.startup(want[i]) && !s.done(last, want[i]) {
			return false
		}
	}
	return true
}

// done reports whether a taint is one that is put on once, and was.
func (s nodeSync) done(last []object.Taint, t object.Taint) bool {
	return s.putOnOnce(t.Key) && slices.Contains(last, t)
}

// putOnOnce reports whether another program removes taints with this key when it is ready.
func (s nodeSync) putOnOnce(key string) bool {
	return key != "" && key == s.p.Keys.CriticalComponents || strings.HasPrefix(key, autoscalerStartup) ||
		slices.Contains(s.p.StartupTaints, key)
}

// autoscalerStartup begins the keys of taints that the cluster autoscaler takes for startup taints.
const autoscalerStartup = "startup-taint.cluster-autoscaler.kubernetes.io/"

// startup reports whether a taint is the one that nodes register with and that
// is removed when they join. A template that names it changes nothing about that.
func (s nodeSync) startup(t object.Taint) bool {
	return t.Key != "" && t.Key == s.p.Keys.NotReadyTaint
}

// apply changes a node into what it should be, as far as its entries are allowed. It replaces the
// maps of labels, annotations and capacity, the taints, and the record of what was applied.
func (s nodeSync) apply(with entries) {
	inspection, rollout := nodePreservation{s.situation, s.n}, nodeRollout{s.situation, s.n}
	marks := inspection.marks()
	inspection.dropKept(marks)
	due := rollout.due()
	t, capacity := rollout.template(due), maps.Clone(s.virtualCapacity())
	last, refused := s.n.Applied.Clone(), RefusedTemplate{}
	if with == noEntries {
		refused = s.n.Applied.Refused
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
		capacity = maps.Clone(s.n.Applied.VirtualCapacity)
	}
	s.n.Labels = s.mergeForeign(s.n.Labels, s.n.Applied.Labels, t.Labels, ownLabel)
	s.n.Annotations = s.mergeForeign(s.n.Annotations, s.n.Applied.Annotations, t.Annotations, ownAnnotation)
	s.n.Capacity = merge(s.n.Capacity, s.n.Applied.VirtualCapacity, capacity)
	have := s.n.Taints
	gone := func(t object.Taint) bool { return s.startup(t) || !slices.Contains(have, t) && s.done(last.Taints, t) }
	s.n.Taints = mergeTaints(have, without(last.Taints, s.startup), without(t.Taints, gone))
	s.n.Applied = Applied{
		NodeTemplate: t, VirtualCapacity: capacity, Generation: s.m.Generation,
		Update: s.n.Applied.Update, Critical: s.n.Applied.Critical, Preserved: s.n.Applied.Preserved, Refused: refused,
	}
	if s.m.Spec.Marks == (RolloutMarks{}) && due != (made{}) {
		s.n.Applied.Generation = 0 // a preserved machine's marks, which are to go once it is not preserved any more
	}
	if with == noEntries || !s.m.Spec.NodeTemplate.valid() {
		s.n.Applied.Generation = 0 // not all of the template
	}
	if key := s.nameKey(); key != "" {
		s.n.Labels[key] = s.m.Name
	}
	if s.joining {
		s.n.Taints = without(s.n.Taints, s.startup)
	}
	nodeUpdate{s.situation, s.n}.apply()
	inspection.apply(marks)
	s.n.AddFinalizer(NodeFinalizer)
}

// mergeForeign is merge that leaves entries as they are that are the library's own, even if a template
// names them: the update in place would put back what the template writes, and so on without end.
func (s nodeSync) mergeForeign(have, last, want map[string]string, own func(*Keys, string) bool) map[string]string {
	out := merge(have, last, want)
	for _, changed := range [...]map[string]string{last, want} {
		for k := range changed {
			if !own(&s.p.Keys, k) {
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

// behind reports whether the node knows of an update that began after what the
// machine's record knows of. The record may then be an old one, and the node
// must not be brought back to it.
func (s nodeSync) behind() bool {
	since := s.n.Applied.Update.Since
	if s.o.Fenced || since.IsZero() {
		return false
	}
	if s.m.Status.Phase == PhaseInPlaceUpdating && since.Equal(s.m.Status.Since.Truncate(time.Second)) {
		return false
	}
	return !since.Before(s.m.Status.Since)
}

// fence writes the status as it is, but for a failed step that is tried again.
// A reader of an old record fails there, before it does to the node what is not
// wanted any more.
func (s nodeSync) fence() Plan {
	return s.setStatus(decision.Why{Reason: reasonUpdateFence, Name: s.n.Name}, func(status *Status) {
		if op := &status.LastOperation; status.Phase == PhaseInPlaceUpdating && op.State == StateFailed {
			*op = s.operation(OperationInPlaceUpdate, StateProcessing, op.Stage)
		}
	})
}

// Values of the marks, in the spelling that other programs look for.
const (
	avoidValue = "True"
	keepValue  = "true"
)

// made are the marks that are, or are to be, on a node and ours. The keys of
// the template are never among them.
type made struct{ avoid, keep, kept bool }

func (m made) annotations() (n int) {
	if m.keep {
		n++
	}
	if m.kept {
		n++
	}
	return n
}

func (m made) taints() int {
	if m.avoid {
		return 1
	}
	return 0
}

// recorded are the marks that the node's record has as ours.
func (r nodeRollout) recorded() made {
	t, last, keys := &r.m.Spec.NodeTemplate, &r.n.Applied.NodeTemplate, &r.p.Keys
	return made{
		avoid: slices.Contains(last.Taints, r.avoidTaint()) && !r.templateAvoids(),
		keep:  keeps(last.Annotations, keys.KeepNode) && !has(t.Annotations, keys.KeepNode),
		kept:  keeps(last.Annotations, keys.keptByUs()) && !has(t.Annotations, keys.KeptByUs),
	}
}

// due are the marks that should be on the node and ours: those wanted whose
// place is free, or holds what we put there. A preserved machine's stay.
func (r nodeRollout) due() made {
	if r.preserved() {
		return r.recorded()
	}
	want, t, keys := r.m.Spec.Marks, &r.m.Spec.NodeTemplate, &r.p.Keys
	var m made
	m.avoid = want.Avoid && keys.AvoidTaint != "" && !r.templateAvoids() && r.mayTaint()
	m.keep = want.Keep && keys.KeepNode != "" && !has(t.Annotations, keys.KeepNode) && mayAnnotate(r.n, keys.KeepNode)
	m.kept = m.keep && keys.keptByUs() != "" && !has(t.Annotations, keys.KeptByUs) && mayAnnotate(r.n, keys.KeptByUs)
	return m
}

func has(m map[string]string, key string) bool {
	_, ok := m[key]
	return ok && key != ""
}

// keeps reports whether a key has the value that a mark has.
func keeps(m map[string]string, key string) bool { return key != "" && m[key] == keepValue }

// mayAnnotate reports whether an annotation is missing, or as we left it.
func mayAnnotate(n *Node, key string) bool {
	value, taken := n.Annotations[key]
	last, ours := n.Applied.Annotations[key]
	return !taken || ours && value == last
}

func (r nodeRollout) avoidTaint() object.Taint {
	return object.Taint{Key: r.p.Keys.AvoidTaint, Value: avoidValue, Effect: object.PreferNoSchedule}
}

func (r nodeRollout) templateAvoids() bool {
	return slices.ContainsFunc(r.m.Spec.NodeTemplate.Taints, r.avoidTaint().Same)
}

// mayTaint reports whether the taint is missing, or as we left it.
func (r nodeRollout) mayTaint() bool {
	i := slices.IndexFunc(r.n.Taints, r.avoidTaint().Same)
	return i < 0 || slices.Contains(r.n.Applied.Taints, r.n.Taints[i])
}

// inLine reports whether the marks are on the node that should be, and
// recorded as ours, and no others are.
func (r nodeRollout) inLine(due made) bool {
	return due == r.recorded() && (!due.avoid || slices.Contains(r.n.Taints, r.avoidTaint())) &&
		(!due.keep || keeps(r.n.Annotations, r.p.Keys.KeepNode)) && (!due.kept || keeps(r.n.Annotations, r.p.Keys.KeptByUs))
}

// template is a copy of the template with the marks that are due.
func (r nodeRollout) template(due made) NodeTemplate {
	usable := r.m.Spec.NodeTemplate.usable()
	t := usable.Clone()
	if due.annotations() > 0 {
		annotations := make(map[string]string, len(t.Annotations)+due.annotations())
		maps.Copy(annotations, t.Annotations)
		annotations[r.p.Keys.KeepNode] = keepValue
		if due.kept {
			annotations[r.p.Keys.KeptByUs] = keepValue
		}
		t.Annotations = annotations
	}
	if due.avoid {
		t.Taints = append(t.Taints, r.avoidTaint())
	}
	return t
}
