package convert

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// readSpec reads the spec of a machine or of a template.
func readSpec(w *v1alpha1.MachineSpec) machine.Spec {
	return machine.Spec{
		Class:        machine.ClassRef{APIGroup: w.Class.APIGroup, Kind: classKind(&w.Class), Name: w.Class.Name},
		ProviderID:   w.ProviderID,
		NodeTemplate: readNodeTemplate(&w.NodeTemplateSpec),
		Config:       readConfiguration(w.MachineConfiguration),
	}
}

// classKind returns the kind of a class, which is MachineClass by default. Other managers refuse an
// object without a kind, so the sets and machines that are created from it get the default.
func classKind(w *v1alpha1.ClassSpec) string {
	if w.Kind == "" && w.Name != "" {
		return "MachineClass"
	}
	return w.Kind
}

func writeSpec(w *v1alpha1.MachineSpec, was, now *machine.Spec) {
	put(&w.Class.APIGroup, was.Class.APIGroup, now.Class.APIGroup)
	put(&w.Class.Kind, was.Class.Kind, now.Class.Kind)
	put(&w.Class.Name, was.Class.Name, now.Class.Name)
	put(&w.ProviderID, was.ProviderID, now.ProviderID)
	writeNodeTemplate(&w.NodeTemplateSpec, &was.NodeTemplate, &now.NodeTemplate)
	if !was.Config.Equal(&now.Config) {
		if w.MachineConfiguration == nil {
			w.MachineConfiguration = &v1alpha1.MachineConfiguration{}
		}
		writeConfiguration(w.MachineConfiguration, &was.Config, &now.Config)
	}
}

func readNodeTemplate(w *v1alpha1.NodeTemplateSpec) machine.NodeTemplate {
	return machine.NodeTemplate{
		Labels: without(w.Labels, nil), Annotations: without(w.Annotations, nil), Taints: readTaints(w.Spec.Taints),
	}
}

func writeNodeTemplate(w *v1alpha1.NodeTemplateSpec, was, now *machine.NodeTemplate) {
	putEntries(&w.Labels, was.Labels, now.Labels, nil)
	putEntries(&w.Annotations, was.Annotations, now.Annotations, nil)
	writeTaints(&w.Spec.Taints, was.Taints, now.Taints)
}

func readTaints(list []corev1.Taint) []object.Taint {
	var out []object.Taint
	for _, t := range list {
		out = append(out, object.Taint{Key: t.Key, Value: t.Value, Effect: object.TaintEffect(t.Effect)})
	}
	return out
}

// writeTaints changes the list if the taints differ. A taint that stays keeps the time of its addition.
func writeTaints(list *[]corev1.Taint, was, now []object.Taint) {
	if slices.Equal(was, now) {
		return
	}
	var out []corev1.Taint
	for _, t := range now {
		w := corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)}
		for _, old := range *list {
			if old.Key == w.Key && old.Value == w.Value && old.Effect == w.Effect {
				w.TimeAdded = old.TimeAdded
			}
		}
		out = append(out, w)
	}
	*list = out
}

func readConfiguration(w *v1alpha1.MachineConfiguration) machine.Configuration {
	if w == nil {
		return machine.Configuration{}
	}
	c := machine.Configuration{
		CreationTimeout: duration(w.MachineCreationTimeout),
		HealthTimeout:   duration(w.MachineHealthTimeout),
		DrainTimeout:    duration(w.MachineDrainTimeout),
		InPlaceTimeout:  duration(w.MachineInPlaceUpdateTimeout),
		PreserveTimeout: duration(w.MachinePreserveTimeout),
	}
	if w.DisableHealthTimeout != nil {
		c.DisableHealthTimeout = *w.DisableHealthTimeout
	}
	if w.MaxEvictRetries != nil {
		c.MaxEvictRetries = *w.MaxEvictRetries
	}
	if w.NodeConditions != nil {
		c.NodeConditions = []string{}
		for name := range strings.SplitSeq(*w.NodeConditions, ",") {
			if name = strings.TrimSpace(name); name != "" {
				c.NodeConditions = append(c.NodeConditions, name)
			}
		}
	}
	return c
}

func writeConfiguration(w *v1alpha1.MachineConfiguration, was, now *machine.Configuration) {
	putDuration(&w.MachineCreationTimeout, was.CreationTimeout, now.CreationTimeout)
	putDuration(&w.MachineHealthTimeout, was.HealthTimeout, now.HealthTimeout)
	putDuration(&w.MachineDrainTimeout, was.DrainTimeout, now.DrainTimeout)
	putDuration(&w.MachineInPlaceUpdateTimeout, was.InPlaceTimeout, now.InPlaceTimeout)
	putDuration(&w.MachinePreserveTimeout, was.PreserveTimeout, now.PreserveTimeout)
	putPointer(&w.DisableHealthTimeout, was.DisableHealthTimeout, now.DisableHealthTimeout)
	putPointer(&w.MaxEvictRetries, was.MaxEvictRetries, now.MaxEvictRetries)
	if (was.NodeConditions == nil) == (now.NodeConditions == nil) && slices.Equal(was.NodeConditions, now.NodeConditions) {
		return
	}
	w.NodeConditions = nil
	if now.NodeConditions != nil {
		list := strings.Join(now.NodeConditions, ",")
		w.NodeConditions = &list
	}
}

func duration(d *metav1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Duration
}

func putDuration(field **metav1.Duration, was, now time.Duration) {
	switch {
	case was == now:
	case now == 0:
		*field = nil
	default:
		*field = &metav1.Duration{Duration: now}
	}
}

// putPointer is put for a field that is absent if the value is zero.
func putPointer[T comparable](field **T, was, now T) {
	var zero T
	switch {
	case was == now:
	case now == zero:
		*field = nil
	default:
		*field = &now
	}
}

func readTemplate(w *v1alpha1.MachineTemplateSpec) machineset.Template {
	return machineset.Template{Labels: without(w.Labels, nil), Annotations: without(w.Annotations, nil), Spec: readSpec(&w.Spec)}
}

func writeTemplate(w *v1alpha1.MachineTemplateSpec, was, now *machineset.Template) {
	putEntries(&w.Labels, was.Labels, now.Labels, nil)
	putEntries(&w.Annotations, was.Annotations, now.Annotations, nil)
	writeSpec(&w.Spec, &was.Spec, &now.Spec)
}

func readSelector(w *metav1.LabelSelector) object.Selector {
	if w == nil {
		return object.Selector{}
	}
	s := object.Selector{Labels: without(w.MatchLabels, nil)}
	for _, r := range w.MatchExpressions {
		s.Requirements = append(s.Requirements, object.Requirement{
			Key: r.Key, Operator: object.Operator(r.Operator), Values: slices.Clone(r.Values),
		})
	}
	return s
}

func writeSelector(w **metav1.LabelSelector, was, now *object.Selector) {
	if was.Equal(now) {
		return
	}
	s := &metav1.LabelSelector{MatchLabels: without(now.Labels, nil)}
	for _, r := range now.Requirements {
		s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: r.Key, Operator: metav1.LabelSelectorOperator(r.Operator), Values: slices.Clone(r.Values),
		})
	}
	*w = s
}

// secondsOf returns the duration that a field has in seconds.
func secondsOf(seconds int32) time.Duration { return time.Duration(seconds) * time.Second }

// wholeSeconds is the reverse of secondsOf. Fractions are cut off.
func wholeSeconds(d time.Duration) int32 {
	return int32(max(-1<<31, min(d/time.Second, 1<<31-1)))
}
