package convert

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machineset"
)

// Deployments translates deployments.
func Deployments(keys Keys) *Kind[*v1alpha1.MachineDeployment, *deployment.Deployment] {
	return &Kind[*v1alpha1.MachineDeployment, *deployment.Deployment]{
		name: "deployment", keys: keys, notes: keys.DeploymentRecord,
		counter: keys.DeploymentChanges,
		empty:   func() *v1alpha1.MachineDeployment { return &v1alpha1.MachineDeployment{} },
		clone:   (*v1alpha1.MachineDeployment).DeepCopy,
		blank:   func() *deployment.Deployment { return &deployment.Deployment{} },
		read:    readDeployment, write: writeDeployment, writeStatus: writeDeploymentStatus,
		records: []record[*deployment.Deployment]{
			{keys.Revision, func(d *deployment.Deployment) any { return &d.Revision }},
			{keys.MaxAge, func(d *deployment.Deployment) any { return &d.Spec.MaxAge }},
			{keys.StopAfter, func(d *deployment.Deployment) any { return &d.Spec.Strategy.StopAfter }},
		},
	}
}

// deploymentNotes are the parts of a status that have no field in the established kind.
var deploymentNotes = []record[*deployment.Deployment]{
	{"preserved", func(d *deployment.Deployment) any { return &d.Status.Preserved }},
	{"failing", func(d *deployment.Deployment) any { return &d.Status.Failing }},
	{"expired", func(d *deployment.Deployment) any { return &d.Status.Expired }},
	{"inPlace", func(d *deployment.Deployment) any { return &d.Status.InPlace }},
	{"outdated", func(d *deployment.Deployment) any { return &d.Status.Outdated }},
	{"progressedAt", func(d *deployment.Deployment) any { return &d.Status.ProgressedAt }},
	{"rolloutSince", func(d *deployment.Deployment) any { return &d.Status.RolloutSince }},
	{"wanted", func(d *deployment.Deployment) any { return &d.Status.Wanted }},
	{"wantedSince", func(d *deployment.Deployment) any { return &d.Status.WantedSince }},
	{"rolloutFailures", func(d *deployment.Deployment) any { return &d.Status.RolloutFailures }},
	{"scaledAt", func(d *deployment.Deployment) any { return &d.Status.ScaledAt }},
}

func readDeployment(r *reader, w *v1alpha1.MachineDeployment, d *deployment.Deployment) {
	s, from := &d.Spec, &w.Spec
	s.Replicas, s.Paused, s.AutoPreserve = from.Replicas, from.Paused, from.AutoPreserveFailedMachineMax
	s.Selector, s.Template = readSelector(from.Selector), readTemplate(&from.Template)
	s.Strategy = r.strategy(&from.Strategy, s.Strategy.StopAfter)
	s.MinReady = secondsOf(from.MinReadySeconds)
	s.RevisionHistoryLimit = copied(from.RevisionHistoryLimit)
	if from.RollbackTo != nil {
		s.RollbackTo = &deployment.Rollback{Revision: from.RollbackTo.Revision}
	}
	if from.ProgressDeadlineSeconds != nil {
		s.ProgressDeadline = secondsOf(*from.ProgressDeadlineSeconds)
	}

	n := r.notes(w, r.keys.DeploymentRecord)
	for _, note := range deploymentNotes {
		n.read(r.problems, note.name, note.at(d))
	}
	var extras []extra
	n.read(r.problems, noteFailed, &extras)
	out := &d.Status
	out.ObservedGeneration = n.observed(r, w.Status.ObservedGeneration)
	out.Replicas, out.Updated = w.Status.Replicas, w.Status.UpdatedReplicas
	out.Ready, out.Available = w.Status.ReadyReplicas, w.Status.AvailableReplicas
	out.Unavailable, out.Conditions = w.Status.UnavailableReplicas, deploymentConditions.read(w.Status.Conditions)
	out.PreservedFailed = w.Status.PreservedFailedReplicas
	if w.Status.CollisionCount != nil {
		out.Collisions = *w.Status.CollisionCount
	}
	out.Failed = readSummaries(r.problems, present(w.Status.FailedMachines), extras)
}

// present returns the entries of a list that are not null.
func present(list []*v1alpha1.MachineSummary) []v1alpha1.MachineSummary {
	var out []v1alpha1.MachineSummary
	for _, s := range list {
		if s != nil {
			out = append(out, *s)
		}
	}
	return out
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

func same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// orchestrationAuto is how deployment.Automatic is stored, unless the field is left empty.
const orchestrationAuto v1alpha1.OrchestrationType = "Auto"

// strategy reads a strategy. stopAfter is from an annotation.
func (r *reader) strategy(w *v1alpha1.MachineDeploymentStrategy, stopAfter rollout.IntOrPercent) deployment.Strategy {
	s := deployment.Strategy{Kind: deployment.StrategyKind(w.Type), StopAfter: stopAfter}
	bounds, unset := v1alpha1.UpdateConfiguration{}, rollout.IntOrPercent{Value: 1}
	if w.InPlaceUpdate != nil && w.InPlaceUpdate.OrchestrationType != orchestrationAuto {
		s.Orchestration = deployment.Orchestration(w.InPlaceUpdate.OrchestrationType)
	}
	switch {
	case s.Kind == deployment.InPlaceUpdate:
		unset.Value = 0 // for an update in place, both bounds are 0 by default
		if w.InPlaceUpdate != nil {
			bounds = w.InPlaceUpdate.UpdateConfiguration
		}
	case w.RollingUpdate != nil:
		bounds = w.RollingUpdate.UpdateConfiguration
	}
	s.MaxSurge = r.bound("spec.strategy.maxSurge", bounds.MaxSurge, unset)
	s.MaxUnavailable = r.bound("spec.strategy.maxUnavailable", bounds.MaxUnavailable, unset)
	if s == (deployment.Strategy{}) {
		s.Kind = deployment.RollingUpdate // both bounds are 0, which must not read as no strategy at all
	}
	return s
}

// bound reads a bound. A text that is no valid bound is reported, and becomes an invalid value, so that
// nothing is done.
func (r *reader) bound(field string, w *intstr.IntOrString, unset rollout.IntOrPercent) rollout.IntOrPercent {
	switch {
	case w == nil:
		return unset
	case w.Type == intstr.Int:
		return rollout.IntOrPercent{Value: w.IntVal}
	}
	v, err := rollout.Parse(w.StrVal)
	if err == nil {
		return v
	}
	if _, err := rollout.Parse(strings.TrimPrefix(w.StrVal, "-")); err == nil {
		r.add(field, "is negative")
		return rollout.IntOrPercent{Value: -1}
	}
	r.add(field, "is neither a whole number nor a whole percentage")
	return rollout.Unreadable
}

func writeStrategy(w *v1alpha1.MachineDeploymentStrategy, was, now *deployment.Strategy) {
	if *now == (deployment.Strategy{}) { // the stored kind has other defaults
		unset := deployment.DefaultStrategy()
		now = &unset
	}
	put(&w.Type, v1alpha1.MachineDeploymentStrategyType(was.Kind), v1alpha1.MachineDeploymentStrategyType(now.Kind))
	if was.Orchestration != now.Orchestration {
		if w.InPlaceUpdate == nil {
			w.InPlaceUpdate = &v1alpha1.InPlaceUpdateMachineDeployment{}
		}
		w.InPlaceUpdate.OrchestrationType = v1alpha1.OrchestrationType(now.Orchestration)
	}
	reads := (&reader{problems: &problems{}}).strategy(w, now.StopAfter) // the bounds that w has for now.Kind
	if reads.MaxSurge == now.MaxSurge && reads.MaxUnavailable == now.MaxUnavailable {
		return
	}
	var bounds *v1alpha1.UpdateConfiguration
	if now.Kind == deployment.InPlaceUpdate {
		if w.InPlaceUpdate == nil {
			w.InPlaceUpdate = &v1alpha1.InPlaceUpdateMachineDeployment{}
		}
		bounds = &w.InPlaceUpdate.UpdateConfiguration
	} else {
		if w.RollingUpdate == nil {
			w.RollingUpdate = &v1alpha1.RollingUpdateMachineDeployment{}
		}
		bounds = &w.RollingUpdate.UpdateConfiguration
	}
	putBound(&bounds.MaxSurge, reads.MaxSurge, now.MaxSurge)
	putBound(&bounds.MaxUnavailable, reads.MaxUnavailable, now.MaxUnavailable)
}

func putBound(w **intstr.IntOrString, was, now rollout.IntOrPercent) {
	if was == now {
		return
	}
	v := intstr.FromInt32(now.Value)
	if now.Percent {
		v = intstr.FromString(now.String())
	}
	*w = &v
}

func writeDeployment(_ *writer, w *v1alpha1.MachineDeployment, was, now *deployment.Deployment) {
	a, b, out := &was.Spec, &now.Spec, &w.Spec
	put(&out.Replicas, a.Replicas, b.Replicas)
	put(&out.Paused, a.Paused, b.Paused)
	put(&out.AutoPreserveFailedMachineMax, a.AutoPreserve, b.AutoPreserve)
	writeSelector(&out.Selector, &a.Selector, &b.Selector)
	writeTemplate(&out.Template, &a.Template, &b.Template)
	writeStrategy(&out.Strategy, &a.Strategy, &b.Strategy)
	put(&out.MinReadySeconds, wholeSeconds(a.MinReady), wholeSeconds(b.MinReady))
	putPointer(&out.ProgressDeadlineSeconds, wholeSeconds(a.ProgressDeadline), wholeSeconds(b.ProgressDeadline))
	if !same(a.RevisionHistoryLimit, b.RevisionHistoryLimit) {
		out.RevisionHistoryLimit = copied(b.RevisionHistoryLimit)
	}
	if !same(a.RollbackTo, b.RollbackTo) {
		out.RollbackTo = nil
		if b.RollbackTo != nil {
			out.RollbackTo = &v1alpha1.RollbackConfig{Revision: b.RollbackTo.Revision}
		}
	}
}

func writeDeploymentStatus(x *writer, w *v1alpha1.MachineDeployment, was, now *deployment.Deployment) {
	a, b, out := &was.Status, &now.Status, &w.Status
	if a.Equal(b) {
		return
	}
	put(&out.Replicas, a.Replicas, b.Replicas)
	put(&out.UpdatedReplicas, a.Updated, b.Updated)
	put(&out.ReadyReplicas, a.Ready, b.Ready)
	put(&out.AvailableReplicas, a.Available, b.Available)
	put(&out.UnavailableReplicas, a.Unavailable, b.Unavailable)
	put(&out.PreservedFailedReplicas, a.PreservedFailed, b.PreservedFailed)
	putPointer(&out.CollisionCount, a.Collisions, b.Collisions)

	n := (&problems{}).notes(w, x.keys.DeploymentRecord)
	for _, note := range deploymentNotes {
		n.write(x, note.name, note.at(was), note.at(now))
	}
	if a.ObservedGeneration != b.ObservedGeneration {
		out.ObservedGeneration = n.observe(x, b.ObservedGeneration)
	}
	if !slices.EqualFunc(a.Failed, b.Failed, func(s, t machineset.FailedMachine) bool { return s.Equal(&t) }) {
		list, extras := writeSummaries(b.Failed)
		n.set(x, noteFailed, &extras)
		out.FailedMachines = nil
		for i := range list {
			out.FailedMachines = append(out.FailedMachines, &list[i])
		}
	}
	annotate(w, x.keys.DeploymentRecord, n.text())
	deploymentConditions.write(&out.Conditions, a.Conditions, b.Conditions)
}
